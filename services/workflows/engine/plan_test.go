package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/workflows/schedule"
)

// explained is a driver that explains each statement about attempts and tasks before it runs.
type explained struct {
	dialect.Driver
	t     *testing.T
	plans *[]string
}

func (d explained) Tx(ctx context.Context) (dialect.Tx, error) {
	tx, err := d.Driver.Tx(ctx)
	return explainedTx{tx, d}, err
}

func (d explained) Query(ctx context.Context, query string, args, v any) error {
	d.explain(ctx, d.Driver, query, args)
	return d.Driver.Query(ctx, query, args, v)
}

func (d explained) explain(ctx context.Context, in dialect.ExecQuerier, query string, args any) {
	d.t.Helper()
	if !strings.Contains(query, "workflow_attempts") && !strings.Contains(query, "workflow_tasks") {
		return
	}
	how := "EXPLAIN QUERY PLAN "
	if d.Dialect() == dialect.Postgres {
		how = "EXPLAIN "
	}
	rows := &entsql.Rows{}
	if err := in.Query(ctx, how+query, args, rows); err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		d.t.Fatal(err)
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	plan := query + "\n"
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			d.t.Fatal(err)
		}
		plan += fmt.Sprintln(*values[len(values)-1].(*any))
	}
	*d.plans = append(*d.plans, plan)
}

type explainedTx struct {
	dialect.Tx
	driver explained
}

func (t explainedTx) Query(ctx context.Context, query string, args, v any) error {
	t.driver.explain(ctx, t.Tx, query, args)
	return t.Tx.Query(ctx, query, args, v)
}

func (t explainedTx) Exec(ctx context.Context, query string, args, v any) error {
	t.driver.explain(ctx, t.Tx, query, args)
	return t.Tx.Exec(ctx, query, args, v)
}

// fill inserts external tasks with attempts into a run, all with one status.
func (f *fixture) fill(run *ent.WorkflowRun, n int, status, finished string) {
	f.t.Helper()
	_, writer := f.store.DB()
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
	for _, statement := range []string{
		"INSERT INTO workflow_tasks (deployment_id, run_id, step, path, status, external, created_at, finished_at) " + numbers +
			"SELECT %d, %d, 'work', 'each[' || '%s' || i || ']', '%s', TRUE, 1, %s FROM n",
		"INSERT INTO workflow_attempts (deployment_id, run_id, task_id, \"index\", step, workflow, external, status, created_at, finished_at) " + numbers +
			"SELECT %d, %d, -i, %d + length('%s'), 'work', 'sample', TRUE, '%s', 1, %s FROM n",
	} {
		values := []any{n, run.DeploymentID, run.ID, status, status, finished}
		if strings.Contains(statement, "-i, %d") {
			values = []any{n, run.DeploymentID, run.ID, run.ID * 100, status, status, finished}
		}
		if _, err := writer.ExecContext(f.ctx, fmt.Sprintf(statement, values...)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// Statements of a running run, of its cancellation and of claims read only open attempts and tasks, and skip all that
// have ended. The tables have no statistics.
func TestPlansOfRuns(t *testing.T) {
	testrun.Deep(t) // walks all plans
	onEachStore(t, func(t *testing.T, f *fixture) {
		if err := f.stop(testTimeout); err != nil {
			t.Fatal(err)
		}
		_, db := f.store.DB()
		if f.store.Postgres() {
			storetest.StopAutovacuum(t, db)
		}
		const external = "  - {name: work, uses: external}\n"
		large, old, small := f.run(workflow(external), 0), f.run(workflow(external), 0), f.run(workflow(external), 0)
		f.fill(large, 100_000, Pending, "NULL")
		f.fill(old, 100_000, Succeeded, "1")
		var plans []string
		driver := explained{entsql.OpenDB(f.store.Dialect(), db), t, &plans}
		tx, err := ent.NewClient(ent.Driver(driver)).Tx(f.ctx)
		if err != nil {
			t.Fatal(err)
		}
		room, err := (&transition{tx: tx, run: large}).capacity(f.ctx)
		if err != nil || room != 0 {
			t.Errorf("room for %d: %v", room, err)
		}
		if room, err = (&transition{tx: tx, run: small}).capacity(f.ctx); err != nil || room != schedule.MaxActive-1 {
			t.Errorf("room for %d: %v", room, err)
		}
		begun := time.Now()
		if err := stop(f.ctx, tx, large, Cancelled); err != nil {
			t.Fatal(err)
		}
		t.Logf("100,000 attempts and tasks that wait were stopped in %s", time.Since(begun))
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		reader, _ := f.store.DB()
		f.store.Reader = ent.NewClient(ent.Driver(explained{store.ReaderDriver(entsql.OpenDB(f.store.Dialect(), reader)), t, &plans}))
		if rows, err := f.engine.claimable(f.ctx, Wanted{Workflow: "sample", Steps: []string{"work"}}, workflowattempt.RunIDGT(large.ID)); err != nil || len(rows) != 2 {
			t.Errorf("%d attempts to claim: %v", len(rows), err)
		}
		for i, index := range []string{
			"workflow_attempts_active", "workflow_attempts_active", // room
			"workflow_attempts_active", "workflow_attempts_active", "workflow_tasks_by_status", "workflow_tasks_by_status", // stop
			"workflow_attempts_by_turn", // claims
		} {
			if i >= len(plans) || !strings.Contains(plans[i], index) {
				t.Errorf("statement %d does not use %s: %s", i, index, plans[min(i, len(plans)-1)])
			}
		}
		if last := plans[len(plans)-1]; strings.Contains(last, "Sort") || strings.Contains(last, "TEMP B-TREE") {
			t.Errorf("claims are sorted: %s", last)
		}
	})
}
