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

// Config configures a Guard.
type Config struct {
	// Allow lists permitted private destinations, separated by commas: host, host:port, address, address:port, range
	// (10.0.0.0/8) and range:port. A host permits all addresses that its name has at the time of the call.
	Allow string
	// UserAgent is the User-Agent header of all requests.
	UserAgent string
	// Log gets a line for each refused connection, with the address that callers do not see. nil is slog.Default().
	Log *slog.Logger

	resolver *net.Resolver // for tests; nil is the system's resolver
}

// Limits of a Guard, in addition to the limits of a call.
const (
	connectTimeout = 10 * time.Second
	maxHeaderBytes = 64 << 10
	// maxConnsPerHost prevents one slow receiver from using all sockets. All background work of a node makes fewer
	// concurrent calls, so tenants whose receivers are on one host do not block each other.
	maxConnsPerHost = 256
)

// Guard makes the connections of all outbound calls. It is safe for use by several goroutines.
type Guard struct {
	config    Config
	allow     allowList
	transport *http.Transport
}

// New returns a Guard. The error names every invalid entry of the allow list.
func New(c Config) (*Guard, error) {
	allow, err := parseAllowList(c.Allow)
	if err != nil {
		return nil, err
	}
	g := &Guard{config: c, allow: allow}
	g.transport = newTransport(g.dial)
	return g, nil
}

// Allowing returns a guard that also permits one host:port, regardless of its address. It is for a host that the
// operator configures outside the allow list, such as the mail server.
func (g *Guard) Allowing(hostPort string) (*Guard, error) {
	c := g.config
	c.Allow = strings.Trim(c.Allow+","+hostPort, ",")
	return New(c)
}

// Listed reports whether the operator's allow list names the host, or contains it when host is an address. port is the
// destination port.
func (g *Guard) Listed(host string, port uint16) bool {
	return g.allow.hostListed(normalHost(host), port) || g.allow.literalListed(host, port)
}

// dial connects. It checks the address after resolution and before the first packet, so a name that resolves
// differently each time gains nothing. A refused address returns an error that is [ErrRefused]. UDP sends without a
// handshake and is permitted only to hosts on the allow list.
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

// refuse logs the details that callers do not see.
func (g *Guard) refuse(ctx context.Context, r *RefusedError) error {
	log := g.config.Log
	if log == nil {
		log = slog.Default()
	}
	log.WarnContext(ctx, "outbound connection refused; the setting egress-allow can permit it", "host", r.Host, "address", r.Address, "reason", r.Reason)
	return r
}
