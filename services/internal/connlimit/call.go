package connlimit

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc/peer"
)

// shortestTimeout is the shortest timeout of a call that ordinary clients request. A call whose client permits less is
// abandoned if it does not end in time: such a timeout does the same as a reset, without a frame.
const shortestTimeout = 100 * time.Millisecond

// connKey is the key of the connection in contexts of HTTP requests.
type connKey struct{}

// ConnContext is for http.Server. It hands the connection to requests.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secure.NetConn()
	}
	if own, ok := c.(*conn); ok {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// of returns the connection of a call, nil if it is not limited.
func of(ctx context.Context) *conn {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		return c
	}
	if p, ok := peer.FromContext(ctx); ok {
		if remote, ok := p.Addr.(*remoteAddr); ok {
			return remote.conn
		}
	}
	return nil
}

// Call is a call in progress.
type Call struct {
	ctx   context.Context
	conn  *conn
	hasty bool
}

// Begin begins a call with the context of its stream, which ends when the client resets it.
func Begin(ctx context.Context) Call {
	deadline, limited := ctx.Deadline()
	return Call{ctx: ctx, conn: of(ctx), hasty: limited && time.Until(deadline) < shortestTimeout}
}

// End counts the call if its client abandoned it. It must run before the call is answered, because that ends the
// context, too.
func (c Call) End() {
	err := c.ctx.Err()
	if c.conn == nil || err == nil || errors.Is(err, context.DeadlineExceeded) && !c.hasty {
		return
	}
	c.conn.abandon()
}

// Abandon counts a call without anything to wait for.
func Abandon(ctx context.Context) {
	if c := of(ctx); c != nil {
		c.abandon()
	}
}

// Handler counts the HTTP/2 requests that clients abandon. In HTTP/1 that closes the connection.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 {
			defer Begin(r.Context()).End()
		}
		next.ServeHTTP(w, r)
	})
}
