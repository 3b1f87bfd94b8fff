// Package jsonappend is the hand-written half of Palisade's JSON codec: the functions that code from protoc-gen-go-json
// calls. Each function appends one JSON value to a byte slice and returns the extended slice. None uses reflection, and
// none fails.
//
// The values are canonical protobuf JSON, with the differences that the API contract requires: times always have six
// fraction digits, and 64-bit integers may be numbers (see JsonForm in proto/palisade/options/v1/options.proto). Where
// protojson fails (a time out of range, invalid UTF-8), these functions write the nearest valid value, because the
// status line of an HTTP response is already sent when its body is encoded.
package jsonappend
