package reply

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/services/internal/inprocess"
)

// maxKept keeps single large answers from staying in memory.
const maxKept = 1 << 20

// buffers are those that no call uses.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Take returns an empty buffer with room for size bytes at least.
func Take(size int) *[]byte {
	b := buffers.Get().(*[]byte)
	if cap(*b) < size {
		*b = make([]byte, 0, size)
	}
	*b = (*b)[:0]
	return b
}

// put ends the use of a buffer: nothing of it may be read any more.
func put(b *[]byte) {
	if cap(*b) <= maxKept {
		buffers.Put(b)
	}
}

// Memory is what the answer of one call is in.
type Memory struct{ buffer *[]byte }

type memoryKey struct{}

// NewContext returns a context for a call whose answer is in m.
func NewContext(ctx context.Context, m *Memory) context.Context {
	return context.WithValue(ctx, memoryKey{}, m)
}

// Encoded fills an empty message with its encoding, which is in a buffer of Take. The buffer belongs to the call of ctx from
// here on, and is used again when the answer is sent: the handler must return the message, and keep nothing of it. A call
// that fails, and one that comes from elsewhere than a port, leaves the buffer to the collector.
func Encoded(ctx context.Context, message proto.Message, buffer *[]byte) {
	message.ProtoReflect().SetUnknown(*buffer)
	m, ok := ctx.Value(memoryKey{}).(*Memory)
	if !ok {
		if outer := inprocess.Caller(ctx); outer != nil {
			m, ok = outer.Value(memoryKey{}).(*Memory)
		}
	}
	if ok {
		m.buffer = buffer
	}
}

// Free ends the use of the answer, which is written in another form by now. It leaves the message empty.
func (m *Memory) Free(answer proto.Message) {
	if m.holds(answer) {
		answer.ProtoReflect().SetUnknown(nil)
		put(m.buffer)
	}
	m.buffer = nil
}

// holds reports whether the whole of a message is in the buffer.
func (m *Memory) holds(answer proto.Message) bool {
	if m.buffer == nil {
		return false
	}
	wire := answer.ProtoReflect().GetUnknown()
	return len(wire) > 0 && len(wire) == len(*m.buffer) && &wire[0] == &(*m.buffer)[0] && proto.Size(answer) == len(wire)
}

// Wire is an answer on its way to the codec of a socket. It is sent once.
type Wire struct{ buffer *[]byte }

// Unary is the outermost interceptor of a gRPC port: an answer whose memory is to be used again leaves it as a *Wire.
func Unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	m := &Memory{}
	response, err := handler(NewContext(ctx, m), request)
	if answer, ok := response.(proto.Message); err == nil && ok && m.holds(answer) {
		answer.ProtoReflect().SetUnknown(nil)
		return &Wire{buffer: m.buffer}, nil
	}
	return response, err
}

// Data is the encoding. The buffer is used again when the transport has sent it.
func (w *Wire) Data() mem.BufferSlice {
	return mem.BufferSlice{mem.NewBuffer(w.buffer, returned{})}
}

// returned is the pool to which buffers of the transport go back.
type returned struct{}

// Get returns a buffer of a length.
func (returned) Get(length int) *[]byte {
	b := Take(length)
	*b = (*b)[:length]
	return b
}

// Put takes a buffer back.
func (returned) Put(b *[]byte) { put(b) }
