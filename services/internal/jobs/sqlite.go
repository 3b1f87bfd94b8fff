package jobs

import (
	"context"
	"database/sql"
	"errors"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
)

// On SQLite River shares the one connection that writes with everybody else. As it comes, it would ask for it every
// second, only to see that there is nothing to do, and would take it for a broken database when an import holds it for
// longer than River's own timeouts (5 s for elections, 10 s for completed jobs). So here it looks with a reader, which
// waits for nobody, and waits for its turn to write as long as it takes. (fair does so for jobs.)

// sqliteDriver is River's driver with the executor below.
type sqliteDriver struct {
	*riversqlite.Driver
	reader *sql.DB
}

func newSQLiteDriver(reader, writer *sql.DB) *sqliteDriver {
	return &sqliteDriver{Driver: riversqlite.New(writer), reader: reader}
}

// GetExecutor returns what River works with outside the transactions of others.
func (d *sqliteDriver) GetExecutor() riverdriver.Executor {
	return &sqliteExecutor{Executor: d.Driver.GetExecutor(), reads: riversqlite.New(d.reader).GetExecutor()}
}

// sqliteExecutor replaces what River calls with a timeout, or again and again.
type sqliteExecutor struct {
	riverdriver.Executor // writes
	reads                riverdriver.Executor
}

// JobGetStuck finds jobs whose process is gone.
func (e *sqliteExecutor) JobGetStuck(ctx context.Context, p *riverdriver.JobGetStuckParams) ([]*rivertype.JobRow, error) {
	return e.reads.JobGetStuck(ctx, p)
}

// QueueGet reads whether a queue is paused.
func (e *sqliteExecutor) QueueGet(ctx context.Context, p *riverdriver.QueueGetParams) (*rivertype.Queue, error) {
	return e.reads.QueueGet(ctx, p)
}

// Begin begins a transaction: of an election, or of jobs that become due.
func (e *sqliteExecutor) Begin(ctx context.Context) (riverdriver.ExecutorTx, error) {
	ctx, release := patient(ctx)
	tx, err := e.Executor.Begin(ctx)
	if err != nil {
		release()
		return nil, err
	}
	return &sqliteTx{ExecutorTx: tx, release: release}, nil
}

// JobDeleteBefore deletes jobs that were done long ago.
func (e *sqliteExecutor) JobDeleteBefore(ctx context.Context, p *riverdriver.JobDeleteBeforeParams) (int, error) {
	return patiently(ctx, p, e.Executor.JobDeleteBefore)
}

// JobRescueMany makes stuck jobs wait again.
func (e *sqliteExecutor) JobRescueMany(ctx context.Context, p *riverdriver.JobRescueManyParams) (*struct{}, error) {
	return patiently(ctx, p, e.Executor.JobRescueMany)
}

// JobSetStateIfRunningMany records how jobs ended.
func (e *sqliteExecutor) JobSetStateIfRunningMany(ctx context.Context, p *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	return patiently(ctx, p, e.Executor.JobSetStateIfRunningMany)
}

// LeaderResign ends the leadership of this node.
func (e *sqliteExecutor) LeaderResign(ctx context.Context, p *riverdriver.LeaderResignParams) (bool, error) {
	return patiently(ctx, p, e.Executor.LeaderResign)
}

// QueueCreateOrSetUpdatedAt records that a queue is in use.
func (e *sqliteExecutor) QueueCreateOrSetUpdatedAt(ctx context.Context, p *riverdriver.QueueCreateOrSetUpdatedAtParams) (*rivertype.Queue, error) {
	return patiently(ctx, p, e.Executor.QueueCreateOrSetUpdatedAt)
}

// QueueDeleteExpired deletes queues that nobody uses any more.
func (e *sqliteExecutor) QueueDeleteExpired(ctx context.Context, p *riverdriver.QueueDeleteExpiredParams) ([]string, error) {
	return patiently(ctx, p, e.Executor.QueueDeleteExpired)
}

// sqliteTx goes on although the time that River gave it was spent on waiting.
type sqliteTx struct {
	riverdriver.ExecutorTx
	release func()
}

// Commit commits.
func (t *sqliteTx) Commit(ctx context.Context) error {
	defer t.release()
	ctx, release := patient(ctx)
	defer release()
	return t.ExecutorTx.Commit(ctx)
}

// Rollback rolls back.
func (t *sqliteTx) Rollback(ctx context.Context) error {
	defer t.release()
	return t.ExecutorTx.Rollback(ctx)
}

// JobInsertFastMany adds periodic jobs.
func (t *sqliteTx) JobInsertFastMany(ctx context.Context, p *riverdriver.JobInsertFastManyParams) ([]*riverdriver.JobInsertFastResult, error) {
	return patiently(ctx, p, t.ExecutorTx.JobInsertFastMany)
}

// JobSchedule makes the jobs available whose time has come.
func (t *sqliteTx) JobSchedule(ctx context.Context, p *riverdriver.JobScheduleParams) ([]*riverdriver.JobScheduleResult, error) {
	return patiently(ctx, p, t.ExecutorTx.JobSchedule)
}

// LeaderDeleteExpired ends a leadership that was not renewed.
func (t *sqliteTx) LeaderDeleteExpired(ctx context.Context, p *riverdriver.LeaderDeleteExpiredParams) (int, error) {
	return patiently(ctx, p, t.ExecutorTx.LeaderDeleteExpired)
}

// LeaderAttemptElect makes this node the leader if there is none.
func (t *sqliteTx) LeaderAttemptElect(ctx context.Context, p *riverdriver.LeaderElectParams) (bool, error) {
	return patiently(ctx, p, t.ExecutorTx.LeaderAttemptElect)
}

// LeaderAttemptReelect renews the leadership of this node.
func (t *sqliteTx) LeaderAttemptReelect(ctx context.Context, p *riverdriver.LeaderElectParams) (bool, error) {
	return patiently(ctx, p, t.ExecutorTx.LeaderAttemptReelect)
}

func patiently[Params, Result any](ctx context.Context, p Params, do func(context.Context, Params) (Result, error)) (Result, error) {
	ctx, release := patient(ctx)
	defer release()
	return do(ctx, p)
}

// patient returns ctx without its deadline: it still ends when ctx is cancelled, which happens when River stops.
func patient(ctx context.Context) (context.Context, func()) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel(context.Cause(ctx))
		}
	})
	return out, func() {
		stop()
		cancel(nil)
	}
}
