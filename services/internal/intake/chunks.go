package intake

import (
	"io"

	"github.com/palisade/palisade/services/internal/apierr"
)

// Chunks reads the chunks of an upload as one stream, beginning with the first message. named reports whether a message
// names a target, which only the first may do.
func Chunks[M interface{ GetChunk() []byte }](first M, receive func() (M, error), named func(M) bool) io.Reader {
	return &chunks[M]{receive: receive, named: named, rest: first.GetChunk()}
}

type chunks[M interface{ GetChunk() []byte }] struct {
	receive func() (M, error)
	named   func(M) bool
	rest    []byte
}

func (r *chunks[M]) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		message, err := r.receive()
		if err != nil {
			return 0, err // io.EOF after the last message
		}
		if r.named(message) {
			return 0, apierr.InvalidArgument("target", "target belongs to the first message only")
		}
		r.rest = message.GetChunk()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
