package jobs

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// pollInterval is how long a job waits at most until it is seen: neither database notifies us (see newDriver).
	pollInterval = time.Second
	// maxWorkers is how many jobs run at a time on one node, half of them of one deployment. They share the machine with
	// the API.
	maxWorkers = 8
	// jobTimeout is what a job gets whose worker does not say otherwise.
	jobTimeout = 5 * time.Minute
	// cutOffTime is how long Stop waits for jobs that were cancelled at the end of its patience.
	cutOffTime = 5 * time.Second
	// leftoverTime is what River's housekeeping gets to end after the last job has (see Jobs.end).
	leftoverTime = 2 * time.Second
)

// Work is what one domain does in the background.
type Work struct {
	// Register adds the domain's workers, each by AddWorker.
	Register func(*river.Workers)
	// Periodic are the jobs that no request causes; see Every.
	Periodic []*river.PeriodicJob
	// Queues are queues beside the default one, so that slow work of the domain keeps nobody waiting, and a node of the
	// version before takes no job of a kind that is new; see Queue.
	Queues []Queue
}

// Queue is where jobs wait for each other. A job names its queue in its river.InsertOpts.
type Queue struct {
	Name string
	// Workers is how many jobs of the queue run at a time on one node: of one deployment half as many while others have
	// none.
	Workers int
	// Poll is how long a job waits at most until it is seen; 0 means a second.
	Poll time.Duration
}

// Every makes a periodic job: enqueued once when a node becomes the leader, and then at each interval.
func Every(interval time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(
		river.PeriodicInterval(interval),
		func() (river.JobArgs, *river.InsertOpts) { return args, nil },
		&river.PeriodicJobOpts{RunOnStart: true}, // or a server that is restarted more often would never run it
	)
}

// Jobs is the queue and, between Start and Stop, the workers of this node.
type Jobs struct {
	store  *store.Store
	log    *slog.Logger
	client *river.Client[*sql.Tx]
	queues map[string]*turns
	trail  *audit.Trail // nil: what jobs change is not audited
	works  bool         // there are workers: a server of few domains may have none
	// stopping is closed when Stop begins.
	stopping chan struct{}
	stop     sync.Once
	// worked is closed when no job runs any more and how each ended is written down.
	worked chan struct{}
}

// New makes a queue on a migrated store. Jobs can be enqueued at once; they are worked after Start.
func New(st *store.Store, log *slog.Logger, work ...Work) (*Jobs, error) {
	workers := river.NewWorkers()
	var periodic []*river.PeriodicJob
	queues := map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: maxWorkers}}
	turns := map[string]*turns{river.QueueDefault: newTurns(pollInterval)}
	works := false
	for _, w := range work {
		if w.Register != nil {
			works = true
			w.Register(workers)
		}
		for _, q := range w.Queues {
			queues[q.Name] = river.QueueConfig{MaxWorkers: q.Workers}
			turns[q.Name] = newTurns(cmp.Or(q.Poll, pollInterval))
		}
		periodic = append(periodic, w.Periodic...)
	}
	j := &Jobs{store: st, log: log, works: works, queues: turns, worked: make(chan struct{}), stopping: make(chan struct{})}
	config := &river.Config{
		FetchCooldown:     riverPoll,
		FetchPollInterval: riverPoll,
		JobTimeout:        jobTimeout,
		Logger:            riverLogger(log),
		Middleware:        []rivertype.Middleware{&runner{jobs: j}},
		PeriodicJobs:      periodic,
		Queues:            queues,
		Workers:           workers,
	}
	if !st.Postgres() {
		config.ReindexerSchedule = river.NeverSchedule() // the index bloat that it removes is PostgreSQL's
	}
	client, err := river.NewClient(newDriver(st, turns), config)
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	j.client = client
	return j, nil
}

// newDriver chooses River's driver. Neither listens for notifications: SQLite has none, and on PostgreSQL they would
// need a connection outside the pool.
func newDriver(st *store.Store, queues map[string]*turns) riverdriver.Driver[*sql.Tx] {
	reader, writer := st.DB()
	if st.Postgres() {
		return newFairDriver(riverdatabasesql.New(writer), st, queues)
	}
	return newFairDriver(newSQLiteDriver(reader, writer), st, queues)
}

// Enqueue adds a job in the transaction of the store.Write that ctx comes from: it is worked after the commit, and
// after a rollback there never was one. opts may be nil: then those of args count, if they have any
// (river.JobArgsWithInsertOpts). A job that must be unique and waits already is not added again, without an error.
func (j *Jobs) Enqueue(ctx context.Context, args river.JobArgs, opts *river.InsertOpts) error {
	tx, ok := j.store.Tx(ctx)
	if !ok {
		return fmt.Errorf("enqueue %s: not inside store.Write, or not with the context that it gave", args.Kind())
	}
	if _, err := j.client.InsertTx(ctx, tx, args, opts); err != nil {
		return fmt.Errorf("enqueue %s: %w", args.Kind(), err)
	}
	return nil
}

// mostDepth is up to where jobs of a queue in one state are counted: metrics ask again and again.
const mostDepth = 10_000

// Depth returns how many jobs wait in each queue: those that could run now, and those that failed and wait to be tried
// again, each counted up to mostDepth. A queue in which none waits may be missing, but not the default one.
func (j *Jobs) Depth(ctx context.Context) (map[string]int64, error) {
	var parts []string
	var args []any
	for queue := range j.queues {
		for _, state := range []string{"available", "retryable"} {
			parts = append(parts, "SELECT CAST(? AS text), COUNT(*) FROM (SELECT 1 FROM river_job WHERE state = '"+state+"' AND queue = ? LIMIT ?) AS counted")
			args = append(args, queue, queue, mostDepth)
		}
	}
	reader, _ := j.store.DB()
	rows, err := reader.QueryContext(ctx, j.store.Placeholders(strings.Join(parts, " UNION ALL ")), args...)
	if err != nil {
		return nil, fmt.Errorf("read queue depth: %w", err)
	}
	defer func() { _ = rows.Close() }()
	depth := map[string]int64{river.QueueDefault: 0}
	for rows.Next() {
		var queue string
		var n int64
		if err := rows.Scan(&queue, &n); err != nil {
			return nil, fmt.Errorf("read queue depth: %w", err)
		}
		if n > 0 {
			depth[queue] += n
		}
	}
	return depth, rows.Err()
}

// Waiting returns how many jobs of a deployment wait in a queue, those included that are due later or are tried again.
func (j *Jobs) Waiting(ctx context.Context, queue string, deploymentID int64) (n int64, err error) {
	reader, _ := j.store.DB()
	query := j.store.Placeholders("SELECT COUNT(*) " + waitingJobs(j.store.Postgres()))
	if err = reader.QueryRowContext(ctx, query, queue, deploymentID).Scan(&n); err != nil {
		return 0, fmt.Errorf("count waiting jobs: %w", err)
	}
	return n, nil
}

// Lost returns the arguments of jobs of a kind that a worker took before a time and has not ended since. River frees
// jobs of dead workers only after an hour; whoever cannot wait that long, and whose jobs do no harm when they run
// again, asks here and enqueues them anew.
func (j *Jobs) Lost(ctx context.Context, kind string, before time.Time) ([]json.RawMessage, error) {
	reader, _ := j.store.DB()
	query := "SELECT args FROM river_job WHERE state = 'running' AND kind = '" + kind + "' AND attempted_at < "
	if j.store.Postgres() {
		query += "CAST('" + before.UTC().Format(time.RFC3339Nano) + "' AS timestamptz)"
	} else {
		query += "'" + before.UTC().Format("2006-01-02 15:04:05.000") + "'"
	}
	rows, err := reader.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read lost jobs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var lost []json.RawMessage
	for rows.Next() {
		var args []byte
		if err := rows.Scan(&args); err != nil {
			return nil, fmt.Errorf("read lost jobs: %w", err)
		}
		lost = append(lost, args)
	}
	return lost, rows.Err()
}
