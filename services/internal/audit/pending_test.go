package audit_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/services/internal/audit"
)

var errFull = syscall.ENOSPC

func TestMain(m *testing.M) {
	audit.SetRetryInterval(20 * time.Millisecond)
	m.Run()
}

// diskFull makes the database reject entries as on a full disk. freeSpace ends that.
func (n *node) diskFull() (freeSpace func()) {
	n.t.Helper()
	if n.store.Postgres() {
		n.sql(`CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$`)
		n.sql("CREATE TRIGGER disk_full BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION disk_full()")
		return func() { n.sql("DROP TRIGGER disk_full ON audit_entries") }
	}
	n.sql("CREATE TABLE filler (content BLOB)")
	_, writer := n.store.DB()
	var pages int
	must(n.t, writer.QueryRowContext(n.t.Context(), "PRAGMA page_count").Scan(&pages))
	n.sql(fmt.Sprintf("PRAGMA max_page_count = %d", pages))
	for {
		if _, err := writer.ExecContext(n.t.Context(), "INSERT INTO filler VALUES (zeroblob(1000))"); err != nil {
			break // no page is free
		}
	}
	return func() { n.sql("PRAGMA max_page_count = 1000000") }
}

// TestPendingEntries: an entry that cannot be written to a full disk is logged in full. It is written, with the
// time of its call, when there is space.
func TestPendingEntries(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.tags(acme, "a")
		freeSpace := n.diskFull()
		var failures int
		for i := range 200 { // on SQLite, allocated pages have space for some
			call := ada(acme)
			call.RequestID = fmt.Sprintf("r-%d", i)
			if err := n.trail.Append(t.Context(), call, acme, codes.PermissionDenied); err != nil {
				failures++
				if !n.trail.AppendLater(t.Context(), call, acme, codes.PermissionDenied, err) {
					t.Fatalf("the entry is not kept: %v", err)
				}
			}
		}
		if failures == 0 {
			t.Fatal("the disk is not full")
		}
		if log := n.log.String(); !strings.Contains(log, "will be retried") || !strings.Contains(log, "request_id=r-199") || !strings.Contains(log, "192.0.2.7") {
			t.Errorf("the log says %s", log)
		}
		time.Sleep(50 * time.Millisecond)
		full := time.Now()
		freeSpace()
		n.wantEntries(201)
		n.wantIntact(acme, 201)
		for _, e := range n.entries(acme)[1:] {
			if e.Code != "PermissionDenied" || e.At > full.UnixMicro() {
				t.Errorf("got %+v", e)
			}
		}
		if !n.trail.AppendLater(t.Context(), ada(acme), acme, codes.NotFound, errFull) {
			t.Fatal("the entry is not kept")
		}
		must(t, n.trail.Close(t.Context()))
		n.wantIntact(acme, 202)
		if n.trail.AppendLater(t.Context(), ada(acme), acme, codes.NotFound, errFull) {
			t.Error("an entry is kept after Close")
		}
	})
}

// wantEntries waits until the trail has this number of entries.
func (n *node) wantEntries(want int) {
	n.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if len(n.entries(acme)) == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	n.t.Fatalf("%d entries, want %d", len(n.entries(acme)), want)
}

// TestPendingEntriesAreBounded: the number of pending entries is limited, and none is kept when a retry cannot
// help.
func TestPendingEntriesAreBounded(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		if n.trail.AppendLater(t.Context(), ada(acme), acme, codes.NotFound, fmt.Errorf("no such table")) {
			t.Error("an entry is kept although a retry cannot help")
		}
		freeSpace := n.diskFull()
		release := n.trail.HoldPending() // a full disk may still accept a few, which would free slots for others
		kept := 0
		for range 1100 {
			if n.trail.AppendLater(t.Context(), ada(acme), acme, codes.NotFound, errFull) {
				kept++
			}
		}
		release()
		if kept != 1000 {
			t.Errorf("%d entries are pending", kept)
		}
		if err := n.trail.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "the log has them") {
			t.Errorf("got %v", err)
		}
		freeSpace()
	})
}
