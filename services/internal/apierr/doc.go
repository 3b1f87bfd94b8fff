// Package apierr makes the errors that leave the server. Handlers return one of its constructors' errors or
// any other error; Map, called once by the error interceptor, turns whatever it is into a gRPC status that
// carries a google.rpc.ErrorInfo with one of our reasons (proto/palisade/errors/v1/reason.proto).
// WriteHTTP gives the same error its HTTP form.
//
// Two rules hold everywhere: a text names the field, what was got and what is allowed; and the text of a
// driver, a library or a panic never leaves the process. Such a cause stays reachable by errors.Is, errors.As
// and Cause for the log.
package apierr
