package jobs

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// explained runs a fetch's statements with EXPLAIN and keeps the plans.
type explained struct {
	tx    *sql.Tx
	plans []string
}

func (e *explained) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := e.tx.QueryContext(ctx, "EXPLAIN (ANALYZE, BUFFERS) "+query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		plan.WriteString(line + "\n")
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	e.plans = append(e.plans, plan.String())
	return e.tx.QueryContext(ctx, query, args...)
}

var buffers = regexp.MustCompile(`Buffers: shared hit=(\d+)(?: read=(\d+))?`)

// pages returns how many database pages a statement has read.
func pages(plan string) (n int) {
	match := buffers.FindStringSubmatch(plan)
	for i := 1; i < len(match); i++ {
		part, _ := strconv.Atoi("0" + match[i])
		n += part
	}
	return n
}

// TestPlans: with any statistics of PostgreSQL about the queue, a fetch reads few pages of the index of turns.
func TestPlans(t *testing.T) {
	testrun.Deep(t) // walks all plans
	t.Parallel()
	for name, statistics := range map[string]string{"never analysed": "", "analysed when empty": "ANALYZE river_job"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, j := newNode(t, store.Options{Database: storetest.Postgres(t)})
			_, writer := st.DB()
			storetest.StopAutovacuum(t, writer)
			if _, err := writer.ExecContext(t.Context(), statistics); err != nil {
				t.Fatal(err)
			}
			fill(t, st, 20_000, "owned", "default", "available", `{"deployment_id": 1, "run_id": 1, "text": "%d"}`)
			fill(t, st, 100, "owned", "default", "available", `{"deployment_id": %d, "run_id": 1, "text": "x"}`)
			fill(t, st, 100, "owned", "default", "available", `{"deployment_id": 2, "run_id": %d, "text": "x"}`)
			tx, err := writer.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(t.Context(), byIndex); err != nil {
				t.Fatal(err)
			}
			exec := j.client.Driver().GetExecutor().(*fairExecutor) //nolint:forcetypeassert // see take
			look, db := &fetch{fair: exec.fair, turns: j.queues[river.QueueDefault], params: fetchParams()}, &explained{tx: tx}
			if err := look.choose(t.Context(), db); err != nil || len(look.chosen) != 10 {
				t.Fatalf("chose %v, %v", look.chosen, err)
			}
			for _, plan := range db.plans {
				// Each deployment is one descent of the index, or two when its runs start over.
				if n := pages(plan); n == 0 || n > 200 || strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, store.TurnsIndex) {
					t.Errorf("%d pages:\n%s", n, plan)
				}
			}
			db.plans = nil
			if found, err := exec.fair.waiting.read(t.Context(), db); err != nil || !maps.Equal(found, map[string]bool{"default": true}) {
				t.Fatalf("queues with jobs: %v, %v", found, err)
			}
			if plan := db.plans[0]; pages(plan) == 0 || pages(plan) > 20 || strings.Contains(plan, "Seq Scan") {
				t.Error(plan)
			}
		})
	}
}

// TestCancelPlan: cancelling a run reads the index and not all jobs.
func TestCancelPlan(t *testing.T) {
	t.Parallel()
	st, _ := newNode(t, store.Options{Database: storetest.Postgres(t)})
	fill(t, st, 20_000, "owned", "default", "available", `{"deployment_id": 1, "run_id": 1, "text": "%d"}`)
	fill(t, st, 10, "owned", "default", "available", `{"deployment_id": 1, "run_id": 2, "text": "%d"}`)
	_, writer := st.DB()
	tx, err := writer.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	rows, err := tx.QueryContext(t.Context(), "EXPLAIN (ANALYZE, BUFFERS) "+st.Placeholders(cancelQuery(true)), "default", 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	if n := pages(plan.String()); n == 0 || n > 100 || !strings.Contains(plan.String(), store.TurnsIndex) {
		t.Errorf("%d pages:\n%s", n, plan.String())
	}
}

// BenchmarkFetch claims jobs of one deployment, eight at a time, and records their end: by turns, and with River's
// own query.
func BenchmarkFetch(b *testing.B) {
	const n = 20_000
	for _, database := range []string{"sqlite", "postgres"} {
		for _, how := range []string{"River", "turns"} {
			b.Run(fmt.Sprintf("%s/%s", database, how), func(b *testing.B) {
				o := store.Options{}
				if database == "sqlite" {
					o.DataDir = storetest.SQLite(b)
				} else {
					o.Database = storetest.Postgres(b)
				}
				st, j := newNode(b, o)
				reader, writer := st.DB()
				exec := j.client.Driver().GetExecutor()
				if how == "River" {
					exec = riverdatabasesql.New(writer).GetExecutor()
					if !st.Postgres() {
						exec = &sqliteExecutor{Executor: riversqlite.New(writer).GetExecutor(), reads: riversqlite.New(reader).GetExecutor()}
					}
				}
				for b.Loop() {
					b.StopTimer()
					fill(b, st, n, "owned", "default", "available", `{"deployment_id": 1, "run_id": 1, "text": "%d"}`)
					b.StartTimer()
					drain(b, exec, j.queues[river.QueueDefault], n)
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			})
		}
	}
}

func drain(b *testing.B, exec riverdriver.Executor, queue *turns, n int) {
	b.Helper()
	p := fetchParams()
	p.MaxToLock = 8
	if _, ok := exec.(*fairExecutor); ok {
		p.MaxToLock = 16 // half of them are for one deployment
		queue.poll = 0
	}
	for n > 0 {
		jobs, err := exec.JobGetAvailable(b.Context(), p)
		if err != nil || len(jobs) == 0 {
			b.Fatalf("%v, %v", jobs, err)
		}
		n -= len(jobs)
		ended := &riverdriver.JobSetStateIfRunningManyParams{}
		for _, job := range jobs {
			set := riverdriver.JobSetStateCompleted(job.ID, *job.AttemptedAt, nil)
			ended.ID, ended.State = append(ended.ID, set.ID), append(ended.State, rivertype.JobStateCompleted)
			ended.Attempt, ended.ErrData = append(ended.Attempt, nil), append(ended.ErrData, nil)
			ended.FinalizedAt, ended.ScheduledAt = append(ended.FinalizedAt, set.FinalizedAt), append(ended.ScheduledAt, nil)
			ended.MetadataDoMerge, ended.MetadataUpdates = append(ended.MetadataDoMerge, false), append(ended.MetadataUpdates, nil)
		}
		if _, err := exec.JobSetStateIfRunningMany(b.Context(), ended); err != nil {
			b.Fatal(err)
		}
	}
}
