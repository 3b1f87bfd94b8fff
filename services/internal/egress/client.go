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

// Limits bound one kind of call. Zero values are the defaults, never "no limit".
type Limits struct {
	// Timeout is for the whole call: connecting, sending, the answer's body and redirects; 0 is 30 s. When it is over, the
	// connection is closed.
	Timeout time.Duration
	// MaxResponse is in bytes, after decompression; 0 is 4 MiB. Reading more of the body is a [*TooLargeError].
	MaxResponse int64
	// MaxRedirects is how many redirects are followed; each target is checked. With 0 the caller gets the redirect itself
	// as the answer.
	MaxRedirects int
}

const (
	defaultTimeout     = 30 * time.Second
	defaultMaxResponse = 4 << 20
	// silentTimeout is how long a connection of HTTP/2 may carry nothing before the host is asked whether it is there.
	silentTimeout = 15 * time.Second
)

// errRedirect is a redirect that is not followed for another reason than its address.
var errRedirect = errors.New("egress: redirect refused")

// Client returns a client whose every connection the guard checks. Its transport may be handed to libraries that make a
// client of their own; they keep the check, the limit of time, the cap of the body and the name we call ourselves.
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

// newTransport has no proxy: one would connect for us, behind the check. An operator whose network has only a proxy
// needs one that is transparent.
func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		ForceAttemptHTTP2:      true, // a dialer of our own would turn it off
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    shortened.Most(connectTimeout),
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes, // of all 1xx answers and the last one together
		MaxConnsPerHost:        maxConnsPerHost,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        60 * time.Second,
		// Calls over HTTP/2 share a connection, which outlives each of them. One whose host is silent, or reads nothing,
		// ends.
		HTTP2: &http.HTTP2Config{SendPingTimeout: silentTimeout, PingTimeout: connectTimeout, WriteByteTimeout: silentTimeout},
	}
}

// keptHeaders go along to another origin; every other header may be a credential, under whatever name.
var keptHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Accept-Language": true, "Content-Type": true, "User-Agent": true,
}

// checkRedirect decides what may go along; whether the target may be called at all is RoundTrip's to say.
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
	next.Header.Del("Referer") // the path of a webhook is its secret
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

// guarded checks each request's URL, and adds to request and answer what the transport itself has no setting for.
type guarded struct {
	guard       *Guard
	timeout     time.Duration
	maxResponse int64
}

// RoundTrip implements http.RoundTripper. The limit of time is its own, and goes on while the body is read: many
// libraries take a transport and nothing else of a client.
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
		_ = response.Body.Close() // it is the connection, which no end of a context closes
		cancel()
		return nil, ErrUpgrade
	}
	response.Body = &cappedBody{
		body: response.Body, end: cancel, left: t.maxResponse, limit: t.maxResponse,
		tooLarge: response.ContentLength > t.maxResponse && r.Method != http.MethodHead,
	}
	return response, nil
}

// deadline is when a call has to be over. A redirect has what is left of the call that led to it.
func (t *guarded) deadline(r *http.Request) time.Time {
	until := time.Now().Add(shortened.Most(t.timeout))
	if r.Response != nil && r.Response.Request != nil {
		if first, ok := r.Response.Request.Context().Deadline(); ok && first.Before(until) {
			return first
		}
	}
	return until
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the pool.
func (t *guarded) CloseIdleConnections() { t.guard.transport.CloseIdleConnections() }

// cappedBody ends a body that is larger than allowed with an error, not with EOF: half an answer must not pass for a
// whole one. Whatever ends it closes the connection, or gives it back.
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
		p = p[:b.left+1] // one byte more tells a body that just fits from one that is too large
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
