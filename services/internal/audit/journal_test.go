package audit_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/services/internal/audit"
)

// refuse leaves entries of refused calls pending, and returns their number.
func (n *node) refuse(calls int) (pending int) {
	n.t.Helper()
	for i := range calls {
		call := ada(acme)
		call.RequestID = fmt.Sprintf("refused-%d", i)
		if err := n.trail.Append(n.t.Context(), call, acme, codes.PermissionDenied); err != nil {
			pending++
			if !n.trail.AppendLater(n.t.Context(), call, acme, codes.PermissionDenied, err) {
				n.t.Fatalf("the entry is not kept: %v", err)
			}
		}
	}
	if pending == 0 {
		n.t.Fatal("the disk is not full")
	}
	return pending
}

// restart opens the trail as a server does at its next start.
func (n *node) restart(journal string) {
	n.t.Helper()
	var err error
	n.trail, err = audit.Open(n.t.Context(), n.store, n.keyring, slog.New(slog.NewTextHandler(n.log, nil)))
	must(n.t, err)
	must(n.t, n.trail.KeepPending(n.t.Context(), journal))
}

func wantWaiting(t *testing.T, journal string, want audit.Waiting) {
	t.Helper()
	if got, err := audit.ReadWaiting(journal); err != nil || got != want {
		t.Errorf("%+v wait, %v; want %+v", got, err, want)
	}
}

// TestPendingEntriesSurviveTheProcess: entries that a full disk does not take are in a file when the server stops, and
// the next start takes each of them in once.
func TestPendingEntriesSurviveTheProcess(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		journal := filepath.Join(t.TempDir(), "audit-pending")
		wantWaiting(t, journal, audit.Waiting{})
		n.restart(journal)
		wantWaiting(t, journal, audit.Waiting{})
		n.tags(acme, "a")
		freeSpace := n.diskFull()
		pending := n.refuse(200)
		wantWaiting(t, journal, audit.Waiting{Entries: pending})
		if err := n.trail.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "the next start takes them in") {
			t.Errorf("got %v", err)
		}
		wantWaiting(t, journal, audit.Waiting{Entries: pending})
		freeSpace()
		content, err := os.ReadFile(journal)
		must(t, err)
		for range 2 { // the second time as if the process had been killed before it emptied the file
			must(t, os.WriteFile(journal, content, 0o600))
			n.restart(journal)
			n.wantEntries(201)
			must(t, n.trail.Close(t.Context()))
			n.wantEntries(201)
			n.wantIntact(acme, 201)
			wantWaiting(t, journal, audit.Waiting{})
		}

		forged := strings.Replace(string(content), "PermissionDenied", "OK", 1)
		must(t, os.WriteFile(journal, []byte(strings.Replace(forged, "refused-", "forged-", 1)), 0o600))
		n.restart(journal)
		must(t, n.trail.Close(t.Context()))
		n.wantEntries(201)
		if !strings.Contains(n.log.String(), "was edited") {
			t.Error("the log does not say that an entry was edited")
		}
	})
}

// TestLostEntriesAreRecorded: entries that not even the file could take are counted in it, and the next start records
// the loss in each trail.
func TestLostEntriesAreRecorded(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		journal := filepath.Join(t.TempDir(), "audit-pending")
		n.restart(journal)
		n.trail.JournalIsFull()
		freeSpace := n.diskFull()
		pending := n.refuse(200)
		wantWaiting(t, journal, audit.Waiting{Lost: pending})
		if err := n.trail.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "were lost") {
			t.Errorf("got %v", err)
		}
		n.trail.HoldPending()() // after a retry that Close has overtaken
		lost, err := audit.ReadWaiting(journal)
		must(t, err)
		freeSpace()
		before := len(n.entries(acme))
		n.restart(journal)
		n.wantEntries(before + 1)
		must(t, n.trail.Close(t.Context()))
		last := n.entries(acme)[before]
		if last.Method != "audit/lost" || last.Code != "DataLoss" || last.Request != fmt.Sprintf(`{"entries":"%d"}`, lost.Lost) {
			t.Errorf("got %+v", last)
		}
		n.wantIntact(globex, 1)
		wantWaiting(t, journal, audit.Waiting{})
	})
}
