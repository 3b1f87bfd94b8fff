// Package webhook verifies and parses the webhooks of source-code hosts. It does not use the database or the RPCs.
//
// Bodies are parsed into small structs with the few fields needed. The structs of the hosts' client libraries describe
// whole payloads and fail if a host changes the type of any field.
package webhook
