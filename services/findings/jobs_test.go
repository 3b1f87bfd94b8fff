package findings

import (
	"context"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/pageboundary"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// The job deletes expired cursors from the database, and keeps the others.
func TestExpiredCursorsAreDeleted(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, store.Options{Database: storetest.Postgres(t)})
	system, now := tenant.System(t.Context()), store.Now()
	err := st.Write(system, func(ctx context.Context, tx *ent.Tx) error {
		for i, age := range []int64{0, list.CursorTTL.Microseconds(), 2 * list.CursorTTL.Microseconds()} {
			err := tx.PageBoundary.Create().SetDeploymentID(int64(1 + i)).SetList([]byte("a list")).SetRows(100).
				SetWalk(1).SetRelevantSince(1).SetFindingID(1).SetEnded(false).SetServedAt(now - age).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&expireCursorsWorker{store: st}).Work(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	left := st.Reader.PageBoundary.Query().Order(ent.Asc(pageboundary.FieldDeploymentID)).AllX(system)
	if len(left) != 2 || left[0].DeploymentID != 1 || left[1].DeploymentID != 2 {
		t.Errorf("%v are left, want the cursors of deployments 1 and 2", left)
	}
}
