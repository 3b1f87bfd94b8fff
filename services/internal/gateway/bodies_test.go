package gateway_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/services/internal/gateway"
)

// Large bodies are in work four at once, and all of them get their turn.
func TestLargeBodiesTakeTurns(t *testing.T) {
	var working, most atomic.Int64
	s := &recorder{}
	empty := answerEmpty(s)
	s.answer = func(ctx context.Context, request proto.Message) (proto.Message, error) {
		now := working.Add(1)
		defer working.Add(-1)
		for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
		}
		return empty(ctx, request)
	}
	server := start(t, s, func(config *gateway.Config) { config.MaxBody = 256 << 10 })
	body := `{"unknown":"` + strings.Repeat("x", 250<<10) + `"}`
	var all sync.WaitGroup
	for range 8 { // which is what one caller may send at once
		all.Go(func() {
			response, text := do(t, "POST", server.URL+"/api/v1/deployments/7/scans/search", body)
			if response.StatusCode != 200 {
				t.Errorf("%d %s", response.StatusCode, text)
			}
		})
	}
	all.Wait()
	if most.Load() > 4 {
		t.Errorf("%d were in work at once, want 4 at most", most.Load())
	}
}
