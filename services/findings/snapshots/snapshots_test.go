package snapshots

import (
	"context"
	"errors"
	"testing"

	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/internal/store"
)

func TestWatermark(t *testing.T) {
	w := watermark{id: 10}
	for _, step := range []struct {
		what string
		reading
		want int64
	}{
		{"nothing is open", reading{20, 100, 100}, 20},
		{"transaction 100 is open", reading{30, 100, 105}, 20},
		{"it still is, and 110 is", reading{40, 100, 112}, 20},
		{"104 has ended, 105 is open", reading{50, 105, 120}, 30},
		{"119 is open", reading{50, 119, 120}, 40},
		{"nothing is open again", reading{60, 121, 121}, 60},
		{"rows of the end were deleted", reading{50, 122, 122}, 60},
	} {
		if w = w.observe(step.reading); w.id != step.want {
			t.Fatalf("%s: watermark %d, want %d", step.what, w.id, step.want)
		}
	}
	if len(w.readings) != 0 {
		t.Errorf("readings are left: %v", w.readings)
	}
	for i := range int64(1000) {
		w = w.observe(reading{100 + i, 200, 300 + i})
	}
	if len(w.readings) != maxReadings || w.id != 60 {
		t.Errorf("%d readings, watermark %d", len(w.readings), w.id)
	}
	if w = w.observe(reading{1100, 400, 1400}); w.id < 100 || w.id > 1099 {
		t.Errorf("watermark %d", w.id)
	}
}

func openEmpty(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

// fill adds n findings to a deployment, each with an event.
func fill(t *testing.T, st *store.Store, deploymentID int64, n int) {
	t.Helper()
	_, writer := st.DB()
	for _, statement := range []string{
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
		 INSERT INTO findings (deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint, issue_type, severity, state,
			triage_state, status, created_at, relevant_since, state_updated_at, content_hash, content)
		 SELECT ?1, 1, 1, 1, 'refs/heads/main', 'gosec', '', 'print-' || i, 'sast', 'high', 'unresolved', 'untriaged', 'open', 1, 1, 1, 1, x'' FROM n`,
		`INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, actor_kind, actor_id, at)
		 SELECT deployment_id, id, 'created', '', 'open', 'scan', 1, 1 FROM findings WHERE deployment_id = ?1 LIMIT ?2`,
	} {
		if _, err := writer.ExecContext(t.Context(), statement, deploymentID, n); err != nil {
			t.Fatal(err)
		}
	}
}

// The cache keeps the most recently used entries within its size.
func TestSnapshotsAreEvicted(t *testing.T) {
	st := openEmpty(t)
	for id := range int64(4) {
		fill(t, st, id+1, 5000)
	}
	get := func(s *Snapshots, id int64) *columns.Snapshot {
		snapshot, err := s.Of(t.Context(), id)
		if err != nil || snapshot.Len() != 5000 {
			t.Fatalf("deployment %d: %v", id, err)
		}
		return snapshot
	}
	one := get(NewSnapshots(st, 1), 1).Bytes()
	s := NewSnapshots(st, 2*one+one/2)
	first, second := get(s, 1), get(s, 2)
	if get(s, 1) != first {
		t.Error("what has not changed was made again")
	}
	get(s, 3) // the second is the least recently used
	if get(s, 1) != first || get(s, 2) == second {
		t.Error("the wrong one was let go")
	}
	if s.bytes > s.limit || s.entries.Len() != 2 {
		t.Errorf("%d snapshots of %d bytes, want at most %d", s.entries.Len(), s.bytes, s.limit)
	}
	small := NewSnapshots(st, 1)
	if fourth := get(small, 4); get(small, 4) != fourth {
		t.Error("one that is larger than all room is not kept")
	}
}

// A canceled caller neither breaks the snapshot nor blocks others.
func TestCancelledCallers(t *testing.T) {
	st := openEmpty(t)
	fill(t, st, 1, 5000)
	s := NewSnapshots(st, 1<<20)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Of(cancelled, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	e := s.entry(1)
	<-e.turn // another caller builds
	if _, err := s.Of(cancelled, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting: got %v", err)
	}
	e.turn <- struct{}{}
	if snapshot, err := s.Of(t.Context(), 1); err != nil || snapshot.Len() != 5000 {
		t.Errorf("afterwards: %v", err)
	}
}

// A deployment's snapshot has no data of another one, and one event copies only the columns that it changes.
func TestAdvance(t *testing.T) {
	st := openEmpty(t)
	fill(t, st, 1, 9000)
	fill(t, st, 2, 10)
	s := NewSnapshots(st, 1<<30)
	before, err := s.Of(t.Context(), 1)
	if err != nil || before.Len() != 9000 {
		t.Fatal(err)
	}
	table := s.entry(1).table
	_, writer := st.DB()
	for _, deploymentID := range []int64{2, 1} {
		if _, err := writer.ExecContext(t.Context(), `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, actor_kind, actor_id, at)
			SELECT deployment_id, MIN(id), 'fixed', 'open', 'fixed', 'scan', 1, 2 FROM findings WHERE deployment_id = ?`, deploymentID); err != nil {
			t.Fatal(err)
		}
		after, err := s.Of(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if same := after == before; same != (deploymentID == 2) || s.entry(1).table != table {
			t.Errorf("after an event of deployment %d: the same snapshot: %v", deploymentID, same)
		}
	}
}
