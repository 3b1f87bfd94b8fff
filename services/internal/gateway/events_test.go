package gateway

import "testing"

func TestAcceptsEvents(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"text/event-stream":                          true,
		"Text/Event-Stream; charset=utf-8":           true,
		"application/json, text/event-stream;q=0.5":  true,
		"text/event-stream;q=0":                      false,
		"application/json, text/event-stream; q=0.0": false,
		"text/event-stream;q=0, text/event-stream":   true,
		"*/*":              false,
		"application/json": false,
		"":                 false,
	} {
		if got := acceptsEvents(accept); got != want {
			t.Errorf("%q: %v, want %v", accept, got, want)
		}
	}
}
