package egress

import (
	"context"
	"net"
	"time"

	"github.com/palisade/palisade/services/internal/egress/internal/shortened"
)

// Connect opens a connection for a protocol other than HTTP. timeout covers the whole conversation, including the
// connecting. 0 means 30 s. The connection is closed at the timeout and when ctx ends. Reading more than 1 MiB returns
// a [*TooLargeError]. A refused address returns an error that is [ErrRefused].
func (g *Guard) Connect(ctx context.Context, network, address string, timeout time.Duration) (net.Conn, error) {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, shortened.Most(timeout))
	conn, err := g.dial(ctx, network, address)
	if err != nil {
		cancel()
		return nil, err
	}
	if until, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(until) // reads and writes fail with a timeout; if the caller sets another deadline, with a closed connection
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &conversation{Conn: conn, left: maxConversation, ended: func() { stop(); cancel() }}, nil
}

// maxConversation is in bytes. Libraries read whole replies, which may be endless.
const maxConversation = 1 << 20

// conversation is a connection that ends with its context.
type conversation struct {
	net.Conn
	left  int // bytes; one goroutine reads
	ended func()
}

// Read fails when the conversation is too long.
func (c *conversation) Read(p []byte) (int, error) {
	if c.left <= 0 {
		_ = c.Close()
		return 0, &TooLargeError{maxConversation}
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// Close also stops the watch on the context.
func (c *conversation) Close() error {
	c.ended()
	return c.Conn.Close()
}
