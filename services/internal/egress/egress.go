package egress

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/palisade/palisade/services/internal/egress/internal/shortened"
)

// Config says what a Guard lets out.
type Config struct {
	// Allow lists what may be called although its addresses are private, separated by commas: host, host:port, address,
	// address:port, range (10.0.0.0/8) and range:port. A host allows whatever its name resolves to at the time of the
	// call.
	Allow string
	// UserAgent names us to the hosts that are called.
	UserAgent string
	// Log gets a line for each refused connection, with the address that the caller is never told; nil is slog.Default().
	Log *slog.Logger

	resolver *net.Resolver // of tests; nil is that of the system
}

// Limits of Guard, beside those of a call.
const (
	connectTimeout = 10 * time.Second
	maxHeaderBytes = 64 << 10
	// maxConnsPerHost keeps one slow receiver from holding all sockets. All background work of a node together has fewer
	// calls at the same time: tenants whose receivers are on one host do not wait for each other.
	maxConnsPerHost = 256
)

// Guard makes the connections of all outbound calls. It is safe for use by several goroutines.
type Guard struct {
	config    Config
	allow     allowList
	transport *http.Transport
}

// New returns a Guard. The error names every entry of the allow list that is not understood.
func New(c Config) (*Guard, error) {
	allow, err := parseAllowList(c.Allow)
	if err != nil {
		return nil, err
	}
	g := &Guard{config: c, allow: allow}
	g.transport = newTransport(g.dial)
	return g, nil
}

// Allowing returns a guard that lets out to one more host:port too, whatever it resolves to: for a host that the
// operator names elsewhere than in the allow list, such as the mail server.
func (g *Guard) Allowing(hostPort string) (*Guard, error) {
	c := g.config
	c.Allow = strings.Trim(c.Allow+","+hostPort, ",")
	return New(c)
}

// Listed tells whether the operator's allow list names the host, or holds its address when host is one. port is the one
// to be called.
func (g *Guard) Listed(host string, port uint16) bool {
	return g.allow.hostListed(normalHost(host), port) || g.allow.literalListed(host, port)
}

// dial connects. The address is checked after it was resolved and before the first packet is sent, so a name that
// resolves differently each time gains nothing. A refused address gives an error that is [ErrRefused]. UDP, which asks
// nobody before it sends, is for hosts of the allow list.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" && network != "udp" {
		return nil, g.refuse(ctx, &RefusedError{Host: address, Reason: "network " + network + " is not TCP"})
	}
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := parsePort(portText)
	if err != nil {
		return nil, &net.AddrError{Err: "invalid port", Addr: address}
	}
	listed := g.allow.hostListed(normalHost(host), port)
	if network == "udp" && !listed && !g.allow.literalListed(host, port) {
		return nil, g.refuse(ctx, &RefusedError{Host: address, Reason: "UDP is for hosts of the allow list"})
	}
	d := net.Dialer{
		Timeout:  shortened.Most(connectTimeout),
		Resolver: g.config.resolver,
		ControlContext: func(ctx context.Context, _, resolved string, _ syscall.RawConn) error {
			if listed {
				return nil
			}
			if reason := g.allow.refusal(resolved); reason != "" {
				return g.refuse(ctx, &RefusedError{Host: host, Address: resolved, Reason: reason})
			}
			return nil
		},
	}
	return d.DialContext(ctx, network, address)
}

// refuse tells the operator what the caller is not told.
func (g *Guard) refuse(ctx context.Context, r *RefusedError) error {
	log := g.config.Log
	if log == nil {
		log = slog.Default()
	}
	log.WarnContext(ctx, "outbound connection refused; the setting egress-allow can permit it", "host", r.Host, "address", r.Address, "reason", r.Reason)
	return r
}
