package egress_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
)

// Tenants may have their receivers on one host. The maximum of concurrent calls of a node (64 messages, and the steps
// of workflows) without an answer does not block another call.
func TestCallsToOneHostDoNotWaitForEachOther(t *testing.T) {
	const silent = 100
	begun, end := make(chan struct{}, silent), make(chan struct{})
	host := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			begun <- struct{}{}
			<-end
		}
	}))
	t.Cleanup(host.Close)
	t.Cleanup(func() { close(end) })
	client := newGuard(t, nil).Client(egress.Limits{Timeout: 5 * time.Minute})
	for range silent {
		go func() {
			if response, err := client.Get(host.URL + "/silent"); err == nil {
				_ = response.Body.Close()
			}
		}()
	}
	for range silent {
		select {
		case <-begun:
		case <-time.After(2 * time.Minute):
			t.Fatal("calls wait for each other")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host.URL+"/quick", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}
