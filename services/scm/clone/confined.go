package clone

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// confined calls one host alone, before redirects and whatever else leads elsewhere: the credential goes along. It
// remembers what went wrong, because the library keeps no more than the text of many errors.
type confined struct {
	scheme, host string
	// list asks for the list of refs, next for all else.
	list, next http.RoundTripper

	mu      sync.Mutex
	failure error
}

// RoundTrip refuses other hosts.
func (c *confined) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.EqualFold(r.URL.Scheme, c.scheme) || !strings.EqualFold(r.URL.Host, c.host) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, c.failed(errElsewhere)
	}
	next := c.next
	if r.Method == http.MethodGet {
		next = c.list
	}
	response, err := next.RoundTrip(r)
	if err != nil {
		return nil, c.failed(err)
	}
	if response.StatusCode >= 400 {
		_ = c.failed(statusError(response.StatusCode))
	}
	if response.StatusCode >= 300 {
		_ = response.Body.Close()
		response.Body = http.NoBody // nobody may read what it says, but the library would, all of it
	}
	response.Body = watchedBody{response.Body, c}
	return response, nil
}

// failed remembers the first error, and returns it.
func (c *confined) failed(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
	}
	return err
}

func (c *confined) firstFailure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// watchedBody remembers why an answer broke off.
type watchedBody struct {
	io.ReadCloser
	of *confined
}

func (b watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		_ = b.of.failed(err)
	}
	return n, err
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
