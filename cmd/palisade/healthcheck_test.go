package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHealthcheck(t *testing.T) {
	dir, metrics := t.TempDir(), freeAddress(t)
	environ := []string{"PALISADE_DATA=" + dir, "PALISADE_METRICS=" + metrics}
	if got := palisade(t, "", environ, "healthcheck"); got.status != exitError || !strings.Contains(got.err, "no server answers") {
		t.Errorf("without a server: status %d, %s", got.status, got.err)
	}
	startServer(t, dir, "--metrics", metrics)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := palisade(t, "", environ, "healthcheck")
		if got.status == exitOK {
			wantParts(t, got.out, "ok\n")
			break
		}
		if time.Now().After(end) {
			t.Fatalf("with a server: status %d, %s%s", got.status, got.out, got.err)
		}
	}
}

func TestHealthcheckOfAServerThatIsNotReady(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	got := palisade(t, "", []string{"PALISADE_METRICS=127.0.0.1:" + port}, "healthcheck")
	if got.status != exitNo {
		t.Errorf("status %d, %s", got.status, got.err)
	}
	wantParts(t, got.out, "the database does not answer")
}
