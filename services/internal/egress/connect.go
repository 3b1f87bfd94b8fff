package egress

import (
	"context"
	"net"
	"time"

	"github.com/palisade/palisade/services/internal/egress/internal/shortened"
)

// Connect opens a connection for a protocol other than HTTP. timeout is for the whole conversation, the connecting
// included; 0 is 30 s. The connection is closed when it is over, and when ctx ends, whatever waits for it. A refused
// address gives an error that is [ErrRefused].
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
	return &conversation{Conn: conn, ended: func() { stop(); cancel() }}, nil
}

// conversation is a connection that does not outlive its context.
type conversation struct {
	net.Conn
	ended func()
}

// Close frees what watches over the connection, too.
func (c *conversation) Close() error {
	c.ended()
	return c.Conn.Close()
}
