// Package apierr creates the errors that callers get. Handlers return an error of one of its constructors, or any other
// error. Map, called once by the error interceptor, turns every error into a gRPC status with a google.rpc.ErrorInfo
// and one of our reasons (proto/palisade/errors/v1/reason.proto). WriteHTTP gives the same error its HTTP form.
//
// Two rules hold everywhere. A text names the field, what was got and what is allowed. The text of a driver, a library
// or a panic is never sent to callers; such a cause is available to errors.Is, errors.As and Cause, for the log.
package apierr
