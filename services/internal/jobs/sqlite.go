package jobs

import (
	"context"
	"database/sql"
	"errors"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
)

// On SQLite, River shares the only writer connection with everything else. Unchanged, it would acquire the writer
// every second just to find no work, and would report a broken database when an import held the writer for longer
// than River's timeouts (5 s for elections, 10 s for completed jobs). This driver therefore polls with a reader,
// which never blocks, and removes the deadlines of writes. (fair does the same for fetching jobs.)

// sqliteDriver is River's driver with sqliteExecutor.
type sqliteDriver struct {
	*riversqlite.Driver
	reader *sql.DB
}

func newSQLiteDriver(reader, writer *sql.DB) *sqliteDriver {
	return &sqliteDriver{Driver: riversqlite.New(writer), reader: reader}
}

// GetExecutor returns the executor for statements outside a caller's transaction.
func (d *sqliteDriver) GetExecutor() riverdriver.Executor {
	return &sqliteExecutor{Executor: d.Driver.GetExecutor(), reads: riversqlite.New(d.reader).GetExecutor()}
}

// sqliteExecutor replaces the calls that River makes with a timeout, or periodically.
type sqliteExecutor struct {
	riverdriver.Executor // for writes
	reads                riverdriver.Executor
}

// JobGetStuck finds jobs whose process has died.
func (e *sqliteExecutor) JobGetStuck(ctx context.Context, p *riverdriver.JobGetStuckParams) ([]*rivertype.JobRow, error) {
	return e.reads.JobGetStuck(ctx, p)
}

// QueueGet reads whether a queue is paused.
func (e *sqliteExecutor) QueueGet(ctx context.Context, p *riverdriver.QueueGetParams) (*rivertype.Queue, error) {
	return e.reads.QueueGet(ctx, p)
}

// Begin begins a transaction, for an election or to schedule jobs that have become due.
func (e *sqliteExecutor) Begin(ctx context.Context) (riverdriver.ExecutorTx, error) {
	ctx, release := withoutDeadline(ctx)
	tx, err := e.Executor.Begin(ctx)
	if err != nil {
		release()
		return nil, err
	}
	return &sqliteTx{ExecutorTx: tx, release: release}, nil
}

// JobDeleteBefore deletes old finished jobs.
func (e *sqliteExecutor) JobDeleteBefore(ctx context.Context, p *riverdriver.JobDeleteBeforeParams) (int, error) {
	return callWithoutDeadline(ctx, p, e.Executor.JobDeleteBefore)
}

// JobRescueMany makes stuck jobs available again.
func (e *sqliteExecutor) JobRescueMany(ctx context.Context, p *riverdriver.JobRescueManyParams) (*struct{}, error) {
	return callWithoutDeadline(ctx, p, e.Executor.JobRescueMany)
}

// JobSetStateIfRunningMany records how jobs ended.
func (e *sqliteExecutor) JobSetStateIfRunningMany(ctx context.Context, p *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	return callWithoutDeadline(ctx, p, e.Executor.JobSetStateIfRunningMany)
}

// LeaderResign gives up this node's leadership.
func (e *sqliteExecutor) LeaderResign(ctx context.Context, p *riverdriver.LeaderResignParams) (bool, error) {
	return callWithoutDeadline(ctx, p, e.Executor.LeaderResign)
}

// QueueCreateOrSetUpdatedAt records that a queue is in use.
func (e *sqliteExecutor) QueueCreateOrSetUpdatedAt(ctx context.Context, p *riverdriver.QueueCreateOrSetUpdatedAtParams) (*rivertype.Queue, error) {
	return callWithoutDeadline(ctx, p, e.Executor.QueueCreateOrSetUpdatedAt)
}

// QueueDeleteExpired deletes unused queues.
func (e *sqliteExecutor) QueueDeleteExpired(ctx context.Context, p *riverdriver.QueueDeleteExpiredParams) ([]string, error) {
	return callWithoutDeadline(ctx, p, e.Executor.QueueDeleteExpired)
}

// sqliteTx is a transaction without River's deadline, which may have passed while it waited for the writer.
type sqliteTx struct {
	riverdriver.ExecutorTx
	release func()
}

// Commit commits without a deadline.
func (t *sqliteTx) Commit(ctx context.Context) error {
	defer t.release()
	ctx, release := withoutDeadline(ctx)
	defer release()
	return t.ExecutorTx.Commit(ctx)
}

func (t *sqliteTx) Rollback(ctx context.Context) error {
	defer t.release()
	return t.ExecutorTx.Rollback(ctx)
}

// JobInsertFastMany adds periodic jobs.
func (t *sqliteTx) JobInsertFastMany(ctx context.Context, p *riverdriver.JobInsertFastManyParams) ([]*riverdriver.JobInsertFastResult, error) {
	return callWithoutDeadline(ctx, p, t.ExecutorTx.JobInsertFastMany)
}

// JobSchedule makes due jobs available.
func (t *sqliteTx) JobSchedule(ctx context.Context, p *riverdriver.JobScheduleParams) ([]*riverdriver.JobScheduleResult, error) {
	return callWithoutDeadline(ctx, p, t.ExecutorTx.JobSchedule)
}

// LeaderDeleteExpired deletes an expired leadership.
func (t *sqliteTx) LeaderDeleteExpired(ctx context.Context, p *riverdriver.LeaderDeleteExpiredParams) (int, error) {
	return callWithoutDeadline(ctx, p, t.ExecutorTx.LeaderDeleteExpired)
}

// LeaderAttemptElect makes this node the leader if there is none.
func (t *sqliteTx) LeaderAttemptElect(ctx context.Context, p *riverdriver.LeaderElectParams) (bool, error) {
	return callWithoutDeadline(ctx, p, t.ExecutorTx.LeaderAttemptElect)
}

// LeaderAttemptReelect renews this node's leadership.
func (t *sqliteTx) LeaderAttemptReelect(ctx context.Context, p *riverdriver.LeaderElectParams) (bool, error) {
	return callWithoutDeadline(ctx, p, t.ExecutorTx.LeaderAttemptReelect)
}

func callWithoutDeadline[Params, Result any](ctx context.Context, p Params, do func(context.Context, Params) (Result, error)) (Result, error) {
	ctx, release := withoutDeadline(ctx)
	defer release()
	return do(ctx, p)
}

// withoutDeadline returns ctx without its deadline. It still ends when ctx is cancelled, which happens when River
// stops.
func withoutDeadline(ctx context.Context) (context.Context, func()) {
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
