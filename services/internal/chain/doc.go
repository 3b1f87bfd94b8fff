// Package chain contains the interceptors of every call, one per file, in the order of New. The gRPC port and the
// in-process connection of the HTTP gateway use the same list, so that no transport skips a step.
//
// Inner links write what they find out (caller, deployment) into a record that the outermost link puts into the
// context. The access log and the audit link read it after the call.
//
// The chain uses go-grpc-middleware where possible, with two exceptions: its rate limiter and its protovalidate
// interceptor turn errors into texts and so lose details that our errors must carry (RetryInfo; the value that was
// got).
package chain
