package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A part that does not close does not keep the process from ending. The error names it.
func TestCloseOfAPartThatHangs(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	defer close(hangs)
	c := closer{"hanging part", func(context.Context) error { <-hangs; return nil }}
	if err := c.closeWithin(t.Context(), 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "is abandoned") {
		t.Errorf("got %v", err)
	}
	broken := errors.New("broken")
	c.close = func(context.Context) error { return broken }
	if err := c.closeWithin(t.Context(), time.Minute); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
