package chain

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/palisade/palisade/services/internal/pace"
)

// maxChunk is the largest message of an upload, from the rules in its proto.
const maxChunk = 1 << 20

// pacedStream is an upload over gRPC. It stops waiting for messages when they arrive too slowly, or at the upload
// timeout. The stream below only knows the context of the connection, and would wait as long as that lives.
type pacedStream struct {
	grpc.ServerStream
	ctx   context.Context
	rule  pace.Rule
	meter *pace.Meter
}

// newPacedStream measures whole messages, and allows for the one that is arriving.
func newPacedStream(ss grpc.ServerStream, rule pace.Rule) *pacedStream {
	rule = rule.ForMessages(maxChunk)
	return &pacedStream{ServerStream: ss, ctx: ss.Context(), rule: rule, meter: rule.Meter()}
}

// Context is the context of the call.
func (s *pacedStream) Context() context.Context { return s.ctx }

// RecvMsg receives the next message into m, unless its time is over; then m must not be used. The read below ends with
// the stream, which is soon, because the handler got the error.
func (s *pacedStream) RecvMsg(m any) error {
	var late <-chan time.Time
	if left, limited := s.meter.Left(); limited {
		timer := time.NewTimer(left)
		defer timer.Stop()
		late = timer.C
	}
	began, received := time.Now(), make(chan error, 1)
	go func() { received <- s.ServerStream.RecvMsg(m) }()
	select {
	case err := <-received:
		if chunk, ok := m.(interface{ GetChunk() []byte }); ok && err == nil {
			s.meter.Add(len(chunk.GetChunk()), time.Since(began))
		}
		return err
	case <-late:
		return s.rule.Error()
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}
