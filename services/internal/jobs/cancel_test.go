package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// fill inserts n jobs with SQL. %d in args is replaced by the job's number, from 1.
func fill(t testing.TB, st *store.Store, n int, kind, queue, state, args string) {
	t.Helper()
	_, writer := st.DB()
	query := "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < %d) "
	now, text := "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-1 second')", "'"+args+"'"
	if st.Postgres() {
		query, now = "WITH s AS (SELECT generate_series(1, %d) AS i) ", "now() - interval '1 second'"
	}
	if strings.Contains(args, "%d") {
		text = "replace('" + strings.ReplaceAll(args, "%d", "#") + "', '#', CAST(i AS text))"
	}
	if st.Postgres() {
		text = "(" + text + ")::jsonb"
		state = "'" + state + "'::river_job_state"
	} else {
		state = "'" + state + "'"
	}
	query = fmt.Sprintf(query, n) + "INSERT INTO river_job (kind, args, max_attempts, queue, priority, state, scheduled_at) SELECT '" + kind + "', " + text + ", 25, '" +
		queue + "', 1, " + state + ", " + strings.ReplaceAll(now, "%%", "%") + " FROM s"
	if _, err := writer.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

// TestCancelWaiting: all waiting jobs of the run are deleted, in any waiting state. Running jobs, finished jobs and
// the jobs of others stay.
func TestCancelWaiting(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		log, _ := newLogger(t)
		j := newJobs(t, st, log, Work{Register: newNotes().register})
		const mine = `{"deployment_id": 1, "run_id": 7, "text": "%d"}`
		for _, state := range []string{"available", "scheduled", "retryable", "pending"} {
			fill(t, st, 100, "note", "default", state, mine)
		}
		fill(t, st, 1, "note", "default", "running", mine)
		fill(t, st, 1, "note", "other", "available", mine)
		fill(t, st, 1, "note", "default", "available", `{"deployment_id": 2, "run_id": 7}`)
		fill(t, st, 1, "note", "default", "available", `{"deployment_id": 1, "run_id": 8}`)
		fill(t, st, 1, "note", "default", "available", `{"deployment_id": 1}`)
		fill(t, st, 1, "note", "default", "available", `{}`)

		changed := errors.New("changed my mind")
		cancel := func(then error) error {
			return st.Write(tenant.System(t.Context()), func(ctx context.Context, _ *ent.Tx) error {
				if err := j.CancelWaiting(ctx, "default", 1, 7); err != nil {
					return err
				}
				return then
			})
		}
		if err := cancel(changed); !errors.Is(err, changed) {
			t.Fatal(err)
		}
		if n := count(t, st, "SELECT COUNT(*) FROM river_job"); n != 406 {
			t.Errorf("after a rollback there are %d jobs, want 406", n)
		}
		if err := cancel(nil); err != nil {
			t.Fatal(err)
		}
		if n := count(t, st, "SELECT COUNT(*) FROM river_job"); n != 6 {
			t.Errorf("%d jobs are left, want 6", n)
		}
		if err := j.CancelWaiting(t.Context(), "default", 1, 7); err == nil || !strings.Contains(err.Error(), "not inside store.Write") {
			t.Errorf("outside of a transaction: %v", err)
		}
	})
}
