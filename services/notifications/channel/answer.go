package channel

import (
	"context"
	"net/http"
)

// answer is the status line and header of the last answer to a call that a library made: libraries keep to themselves
// what they do not need.
type answer struct {
	status int
	header http.Header
}

type answerKey struct{}

// withAnswer returns a context whose calls through noting fill in the answer.
func withAnswer(ctx context.Context) (context.Context, *answer) {
	a := &answer{}
	return context.WithValue(ctx, answerKey{}, a), a
}

// noting writes each answer into the context of its request.
type noting struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(r)
	if a, ok := r.Context().Value(answerKey{}).(*answer); ok && err == nil {
		a.status, a.header = response.StatusCode, response.Header
	}
	return response, err
}
