package clone

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// confined sends requests to one host only, before redirects or other links lead elsewhere, because requests carry the
// credential. It stores the first error, because the library keeps only the text of many errors.
type confined struct {
	scheme, host string
	// list requests the list of refs, next everything else.
	list, next http.RoundTripper

	mu      sync.Mutex
	failure error
}

// RoundTrip rejects other hosts.
func (c *confined) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.EqualFold(r.URL.Scheme, c.scheme) || !strings.EqualFold(r.URL.Host, c.host) {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, c.failed(errOtherHost)
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
		response.Body = http.NoBody // its content is unused, but the library would read all of it
	}
	response.Body = trackedBody{response.Body, c}
	return response, nil
}

// failed stores the first error and returns it.
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

// trackedBody stores the error that ended a body early.
type trackedBody struct {
	io.ReadCloser
	of *confined
}

func (b trackedBody) Read(p []byte) (int, error) {
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
