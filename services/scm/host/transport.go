package host

import (
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
)

// userAgent identifies Palisade; GitHub rejects requests without a User-Agent.
const userAgent = "Palisade"

// confined sends requests with the credential to one origin only. It wraps the transport below redirects and links, so
// that no response of the host can send the credential elsewhere.
type confined struct {
	origin        *url.URL
	authorization string
	next          http.RoundTripper
}

// Confine returns a client that calls one API with a header Authorization, which may be empty. Otherwise it equals
// client, which uses the egress guard's transport.
func Confine(client *http.Client, api *url.URL, authorization string) *http.Client {
	out := *client
	out.Transport = confined{origin: api, authorization: authorization, next: client.Transport}
	return &out
}

// bearer begins the header Authorization. GitLab accepts all its token types as bearer tokens, like GitHub.
const bearer = "Bearer "

func confine(client *http.Client, api *url.URL, token string) *http.Client {
	if token != "" {
		token = bearer + token
	}
	return Confine(client, api, token)
}

// RoundTrip rejects other origins.
func (c confined) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != c.origin.Scheme || !strings.EqualFold(r.URL.Host, c.origin.Host) {
		return nil, errOtherOrigin
	}
	r = r.Clone(r.Context())
	r.Header.Del("Private-Token")
	if c.authorization != "" {
		r.Header.Set("Authorization", c.authorization)
	}
	return c.next.RoundTrip(r)
}

const (
	// pageSize is the maximum of both hosts.
	pageSize = 100
	// maxPages limits the data that a host can make us read: 200,000 items.
	maxPages = 2000
)

// paged reads one page after the other. fetch gets the page number (from 1) and returns the next one, 0 after the last.
func paged[T any](fetch func(page int) (items []*T, next int, err error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for page := 1; page > 0; {
			items, next, err := fetch(page)
			items, err = checkList(items, err)
			if err == nil && next != 0 && (next <= page || next > maxPages) {
				err = &Error{Kind: Malformed, Text: fmt.Sprintf("the host's lists do not end: after page %d comes page %d", page, next)}
			}
			if err != nil {
				yield(nil, err)
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

// convert converts the items of pages. It ends after an error.
func convert[T, U any](pages iter.Seq2[*T, error], to func(*T) (U, error)) iter.Seq2[U, error] {
	return func(yield func(U, error) bool) {
		for item, err := range pages {
			var out U
			if err == nil {
				out, err = to(item)
			}
			if !yield(out, err) || err != nil {
				return
			}
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
