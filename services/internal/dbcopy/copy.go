package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/palisade/palisade/services/internal/newname"
	"github.com/palisade/palisade/services/internal/store"
)

var (
	// ErrNotEmpty means that the target already is a database.
	ErrNotEmpty = errors.New("the target is not empty")
	// ErrSourceChanged means that the source no longer has the rows that were copied before.
	ErrSourceChanged = errors.New("the source has changed since the copy began")
	// ErrLockLost means that another copy may have written to the target.
	ErrLockLost = errors.New("the connection that holds the lock on the target was lost")
	// ErrInterrupted means that the copy's context ended before the copy was complete.
	ErrInterrupted = errors.New("the copy was interrupted: run the same command again to resume it")
)

// maxBatchRows is the default of Options.BatchRows.
const maxBatchRows = 2000

// Options configure a copy.
type Options struct {
	From, To Endpoint
	// KeyFile is the key file that seals the credentials in the source.
	KeyFile string
	// ReplaceText replaces characters that PostgreSQL cannot store in text (NUL, invalid UTF-8) by U+FFFD. Otherwise
	// they are an error.
	ReplaceText bool
	// RequeueJobs makes the running jobs of a dead server available again. Otherwise they are an error.
	RequeueJobs bool
	// BatchRows is the maximum number of rows in a batch; 0 means 2000.
	BatchRows int
	// Progress is called with the number of copied rows and all rows. Calls come from several goroutines, but never
	// concurrently.
	Progress func(phase Phase, table string, done, total int64)
}

// Phase is a phase of the copy.
type Phase string

const (
	PhaseCopy   Phase = "copy"
	PhaseVerify Phase = "verify"
)

// TableResult is the result for one table.
type TableResult struct {
	Name     string
	Rows     int64
	Bytes    int64  // size of the values in the checksum's encoding
	Checksum string // SHA-256 of the source, in hexadecimal
	// TargetRows and TargetChecksum were read back from the target.
	TargetRows     int64
	TargetChecksum string
	OK             bool
}

// Result is the result of a complete copy.
type Result struct {
	From, To string // without credentials
	// ResumedFrom is when a resumed copy was started; zero for a new one.
	ResumedFrom time.Time
	Tables      []TableResult
	// Replaced counts changed texts (see Options.ReplaceText). Requeued counts jobs (see Options.RequeueJobs).
	Replaced, Requeued int64
	// OK means that all tables are equal. Otherwise the target stays marked as incomplete.
	OK bool
}

// copier is one run of a copy.
type copier struct {
	Options
	source, target *database
	journal        *journal
	highest        map[string]int64
	total          int64

	mu        sync.Mutex
	done      int64
	replaced  int64
	positions map[string]position // of the source
}

// Run copies a database, or resumes an interrupted copy.
func Run(ctx context.Context, o Options) (Result, error) {
	result, err := run(ctx, o)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", ErrInterrupted, ctx.Err()) // drivers return unhelpful errors when a context ends
	}
	return result, err
}

func run(ctx context.Context, o Options) (result Result, err error) {
	if o.BatchRows == 0 {
		o.BatchRows = maxBatchRows
	}
	if err := check(o.From, o.To); err != nil {
		return Result{}, err
	}
	c := &copier{Options: o, positions: map[string]position{}}
	closeAll, err := c.open(ctx)
	defer func() { err = errors.Join(err, closeAll()) }()
	if err != nil {
		return Result{}, err
	}
	held, release, err := lockTarget(ctx, c.target)
	if err != nil {
		return Result{}, err
	}
	defer release()
	requeued, err := c.prepare(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := c.copyTables(ctx); err != nil {
		return Result{}, err
	}
	result = Result{From: c.source.location, To: c.target.location, Replaced: c.replaced, Requeued: requeued}
	if c.journal.resumed {
		result.ResumedFrom = c.journal.header.StartedAt
	}
	if result.Tables, result.OK, err = c.verify(ctx); err != nil || !result.OK {
		return result, err
	}
	if c.source.postgres { // a server that has started waits for our locks, and would write after their release
		if err := c.source.refuseServers(ctx); err != nil {
			return result, fmt.Errorf("source: %w", err)
		}
	}
	if err := held(ctx); err != nil {
		return result, err
	}
	return result, c.finish(ctx)
}

// workers returns how many tables are copied at once. SQLite has only one writer.
func (c *copier) workers() int {
	if c.To.SQLite != "" {
		return 1
	}
	return min(4, max(2, runtime.NumCPU()))
}

func (c *copier) open(ctx context.Context) (closeAll func() error, err error) {
	closeAll = func() error {
		var err error
		for _, d := range []*database{c.target, c.source} {
			if d != nil {
				err = errors.Join(err, d.close())
			}
		}
		return err
	}
	openSource := openSQLiteSource
	if c.From.Postgres != "" {
		openSource = openPostgresSource
	}
	if c.source, err = openSource(ctx, c.From, c.workers()); err != nil {
		return closeAll, fmt.Errorf("source: %w", err)
	}
	if c.target, err = openTarget(ctx, c.To, c.workers()+2); err != nil { // one connection holds the lock, one is spare
		return closeAll, fmt.Errorf("target: %w", err)
	}
	return closeAll, nil
}

// prepare rejects what cannot be copied, before anything is written.
func (c *copier) prepare(ctx context.Context) (requeued int64, err error) {
	if err := checkSchema(ctx, c.source, c.target); err != nil {
		return 0, err
	}
	if err := checkKeys(ctx, c.source, c.KeyFile, c.To); err != nil {
		return 0, err
	}
	if requeued, err = c.checkJobs(ctx); err != nil {
		return 0, err
	}
	if c.highest, err = highestIDs(ctx, c.source); err != nil {
		return 0, err
	}
	for _, t := range allTables() {
		var rows int64
		if err := c.source.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+quote(t.name)).Scan(&rows); err != nil {
			return 0, fmt.Errorf("count the rows of %s: %w", t.name, err)
		}
		c.total += rows
	}
	now := header{From: c.source.location, StartedAt: time.Now().UTC(), ReplaceText: c.ReplaceText, RequeueJobs: c.RequeueJobs}
	if c.journal, err = openJournal(ctx, c.target, now); err != nil {
		return 0, err
	}
	return requeued, c.journal.check(now)
}

// checkJobs rejects running jobs. The target does not know their workers, and the queue would rescue them only
// after an hour.
func (c *copier) checkJobs(ctx context.Context) (running int64, err error) {
	var kinds sql.NullString
	list := "GROUP_CONCAT(DISTINCT kind)"
	if c.source.postgres {
		list = "string_agg(DISTINCT kind, ',')"
	}
	if err := c.source.db.QueryRowContext(ctx, "SELECT COUNT(*), "+list+" FROM river_job WHERE state = 'running'").Scan(&running, &kinds); err != nil {
		return 0, fmt.Errorf("find running jobs: %w", err)
	}
	if running > 0 && !c.RequeueJobs {
		return 0, fmt.Errorf("%d background jobs of the source are running (%s): start the server on it and stop it with SIGTERM, so that they finish; "+
			"or, if the server died, copy with --requeue-jobs, so that they run again in the target (jobs are idempotent)", running, kinds.String)
	}
	return running, nil
}

func (c *copier) copyTables(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.workers())
	for _, t := range allTables() {
		group.Go(func() error { return c.copyTable(ctx, t) })
	}
	return group.Wait()
}

func (c *copier) copyTable(ctx context.Context, t *table) error {
	from, end, err := c.source.session(ctx)
	if err != nil {
		return err
	}
	defer end()
	to, err := c.target.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }() // all batches were committed
	normalize := &normalizer{forPostgres: c.target.postgres, replace: c.ReplaceText}
	reader := newReader(from, c.source.postgres, t, normalize, c.BatchRows)
	reader.requeue = c.RequeueJobs
	if err := c.skipCopied(ctx, reader); err != nil {
		return err
	}
	for {
		rows, err := reader.next(ctx, math.MaxInt64)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			c.mu.Lock()
			c.positions[t.name] = reader.at
			c.replaced += normalize.replaced
			c.mu.Unlock()
			return nil
		}
		if err := c.target.write(ctx, to, t, rows, reader.at); err != nil {
			return err
		}
		c.progress(PhaseCopy, t, len(rows))
	}
}

// skipCopied reads the rows that an earlier run has copied, and compares their checksum with the journal.
func (c *copier) skipCopied(ctx context.Context, reader *tableReader) error {
	before := c.journal.positions[reader.table.name]
	for reader.at.rows < before.rows {
		rows, err := reader.next(ctx, before.rows-reader.at.rows)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		c.progress(PhaseCopy, reader.table, len(rows))
	}
	if before.rows > 0 && reader.at != before {
		return fmt.Errorf("%w (%s): table %s no longer has the rows that were copied from it; copy into a new database, and run no server on the source until the copy is complete",
			ErrSourceChanged, c.journal.header.StartedAt.UTC().Format(time.DateTime), reader.table.name)
	}
	return nil
}

func (c *copier) progress(phase Phase, t *table, rows int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += int64(rows)
	if c.Progress != nil {
		c.Progress(phase, t.name, c.done, c.total)
	}
}

// verify reads the target and compares it with the source.
func (c *copier) verify(ctx context.Context) (results []TableResult, same bool, err error) {
	c.done = 0
	results = make([]TableResult, len(allTables()))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.workers())
	for i, t := range allTables() {
		group.Go(func() error {
			at, err := c.readBack(ctx, t)
			from := c.positions[t.name]
			results[i] = TableResult{
				Name: t.name, Rows: from.rows, Bytes: from.bytes, Checksum: from.checksum,
				TargetRows: at.rows, TargetChecksum: at.checksum, OK: at == from,
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, false, fmt.Errorf("verify: %w", err)
	}
	same = true
	for _, r := range results {
		same = same && r.OK
	}
	return results, same, nil
}

func (c *copier) readBack(ctx context.Context, t *table) (position, error) {
	conn, end, err := c.target.session(ctx)
	if err != nil {
		return position{}, err
	}
	defer end()
	reader := newReader(conn, c.target.postgres, t, &normalizer{}, c.BatchRows)
	for {
		rows, err := reader.next(ctx, math.MaxInt64)
		if err != nil || len(rows) == 0 {
			return reader.at, err
		}
		c.progress(PhaseVerify, t, len(rows))
	}
}

// finish completes the target, so that a server can start on it.
func (c *copier) finish(ctx context.Context) error {
	if err := setHighestIDs(ctx, c.target, c.highest); err != nil {
		return err
	}
	if c.target.postgres {
		if err := c.refreshStatistics(ctx); err != nil {
			return err
		}
		_, err := c.target.db.ExecContext(ctx, "DROP TABLE "+journalTable)
		return err
	}
	// Closing moves the write-ahead log into the file.
	if err := c.target.close(); err != nil {
		return err
	}
	c.target = nil
	if err := c.refreshStatistics(ctx); err != nil {
		return err
	}
	if err := publish(stagedFile(c.To), c.To.SQLite); err != nil {
		return err
	}
	// Until here, the same command resumes the copy. From here on the journal has no meaning.
	db, err := sql.Open("sqlite3", sqliteDSN(c.To.SQLite, "_locking_mode=EXCLUSIVE"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "DROP TABLE "+journalTable)
	return errors.Join(err, db.Close())
}

func (c *copier) refreshStatistics(ctx context.Context) error {
	options, err := c.To.storeOptions()
	if err != nil {
		return err
	}
	st, err := store.Open(ctx, options)
	if err != nil {
		return err
	}
	return errors.Join(st.RefreshStatistics(ctx), st.Close())
}

func stagedFile(e Endpoint) string { return filepath.Join(e.stagingDir(), store.SQLiteFile) }

// publish gives a finished file its final name, which must be free, and removes the staging directory.
func publish(staged, path string) error {
	if err := RefuseOpen(context.Background(), staged); err != nil { // this also empties the log
		return err
	}
	if err := syncFile(staged); err != nil {
		return err
	}
	if err := refuseLog(path); err != nil {
		return err
	}
	if err := newname.Give(staged, path); err != nil {
		return fmt.Errorf("the finished database is %s, but it cannot get its final name: %w", staged, err)
	}
	return errors.Join(syncFile(filepath.Dir(path)), os.RemoveAll(filepath.Dir(staged)))
}

// refuseLog returns an error when a stale write-ahead log exists for the database at path. SQLite would apply its
// pages to the new database.
func refuseLog(path string) error {
	if _, err := os.Lstat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%w: %s-wal is the log of a previous database: move it away together with %s-shm",
			ErrNotEmpty, path, filepath.Base(path)))
	}
	return nil
}
