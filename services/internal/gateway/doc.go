// Package gateway is the HTTP side of the server. It maps the routes of the google.api.http annotations to RPCs, on an
// in-process connection with the same interceptors as the gRPC port.
//
// grpc-gateway does the routing and the calls. This package adds the lenient decoding of bodies and queries (package
// lenient), JSON encoding, one error body for everything from routing to panics, names with slashes in paths, response
// headers, limits, and raw uploads into client-streaming RPCs.
//
// The layers, outermost first: recover → request id → security headers → compression → fixed routes → grpc-gateway's
// router → per RPC: path check, body limit, deadline, query. The limits come after the router, because uploads have
// their own. The body is read last: the interceptors read it after they have authenticated the caller (package unread).
package gateway
