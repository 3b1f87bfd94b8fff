package services

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// wireCodec is the codec of protobuf, which sends a message that holds nothing but its encoding (see
// services/findings, encodePage) without copying it.
type wireCodec struct{ encoding.CodecV2 }

// Marshal encodes a message.
func (c wireCodec) Marshal(value any) (mem.BufferSlice, error) {
	if message, ok := value.(proto.Message); ok {
		if wire := message.ProtoReflect().GetUnknown(); len(wire) > 0 && len(wire) == proto.Size(message) {
			return mem.BufferSlice{mem.SliceBuffer(wire)}, nil
		}
	}
	return c.CodecV2.Marshal(value)
}
