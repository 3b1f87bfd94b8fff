package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/palisade/palisade/services/internal/egress/internal/shortened"
)

// Limits limit one kind of call. Zero values mean the defaults, never "no limit".
type Limits struct {
	// Timeout covers the whole call: connecting, sending, the response body and redirects. 0 means 30 s. After it, the
	// connection is closed.
	Timeout time.Duration
	// MaxResponse is in bytes after decompression. 0 means 4 MiB. Reading more of the body returns a [*TooLargeError].
	MaxResponse int64
	// MaxRedirects is how many redirects are followed. Each target is checked. With 0 the redirect itself is the
	// response.
	MaxRedirects int
}

const (
	defaultTimeout     = 30 * time.Second
	defaultMaxResponse = 4 << 20
	// silentTimeout is how long an HTTP/2 connection may be silent before a ping checks it.
	silentTimeout = 15 * time.Second
)

// errRedirect is a redirect that is refused for another reason than its address.
var errRedirect = errors.New("egress: redirect refused")

// Client returns a client that passes every connection through the guard. Its transport may be given to libraries that
// build their own client: the check, the timeout, the body limit and the user agent belong to the transport.
func (g *Guard) Client(l Limits) *http.Client {
	if l.Timeout <= 0 {
		l.Timeout = defaultTimeout
	}
	if l.MaxResponse <= 0 {
		l.MaxResponse = defaultMaxResponse
	}
	return &http.Client{
		Transport:     &guarded{guard: g, timeout: l.Timeout, maxResponse: l.MaxResponse},
		CheckRedirect: func(next *http.Request, via []*http.Request) error { return checkRedirect(next, via, l.MaxRedirects) },
	}
}

// newTransport uses no proxy, because a proxy would connect on our behalf and bypass the check. A network that requires
// a proxy needs a transparent one.
func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		ForceAttemptHTTP2:      true, // a custom dialer would turn it off
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    shortened.Most(connectTimeout),
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes, // of all 1xx responses and the final one together
		MaxConnsPerHost:        maxConnsPerHost,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        60 * time.Second,
		// Calls over HTTP/2 share a connection that outlives each of them. A connection whose host is silent or reads
		// nothing is closed.
		HTTP2: &http.HTTP2Config{SendPingTimeout: silentTimeout, PingTimeout: connectTimeout, WriteByteTimeout: silentTimeout},
	}
}

// keptHeaders are sent to another origin. Every other header may be a credential, regardless of its name.
var keptHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Accept-Language": true, "Content-Type": true, "User-Agent": true,
}

// checkRedirect decides which headers a redirect keeps. RoundTrip decides whether the target may be called.
func checkRedirect(next *http.Request, via []*http.Request, most int) error {
	if most <= 0 {
		return http.ErrUseLastResponse
	}
	if len(via) > most {
		return ErrTooManyRedirects
	}
	first, previous := via[0].URL, via[len(via)-1].URL
	if previous.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("%w: from https to %q", errRedirect, next.URL.Scheme)
	}
	next.Header.Del("Referer") // the path of a webhook is secret
	for _, hop := range append(via[1:len(via):len(via)], next) {
		if sameOrigin := hop.URL.Scheme == first.Scheme && strings.EqualFold(hop.URL.Host, first.Host); sameOrigin {
			continue
		}
		if next.Body != nil && next.Body != http.NoBody {
			return fmt.Errorf("%w: the body is for another host", errRedirect)
		}
		for name := range next.Header {
			if !keptHeaders[name] {
				next.Header.Del(name)
			}
		}
	}
	return nil
}

// guarded checks the URL of each request and adds what http.Transport has no setting for.
type guarded struct {
	guard       *Guard
	timeout     time.Duration
	maxResponse int64
}

// RoundTrip implements http.RoundTripper. It has its own timeout, which continues while the body is read, because many
// libraries accept a transport but no client.
func (t *guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.guard.checkParsed(r.URL); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, t.guard.refuse(r.Context(), &RefusedError{Host: r.URL.Host, Reason: "the URL " + err.Error()})
	}
	ctx, cancel := context.WithDeadline(r.Context(), t.deadline(r))
	r = r.Clone(ctx) // a round tripper must not change its request
	if agent := t.guard.config.UserAgent; agent != "" {
		r.Header.Set("User-Agent", agent)
	}
	response, err := t.guard.transport.RoundTrip(r)
	if err != nil {
		cancel()
		return nil, err
	}
	if _, isConnection := response.Body.(io.Writer); isConnection || response.StatusCode == http.StatusSwitchingProtocols {
		_ = response.Body.Close() // the body is the connection, which no context closes
		cancel()
		return nil, ErrUpgrade
	}
	response.Body = &cappedBody{
		body: response.Body, end: cancel, left: t.maxResponse, limit: t.maxResponse,
		tooLarge: response.ContentLength > t.maxResponse && r.Method != http.MethodHead,
	}
	return response, nil
}

// deadline is when a call must end. A redirect has the remaining time of the original call.
func (t *guarded) deadline(r *http.Request) time.Time {
	until := time.Now().Add(shortened.Most(t.timeout))
	if r.Response != nil && r.Response.Request != nil {
		if first, ok := r.Response.Request.Context().Deadline(); ok && first.Before(until) {
			return first
		}
	}
	return until
}

// CloseIdleConnections makes http.Client.CloseIdleConnections work.
func (t *guarded) CloseIdleConnections() { t.guard.transport.CloseIdleConnections() }

// cappedBody returns an error for a body that is too large, not EOF: a truncated response must not look complete. At
// its end the connection is closed or returned to the pool.
type cappedBody struct {
	body        io.ReadCloser
	end         context.CancelFunc
	left, limit int64 // bytes
	tooLarge    bool
}

func (b *cappedBody) Read(p []byte) (int, error) {
	if b.tooLarge {
		b.end()
		return 0, &TooLargeError{b.limit}
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more byte distinguishes a body of exactly the limit from a larger one
	}
	n, err := b.body.Read(p)
	if int64(n) > b.left {
		b.tooLarge = true
		b.end()
		return int(b.left), &TooLargeError{b.limit}
	}
	b.left -= int64(n)
	if err != nil {
		b.end()
	}
	if err != nil && err != io.EOF {
		err = bodyError{err}
	}
	return n, err
}

func (b *cappedBody) Close() error {
	err := b.body.Close()
	b.end()
	return err
}
