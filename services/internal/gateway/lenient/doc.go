// Package lenient reads what clients send over HTTP into protobuf messages: JSON bodies (Body) and query
// strings (Query). It is as wide as the known clients of the contract need (its sections on wire conventions
// and on conflicts): numbers as strings and strings as numbers, Python's booleans, whole structs full of zero
// values, a scalar where a list is expected, lists in three spellings, names in both cases, unknown names.
//
// What is still refused is refused with an apierr error that names the field as the client knows it, what was
// got and what is allowed. The texts of strconv and encoding/json never leave, except the latter's word on
// what is wrong at a position.
package lenient
