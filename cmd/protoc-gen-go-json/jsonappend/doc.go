// Package jsonappend holds the hand-written half of Palisade's JSON codec: the functions that the code made
// by protoc-gen-go-json calls. Each appends one JSON value to a byte slice and returns the longer slice;
// none uses reflection, none fails.
//
// The values are those of canonical protobuf JSON, with the differences that the API contract asks for:
// times always have six fraction digits, and 64-bit integers may be numbers (see JsonForm in
// proto/palisade/options/v1/options.proto). Where protojson refuses a value (a time out of range, invalid
// UTF-8) these functions write the nearest valid one, because the status line of an HTTP answer has already
// been decided when its body is encoded.
package jsonappend
