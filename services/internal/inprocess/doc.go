// Package inprocess is the connection between the HTTP port and the services: the gateway makes the same calls as a
// gRPC client, through the same interceptors as the gRPC port, but without a socket, an encoding or another goroutine.
package inprocess
