// Package connlimit limits what one address can occupy with connections to a port: how many it has, and how many calls
// it begins and abandons. HTTP/2 permits a client to begin a call and reset it at once, as often as it likes. A limit
// of concurrent calls does not notice: each call is over before the next one begins, but the server still has to clean
// up after it (docs/decisions/0044-abandoned-calls.md).
package connlimit

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/palisade/palisade/services/internal/buckets"
)

const (
	// burstSeconds is how many seconds of abandoned calls may come at once. Four times the concurrent calls of a
	// connection is also where net/http closes a connection whose calls were reset before they were served.
	burstSeconds = 4
	// connectionsOfAddress is how many connections with the highest rate of abandoned calls an address may have.
	connectionsOfAddress = 10
	// leastCalls is the lowest rate of abandoned calls per second and connection: a limit of few concurrent calls must
	// not make ordinary cancellations look like an attack.
	leastCalls = 100
	// longestBlock limits how long an address that abandoned too many calls cannot connect. It is short, because all
	// clients behind a proxy or in an office may have that address.
	longestBlock = 4 * time.Second
	// maxAddresses limits the memory of the counters to about 10 MB. An address with an evicted counter starts anew.
	maxAddresses = 50_000
)

// Reasons why a connection is closed.
const (
	// TooMany: the address has as many connections as it may have.
	TooMany = "too_many"
	// Abandoned: the connection or its address abandoned too many calls.
	Abandoned = "abandoned_calls"
)

// Config configures the limits of one port.
type Config struct {
	// Port is the name of the port in the log.
	Port string
	// Connections is how many connections one address may have (IPv6: one /64). 0 means no limit.
	Connections int
	// Calls is how many concurrent calls a connection may have. It may abandon as many per second, at least leastCalls.
	Calls int
	// UnackedTimeout closes connections whose peer does not acknowledge data for so long. 0 means never.
	UnackedTimeout time.Duration
	Log            *slog.Logger
	// Closed is called with the reason of each closed connection.
	Closed func(reason string)
}

// Limit has the connections and the abandoned calls of one port.
type Limit struct {
	config    Config
	calls     float64
	addresses *buckets.Buckets[string] // abandoned calls
	now       func() time.Time
	warning   rate.Sometimes

	mu   sync.Mutex
	open map[string]int // connections by address
}

// New returns the limits of one port.
func New(config Config) *Limit {
	calls := float64(max(config.Calls, leastCalls))
	perAddress := connectionsOfAddress * calls
	return &Limit{
		config:    config,
		calls:     calls,
		addresses: buckets.New[string](maxAddresses, perAddress, int(burstSeconds*perAddress)),
		now:       time.Now,
		warning:   rate.Sometimes{First: 1, Interval: time.Minute},
		open:      map[string]int{},
	}
}

// Listener limits the connections that inner accepts.
func (l *Limit) Listener(inner net.Listener) net.Listener { return &listener{inner, l} }

type listener struct {
	net.Listener
	limit *Limit
}

// Accept returns the next connection that the limits admit. It closes others at once: their clients see a reset, which
// costs the server nothing more.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := accepted.(*net.TCPConn)
		if !ok {
			return accepted, nil
		}
		if c := l.limit.admit(tcp); c != nil {
			return c, nil
		}
	}
}

// admit returns nil for a connection that it closed.
func (l *Limit) admit(tcp *net.TCPConn) *conn {
	address := tcp.RemoteAddr().String()
	if with, err := netip.ParseAddrPort(address); err == nil {
		address = buckets.Network(with.Addr().String())
	}
	if l.addresses.Of(address).TokensAt(l.now()) < 0 {
		l.refuse(tcp, Abandoned)
		return nil
	}
	if !l.enter(address) {
		l.refuse(tcp, TooMany)
		return nil
	}
	c := &conn{
		TCPConn: tcp, limit: l, address: address,
		abandoned: rate.NewLimiter(rate.Limit(l.calls), int(burstSeconds*l.calls)),
	}
	c.remote = &remoteAddr{tcp.RemoteAddr(), c}
	if l.config.UnackedTimeout > 0 {
		limitUnacked(tcp, l.config.UnackedTimeout)
	}
	return c
}

func (l *Limit) enter(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most := l.config.Connections; most > 0 && l.open[address] >= most {
		return false
	}
	l.open[address]++
	return true
}

func (l *Limit) leave(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

// refuse closes a connection without sending what is left in its buffers.
func (l *Limit) refuse(tcp *net.TCPConn, reason string) {
	l.config.Closed(reason)
	l.warning.Do(func() {
		l.config.Log.Warn("a connection was closed because of a limit of its address; others within a minute are not logged",
			"port", l.config.Port, "reason", reason, "remote", tcp.RemoteAddr().String())
	})
	_ = tcp.SetLinger(0) // the connection is gone if it fails
	_ = tcp.Close()
}

// conn is a connection that counts. It embeds the TCP connection, of which net/http and grpc use more than net.Conn
// has.
type conn struct {
	*net.TCPConn
	limit     *Limit
	address   string // that the limits count by
	remote    *remoteAddr
	abandoned *rate.Limiter
	leave     sync.Once
	cut       sync.Once
}

// remoteAddr is the address of a peer, which leads to its connection: in a call, grpc shows no more of the connection
// than this.
type remoteAddr struct {
	net.Addr
	conn *conn
}

// RemoteAddr is the address of the peer.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// Close closes the connection.
func (c *conn) Close() error {
	c.leave.Do(func() { c.limit.leave(c.address) })
	return c.TCPConn.Close()
}

// abandon counts an abandoned call, and closes the connection if it or its address had too many.
func (c *conn) abandon() {
	now := c.limit.now()
	address := takeInAdvance(c.limit.addresses.Of(c.address), now)
	if c.abandoned.AllowN(now, 1) && address {
		return
	}
	c.cut.Do(func() {
		c.limit.refuse(c.TCPConn, Abandoned)
		_ = c.Close() // leaves; it is closed already
	})
}

// takeInAdvance takes one event from a bucket, if necessary one of the future, and reports whether there was one. The
// calls of all connections together can be many more than the limit before the first one is closed.
func takeInAdvance(bucket *rate.Limiter, now time.Time) bool {
	event := bucket.ReserveN(now, 1)
	wait := event.DelayFrom(now)
	if wait > longestBlock {
		event.CancelAt(now)
	}
	return wait == 0
}
