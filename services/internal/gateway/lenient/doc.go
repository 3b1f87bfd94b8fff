// Package lenient decodes what HTTP clients send into protobuf messages: JSON bodies (Body) and query strings (Query).
// It accepts what known clients of the contract send (its sections on wire conventions and on conflicts): numbers as
// strings and strings as numbers, Python's booleans, whole structs of zero values, a scalar instead of a list, lists in
// three spellings, names in both cases, unknown names.
//
// Everything else gives an apierr error that names the field in the client's spelling, what was got and what is
// allowed. The error texts of strconv and encoding/json are never shown, except encoding/json's description of a syntax
// error.
package lenient
