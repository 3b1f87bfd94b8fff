// Package gateway is the HTTP side of the server: it turns the routes of the google.api.http annotations into
// calls of the RPCs, on an in-process connection that runs the same interceptors as the gRPC port.
//
// grpc-gateway does the routing and the calls. What is ours: the lenient reading of bodies and queries
// (package lenient), our JSON writing, one body for every error from routing to panic, names with slashes in
// paths, the response headers, the limits, and raw uploads into client-streaming RPCs.
//
// The layers, outermost first: recover → request id → security headers → compression → fixed routes →
// grpc-gateway's router → per RPC: path check, body limit, deadline, query. The limits stand behind the router
// because an upload has others than the rest. The body is read last: the interceptors ask for it when they know
// who sends it (package unread).
package gateway
