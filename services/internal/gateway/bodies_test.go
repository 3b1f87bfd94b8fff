package gateway_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/services/internal/gateway"
)

// Large bodies are decoded one after the other, and none starves.
func TestLargeBodiesTakeTurns(t *testing.T) {
	s := &recorder{}
	s.answer = answerEmpty(s)
	server := start(t, s, func(config *gateway.Config) { config.MaxBody = 256 << 10 })
	body := `{"unknown":"` + strings.Repeat("x", 250<<10) + `"}`
	var all sync.WaitGroup
	for range 7 { // the limit of one caller
		all.Go(func() {
			response, text := do(t, "POST", server.URL+"/api/v1/deployments/7/scans/search", body)
			if response.StatusCode != 200 {
				t.Errorf("%d %s", response.StatusCode, text)
			}
		})
	}
	all.Wait()
}
