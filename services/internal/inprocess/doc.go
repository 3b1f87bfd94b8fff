// Package inprocess connects the HTTP port with the services. The gateway calls them as a gRPC client, through the same
// interceptors as the gRPC port, but without a socket, an encoding or another goroutine.
package inprocess
