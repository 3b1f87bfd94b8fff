package egress

import (
	"context"
	"net"
	"time"

	"github.com/palisade/palisade/services/internal/egress/internal/shortened"
)

// Connect opens a connection for a protocol other than HTTP. timeout is for the whole conversation, the connecting
// included; 0 is 30 s. The connection is closed when it is over, and when ctx ends, whatever waits for it. Reading more
// than 1 MiB is a [*TooLargeError]. A refused address gives an error that is [ErrRefused].
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
		_ = conn.SetDeadline(until) // whoever waits then gets a time-out, unless it sets another: then a closed connection
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &conversation{Conn: conn, left: maxConversation, ended: func() { stop(); cancel() }}, nil
}

// maxConversation is in bytes: libraries read a reply whole, and it may have no end.
const maxConversation = 1 << 20

// conversation is a connection that does not outlive its context.
type conversation struct {
	net.Conn
	left  int // bytes; one goroutine reads
	ended func()
}

// Read ends a conversation that is too long.
func (c *conversation) Read(p []byte) (int, error) {
	if c.left <= 0 {
		_ = c.Close()
		return 0, &TooLargeError{maxConversation}
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// Close frees what watches over the connection, too.
func (c *conversation) Close() error {
	c.ended()
	return c.Conn.Close()
}
