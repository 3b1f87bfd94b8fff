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
	audit.RetryOwedAfter(20 * time.Millisecond)
	m.Run()
}

// diskFull lets the database refuse entries as on a full disk, and makes room again.
func (n *node) diskFull() (room func()) {
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
			break // no page is free any more
		}
	}
	return func() { n.sql("PRAGMA max_page_count = 1000000") }
}

// An entry that a full disk keeps from being written is in the log as a whole, and in the trail when there is room
// again, with the time of its call.
func TestOwedEntries(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.tags(acme, "a")
		room := n.diskFull()
		var failures int
		for i := range 200 { // on SQLite there is room for some in pages that are there
			call := ada(acme)
			call.RequestID = fmt.Sprintf("r-%d", i)
			if err := n.trail.Append(t.Context(), call, acme, codes.PermissionDenied); err != nil {
				failures++
				if !n.trail.Owe(t.Context(), call, acme, codes.PermissionDenied, err) {
					t.Fatalf("the entry is not kept: %v", err)
				}
			}
		}
		if failures == 0 {
			t.Fatal("the disk is not full")
		}
		if log := n.log.String(); !strings.Contains(log, "will be later") || !strings.Contains(log, "request_id=r-199") || !strings.Contains(log, "192.0.2.7") {
			t.Errorf("the log says %s", log)
		}
		time.Sleep(50 * time.Millisecond)
		full := time.Now()
		room()
		n.wantEntries(201)
		n.wantWhole(acme, 201)
		for _, e := range n.entries(acme)[1:] {
			if e.Code != "PermissionDenied" || e.At > full.UnixMicro() {
				t.Errorf("got %+v", e)
			}
		}
		if !n.trail.Owe(t.Context(), ada(acme), acme, codes.NotFound, errFull) {
			t.Fatal("the entry is not kept")
		}
		must(t, n.trail.Settle(t.Context()))
		n.wantWhole(acme, 202)
		if n.trail.Owe(t.Context(), ada(acme), acme, codes.NotFound, errFull) {
			t.Error("an entry is kept by a trail that has ended")
		}
	})
}

// wantEntries waits until the trail has so many.
func (n *node) wantEntries(want int) {
	n.t.Helper()
	for range 500 {
		if len(n.entries(acme)) == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	n.t.Fatalf("%d entries, want %d", len(n.entries(acme)), want)
}

// Only so many wait, and none for which waiting is of no use.
func TestOwedEntriesAreBounded(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		if n.trail.Owe(t.Context(), ada(acme), acme, codes.NotFound, fmt.Errorf("no such table")) {
			t.Error("an entry waits for nothing")
		}
		room := n.diskFull()
		release := n.trail.HoldOwed() // a full disk may still take a few, which would make room for others
		kept := 0
		for range 1100 {
			if n.trail.Owe(t.Context(), ada(acme), acme, codes.NotFound, errFull) {
				kept++
			}
		}
		release()
		if kept != 1000 {
			t.Errorf("%d entries wait", kept)
		}
		if err := n.trail.Settle(t.Context()); err == nil || !strings.Contains(err.Error(), "the log has them") {
			t.Errorf("got %v", err)
		}
		room()
	})
}
