package server

import (
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// listCodec is the protobuf codec with generated encoders for lists and reused buffers. Allocating and collecting the
// buffer of a page of findings costs about as much as filling it.
type listCodec struct{ encoding.CodecV2 }

// Marshal encodes a message.
func (c listCodec) Marshal(value any) (mem.BufferSlice, error) {
	message, ok := value.(interface {
		SizeVT() int
		MarshalToSizedBufferVT(b []byte) (int, error)
	})
	if !ok {
		return c.CodecV2.Marshal(value)
	}
	buffer := answerBuffers.Get(message.SizeVT())
	if _, err := message.MarshalToSizedBufferVT(*buffer); err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buffer, answerBuffers)}, nil
}

// answerPool reuses the buffers of sent responses, except large ones. The pools of package mem clear buffers at each
// use, and use buffers of a megabyte for sizes above 32 KB.
type answerPool struct{ sync.Pool }

var answerBuffers = &answerPool{sync.Pool{New: func() any { return new([]byte) }}}

// Get returns a buffer of a length.
func (p *answerPool) Get(length int) *[]byte {
	b := p.Pool.Get().(*[]byte)
	if cap(*b) < length {
		*b = make([]byte, length)
	}
	*b = (*b)[:length]
	return b
}

// Put takes a buffer back.
func (p *answerPool) Put(b *[]byte) {
	const most = 1 << 20
	if cap(*b) <= most {
		p.Pool.Put(b)
	}
}
