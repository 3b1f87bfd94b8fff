package jobs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/services/internal/store"
)

const (
	// riverPoll is River's poll interval. Most polls do not reach the database (see waiting).
	riverPoll = 50 * time.Millisecond
	// maxClaims limits how often other jobs are chosen when another node was faster.
	maxClaims = 4
)

// fair gives River the next jobs by turns instead of the oldest jobs.
type fair struct {
	store   *store.Store
	queues  map[string]*turns
	waiting *waiting
	// rows reads jobs inside a transaction.
	rows func(tx *sql.Tx) riverdriver.ExecutorTx

	deployment, run, from string
}

// fairDriver is a River driver whose executor schedules fairly.
type fairDriver struct {
	riverdriver.Driver[*sql.Tx]
	fair *fair
}

func newFairDriver(driver riverdriver.Driver[*sql.Tx], st *store.Store, queues map[string]*turns) *fairDriver {
	f := &fair{store: st, queues: queues, rows: driver.UnwrapExecutor}
	f.deployment, f.run = store.JobOwner(st.Postgres())
	f.from = f.available("?", f.now("?"))
	f.waiting = newWaiting(st, func(queue string) string { return f.available(queue, f.now("NULL")) }, queues)
	return &fairDriver{Driver: driver, fair: f}
}

// available is the FROM and WHERE of a queue's runnable jobs.
func (f *fair) available(queue, now string) string {
	from := "FROM river_job"
	if !f.store.Postgres() {
		from += " INDEXED BY " + store.TurnsIndex
	}
	return from + " WHERE finalized_at IS NULL AND (state = 'available') = TRUE AND queue = " + queue + " AND scheduled_at <= " + now
}

// GetExecutor returns the executor for statements outside a caller's transaction.
func (d *fairDriver) GetExecutor() riverdriver.Executor {
	return &fairExecutor{Executor: d.Driver.GetExecutor(), fair: d.fair}
}

type fairExecutor struct {
	riverdriver.Executor
	fair *fair
}

// JobGetAvailable claims the next jobs, if the queue has some.
func (e *fairExecutor) JobGetAvailable(ctx context.Context, p *riverdriver.JobGetAvailableParams) ([]*rivertype.JobRow, error) {
	t := e.fair.queues[p.Queue]
	if !t.freed() {
		if has, err := e.fair.waiting.has(ctx, p.Queue, t.poll); err != nil || !has {
			return nil, err
		}
	}
	return callWithoutDeadline(ctx, p, func(ctx context.Context, p *riverdriver.JobGetAvailableParams) ([]*rivertype.JobRow, error) {
		return e.fair.take(ctx, t, p)
	})
}

// QueueGet returns a queue that is not paused. Nothing pauses queues here, and River asks for each of them every two
// seconds.
func (e *fairExecutor) QueueGet(_ context.Context, p *riverdriver.QueueGetParams) (*rivertype.Queue, error) {
	return &rivertype.Queue{Name: p.Name, Metadata: []byte("{}")}, nil
}

// JobSetStateIfRunningMany records how jobs ended. It frees their worker slots, also for jobs that never reached a
// worker.
func (e *fairExecutor) JobSetStateIfRunningMany(ctx context.Context, p *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	for _, t := range e.fair.queues {
		for _, id := range p.ID {
			t.end(id)
		}
	}
	return e.Executor.JobSetStateIfRunningMany(ctx, p)
}

// take chooses and claims jobs. On SQLite it reads first, which does not block, and writes only when there are
// jobs.
func (f *fair) take(ctx context.Context, t *turns, p *riverdriver.JobGetAvailableParams) ([]*rivertype.JobRow, error) {
	reader, writer := f.store.DB()
	fetch := &fetch{fair: f, turns: t, params: p}
	if !f.store.Postgres() { // there is only one node, so the chosen jobs can normally be claimed
		if err := fetch.choose(ctx, reader); err != nil || len(fetch.chosen) == 0 {
			return nil, fetch.end(err)
		}
	}
	tx, err := writer.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, fetch.end(err)
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	if f.store.Postgres() {
		err = fetch.claimConcurrently(ctx, tx)
	} else {
		err = fetch.claim(ctx, tx, fetch.chosen)
	}
	if err == nil {
		err = tx.Commit()
	}
	err = fetch.end(err)
	return fetch.jobs, err
}

// fetch is one attempt to get jobs.
type fetch struct {
	fair   *fair
	turns  *turns
	params *riverdriver.JobGetAvailableParams
	chosen []turn // in all rounds
	jobs   []*rivertype.JobRow
}

// end frees the slots of jobs that were chosen but not claimed.
func (l *fetch) end(err error) error {
	if err != nil {
		l.jobs = nil
	}
	for _, c := range l.chosen {
		if !slices.ContainsFunc(l.jobs, func(job *rivertype.JobRow) bool { return job.ID == c.job }) {
			l.turns.end(c.job)
		}
	}
	return err
}

// byIndex makes PostgreSQL scan the index of turns in order, regardless of its statistics.
var byIndex = store.PlannerSettings("enable_seqscan=off", "enable_bitmapscan=off", "enable_sort=off")

// claimConcurrently chooses and claims jobs while other nodes do the same. Nodes never wait for each other: it
// skips jobs that another node has locked and chooses others.
func (l *fetch) claimConcurrently(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, byIndex); err != nil {
		return err
	}
	for range maxClaims {
		before, got := len(l.chosen), len(l.jobs)
		if err := l.choose(ctx, tx); err != nil || len(l.chosen) == before {
			return err
		}
		chosen := l.chosen[before:]
		if err := l.claim(ctx, tx, chosen); err != nil || len(l.jobs)-got == len(chosen) {
			return err
		}
		_ = l.end(nil)
	}
	l.turns.setMore(true)
	return nil
}

// choose chooses jobs for the free slots.
func (l *fetch) choose(ctx context.Context, db querier) error {
	free := l.params.MaxToLock - len(l.jobs)
	last, most := l.turns.scanRange(free)
	waiting, err := l.deployments(ctx, db, last, most)
	if err != nil {
		return err
	}
	before := l.chosen
	chosen, more, err := l.turns.choose(free, waiting, func(deployments []int64, chosen []turn) ([]turn, error) {
		return l.next(ctx, db, deployments, slices.Concat(before, chosen))
	})
	l.chosen = append(l.chosen, chosen...)
	l.turns.setMore(more)
	return err
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// deployments lists the deployments with runnable jobs: first noDeployment, then in order of turns. It skips from
// one deployment to the next in the index, so its cost does not depend on the number of jobs. The three laps are:
// noDeployment; from the last turn to the end; from the start to the last turn.
func (l *fetch) deployments(ctx context.Context, db querier, last int64, most int) (list []int64, err error) {
	f := l.fair
	query := "WITH RECURSIVE walk(d, upto, lap, n) AS (" +
		"SELECT column1, column2, column3, 0 FROM (VALUES " +
		"(CAST(-1 AS bigint), CAST(0 AS bigint), 0), (CAST(? AS bigint), CAST(? AS bigint), 1), (CAST(0 AS bigint), CAST(? AS bigint), 2)) AS laps UNION ALL " +
		"SELECT (SELECT " + f.deployment + " " + f.from + " AND " + f.deployment + " > walk.d AND " + f.deployment + " <= walk.upto ORDER BY " + f.deployment + " LIMIT 1), upto, lap, n + 1 " +
		"FROM walk WHERE d IS NOT NULL AND n < ?) " +
		"SELECT d FROM walk WHERE n > 0 AND d IS NOT NULL ORDER BY lap, n LIMIT ?"
	rows, err := db.QueryContext(ctx, f.store.Placeholders(query), last, int64(math.MaxInt64), last, l.params.Queue, f.at(l.params), most, most+1)
	if err != nil {
		return nil, fmt.Errorf("find deployments with jobs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var deployment int64
		if err := rows.Scan(&deployment); err != nil {
			return nil, fmt.Errorf("find deployments with jobs: %w", err)
		}
		list = append(list, deployment)
	}
	return list, rows.Err()
}

// next finds the first runnable job of each deployment's next run: the first run after the one that had the last
// turn, or else the first run.
func (l *fetch) next(ctx context.Context, db querier, deployments []int64, without []turn) ([]turn, error) {
	f := l.fair
	ids := make([]int64, len(without))
	for i, c := range without {
		ids[i] = c.job
	}
	among, list := f.store.InIDs(ids)
	order := " ORDER BY " + f.run + ", priority, scheduled_at, id LIMIT 1)"
	first := "(SELECT " + f.run + " || ' ' || id " + f.from + " AND " + f.deployment + " = asked.column1 AND NOT id" + among + " AND " + f.run
	query := "SELECT column1, COALESCE(" + first + " > column2" + order + ", " + first + " <= column2" + order + ") FROM (VALUES "
	var args []any
	for range 2 {
		args = append(append(args, l.params.Queue, f.at(l.params)), list...)
	}
	for i, deployment := range deployments {
		if i > 0 {
			query += ", "
		}
		query += "(CAST(? AS bigint), CAST(? AS bigint))"
		args = append(args, deployment, l.turns.lastRun(deployment))
	}
	rows, err := db.QueryContext(ctx, f.store.Placeholders(query+") AS asked"), args...)
	if err != nil {
		return nil, fmt.Errorf("find the next jobs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var found []turn
	for rows.Next() {
		var c turn
		var job sql.NullString
		if err := rows.Scan(&c.deployment, &job); err != nil {
			return nil, fmt.Errorf("find the next jobs: %w", err)
		}
		if !job.Valid {
			continue
		}
		if _, err := fmt.Sscan(job.String, &c.run, &c.job); err != nil {
			return nil, fmt.Errorf("find the next jobs: %q: %w", job.String, err)
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b turn) int {
		return slices.Index(deployments, a.deployment) - slices.Index(deployments, b.deployment)
	})
	return found, rows.Err()
}

// claim marks the chosen jobs as running on this node if they are still available, and reads them in the order of
// choice.
func (l *fetch) claim(ctx context.Context, tx *sql.Tx, chosen []turn) error {
	f, p := l.fair, l.params
	ids := make([]int64, len(chosen))
	for i, c := range chosen {
		ids[i] = c.job
	}
	among, list := f.store.InIDs(ids)
	query, args := claimSQLite+among+" AND state = 'available' RETURNING id", append([]any{f.at(p), p.MaxAttemptedBy, p.ClientID}, list...)
	if f.store.Postgres() {
		query = "WITH locked AS (SELECT id FROM river_job WHERE id" + among + " AND state = 'available' FOR UPDATE SKIP LOCKED) " + claimPostgres
		args = append(list, f.at(p), p.MaxAttemptedBy, p.MaxAttemptedBy, p.ClientID)
	}
	rows, err := tx.QueryContext(ctx, f.store.Placeholders(query), args...)
	if err != nil {
		return fmt.Errorf("claim jobs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	ids = ids[:0]
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("claim jobs: %w", err)
		}
		ids = append(ids, id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(ids) == 0 {
		return err
	}
	jobs, err := f.rows(tx).JobGetByIDMany(ctx, &riverdriver.JobGetByIDManyParams{ID: ids})
	if err != nil {
		return fmt.Errorf("read claimed jobs: %w", err)
	}
	place := func(job *rivertype.JobRow) int {
		return slices.IndexFunc(chosen, func(c turn) bool { return c.job == job.ID })
	}
	slices.SortFunc(jobs, func(a, b *rivertype.JobRow) int { return place(a) - place(b) })
	l.jobs = append(l.jobs, jobs...)
	return nil
}

// The columns that River's own statement sets (River v0.31.0, JobGetAvailable), and the unique key of jobs of
// OnceWaiting: with it, a job of a killed node would keep others from being enqueued until River rescues it.
const (
	claimPostgres = `UPDATE river_job SET state = 'running', attempt = river_job.attempt + 1, attempted_at = COALESCE(CAST(? AS timestamptz), now()),
	unique_key = CASE WHEN '` + onceTag + `' = ANY(river_job.tags) THEN NULL ELSE river_job.unique_key END,
	attempted_by = array_append(CASE WHEN array_length(river_job.attempted_by, 1) >= CAST(? AS int)
		THEN river_job.attempted_by[array_length(river_job.attempted_by, 1) + 2 - CAST(? AS int):] ELSE river_job.attempted_by END, CAST(? AS text))
FROM locked WHERE river_job.id = locked.id RETURNING river_job.id`
	claimSQLite = `UPDATE river_job SET state = 'running', attempt = attempt + 1, attempted_at = COALESCE(CAST(? AS text), datetime('now', 'subsec')),
	unique_key = CASE WHEN EXISTS (SELECT 1 FROM json_each(tags) WHERE value = '` + onceTag + `') THEN NULL ELSE unique_key END,
	attempted_by = json_insert((SELECT json_group_array(value) FROM (SELECT * FROM (
		SELECT * FROM json_each(attempted_by) ORDER BY key DESC LIMIT ? - 1) ORDER BY key)), '$[#]', ?)
WHERE id`
)

// now is the expression of the time up to which jobs are due: at, or the database's clock if that is NULL.
func (f *fair) now(at string) string {
	if f.store.Postgres() {
		return "COALESCE(CAST(" + at + " AS timestamptz), now())"
	}
	return "COALESCE(CAST(" + at + " AS text), datetime('now', 'subsec'))"
}

// at is a fixed time from a test in the database's format, or nil for the database's clock.
func (f *fair) at(p *riverdriver.JobGetAvailableParams) any {
	switch {
	case p.Now == nil:
		return nil
	case f.store.Postgres():
		return *p.Now
	}
	return p.Now.UTC().Round(time.Millisecond).Format("2006-01-02 15:04:05.999")
}
