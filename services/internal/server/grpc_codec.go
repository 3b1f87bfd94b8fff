package server

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/palisade/palisade/services/internal/reply"
)

// wireCodec is the codec of protobuf, which sends an answer that is encoded already (see package reply) without copying it.
type wireCodec struct{ encoding.CodecV2 }

// Marshal encodes a message.
func (c wireCodec) Marshal(value any) (mem.BufferSlice, error) {
	if answer, ok := value.(*reply.Wire); ok {
		return answer.Data(), nil
	}
	return c.CodecV2.Marshal(value)
}
