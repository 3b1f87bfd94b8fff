package jobs

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// TestAuditOfJobs: a job that changes something writes an audit entry in the deployment of the change; other jobs
// write none.
func TestAuditOfJobs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, out := newLogger(t)
		keyring, err := secret.Open(filepath.Join(t.TempDir(), "key"), true)
		if err != nil {
			t.Fatal(err)
		}
		trail, err := audit.Open(t.Context(), st, keyring, log)
		if err != nil {
			t.Fatal(err)
		}
		notes := newNotes()
		notes.work = func(ctx context.Context, text string) error {
			return st.Write(tenant.System(ctx), func(ctx context.Context, _ *ent.Tx) error {
				if text == "change" {
					audit.Change(tenant.NewContext(ctx, 7), "finding", 3, nil, nil)
				}
				return nil
			})
		}
		j := newJobs(t, st, log, Work{Register: notes.register})
		j.Audited(trail)
		done := events(t, j, river.EventKindJobCompleted)
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(t, j) })
		enqueue(t, st, j, note{Text: "read"}, note{Text: "change"})
		receive(t, done)
		receive(t, done)
		entries := st.Reader.AuditEntry.Query().AllX(tenant.System(t.Context()))
		if len(entries) != 1 {
			t.Fatalf("%d entries, want 1", len(entries))
		}
		e := entries[0]
		if e.DeploymentID != 7 || e.ActorKind != "job" || e.ActorName != "note" || e.Method != "note" || e.ActorID == 0 || len(e.RequestID) < 5 || e.Sequence != 1 {
			t.Errorf("got %+v", e)
		}
		out.requireQuiet(t)
	})
}
