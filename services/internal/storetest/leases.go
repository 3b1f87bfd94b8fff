package storetest

import (
	"context"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// EndLeases expires all leases, for a test that has killed the only process and cannot wait for them.
func EndLeases(t testing.TB, st *store.Store) {
	t.Helper()
	now := store.Now()
	err := st.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
		for _, table := range []struct{ name, until string }{
			{"deliveries", "locked_until"}, {"webhook_events", "due_at"}, {"workflow_attempts", "lease_until"},
		} {
			query := "UPDATE " + table.name + " SET " + table.until + " = ? WHERE " + table.until + " > ?"
			if err := st.Exec(ctx, tx, query, now, now); err != nil {
				return err
			}
		}
		return st.Exec(ctx, tx, "DELETE FROM river_leader") // the leader, which starts periodic jobs
	})
	if err != nil {
		t.Fatal(err)
	}
}
