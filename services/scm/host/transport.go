package host

import (
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
)

// userAgent names us to the hosts; GitHub refuses callers without a name.
const userAgent = "Palisade"

// confined sends requests to one origin only, with the credential. It stands before redirects and whatever links the
// host's answers hold: nothing that the host says makes the credential go elsewhere.
type confined struct {
	origin *url.URL
	token  string
	next   http.RoundTripper
}

// confine returns a client that calls one API with a credential and is otherwise like client,
// whose transport is that of the egress guard.
func confine(client *http.Client, api *url.URL, token string) *http.Client {
	out := *client
	out.Transport = confined{origin: api, token: token, next: client.Transport}
	return &out
}

// RoundTrip refuses other origins. GitLab takes any of its kinds of tokens as a bearer, as GitHub does.
func (c confined) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != c.origin.Scheme || !strings.EqualFold(r.URL.Host, c.origin.Host) {
		return nil, errForeign
	}
	r = r.Clone(r.Context())
	r.Header.Del("Private-Token")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.next.RoundTrip(r)
}

const (
	// perPage is the most that both hosts give.
	perPage = 100
	// maxPages bounds what a host can make us read: 200,000 things.
	maxPages = 2000
)

// paged reads one page after the other. fetch gets the number of the page (from 1) and returns the next one's, 0 after
// the last.
func paged[T any](fetch func(page int) (items []T, next int, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for page := 1; page > 0; {
			items, next, err := fetch(page)
			if err == nil && next != 0 && (next <= page || next > maxPages) {
				err = &Error{Kind: Malformed, Text: fmt.Sprintf("the host's lists do not end: after page %d comes page %d", page, next)}
			}
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			page = next
		}
	}
}

// collect reads all pages.
func collect[T any](pages iter.Seq2[T, error]) ([]T, error) {
	var out []T
	for item, err := range pages {
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}
