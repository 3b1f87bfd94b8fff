package channel

import (
	"context"
	"net/http"
)

// answer holds the status and header of the last response to a request made by a library. The libraries do not expose
// them.
type answer struct {
	status int
	header http.Header
}

type answerKey struct{}

// withAnswer returns a context that records responses of requests sent through noting.
func withAnswer(ctx context.Context) (context.Context, *answer) {
	a := &answer{}
	return context.WithValue(ctx, answerKey{}, a), a
}

// answerTransport records each response in the context of its request.
type answerTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n answerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(r)
	if a, ok := r.Context().Value(answerKey{}).(*answer); ok && err == nil {
		a.status, a.header = response.StatusCode, response.Header
	}
	return response, err
}
