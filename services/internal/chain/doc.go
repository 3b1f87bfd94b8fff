// Package chain holds what happens to every call before and after its handler: one interceptor a file, in the order
// that New lists. The same list serves the gRPC port and the in-process connection of the HTTP gateway, so that neither
// way in skips a step.
//
// Inner links write what they learn (who calls, which deployment) into a record that the context carries from the
// outermost link on; the access log and the audit read it on the way out.
//
// Where go-grpc-middleware has an interceptor it is used, with two exceptions: its rate limiter and its protovalidate
// interceptor turn errors into texts and so lose what our answers must carry (RetryInfo; the value that was got).
package chain
