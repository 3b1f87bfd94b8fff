// Package jsonstream reads untrusted JSON documents of any size within limits: in constant memory, and leniently.
//
// A [Stream] walks a document token by token. It buffers only the values that its caller reads as a whole, up to a size
// limit, and skips larger ones. [Elements] reads the values of an array in a document that a stream has already
// checked. [Unmarshal] decodes one value: a part of a wrong type costs that part, not the value.
package jsonstream
