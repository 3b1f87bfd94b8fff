package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPeers: building PocketBase needs the network, so the server itself takes its place here, and every limit on the
// peer's higher cost is missed.
func TestPeers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b, err := newBench(t.Context(), options{findings: minFindings, rounds: 1, cpu: 50 * time.Millisecond}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	ours, err := b.oursAmongPeers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := *ours
	other.name = "other"
	rows, err := b.comparePeers(t.Context(), ours, &other)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if len(r.value) != 1 || r.value[0] <= 0 || (r.bar != nil) != strings.HasPrefix(r.what, "other: ") {
			t.Errorf("got %+v", r)
		}
	}
	other.list = b.client.findingsPath(pageQuery{Status: "open", Severity: "low"})
	if err := samePages(t.Context(), ours, &other, 1); err == nil || !strings.Contains(err.Error(), "are not ours") {
		t.Errorf("other findings: got %v", err)
	}
	log, err := os.ReadFile(filepath.Join(b.settings.Data, logFile))
	if err != nil || !bytes.Contains(log, []byte("level=INFO msg=call ")) { // the measured server logs its calls
		t.Errorf("no call in the log (%v):\n%s", err, log)
	}
}
