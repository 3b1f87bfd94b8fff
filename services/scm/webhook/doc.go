// Package webhook verifies and reads what source-code hosts send. It knows neither our database nor our RPCs.
//
// The bodies are read into structs of our own, which hold the few facts that are needed: those of the hosts' client
// libraries describe whole payloads, and refuse one for any field whose type a host has changed.
package webhook
