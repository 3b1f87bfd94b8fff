package jobs

import (
	"cmp"
	"context"
	"database/sql"
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
	// pollInterval is the maximum delay before a new job is seen. The queue uses no notifications (see newDriver).
	pollInterval = time.Second
	// maxWorkers is the number of workers per node. One deployment gets at most half of them while it is alone. They
	// share the machine with the API.
	maxWorkers = 8
	// jobTimeout is the default timeout of a job.
	jobTimeout = 5 * time.Minute
	// cancelGrace is how long Stop waits after it has cancelled the running jobs.
	cancelGrace = 5 * time.Second
	// riverStopGrace is how long River's own services may take to stop after the last job has ended (see Jobs.end).
	riverStopGrace = 2 * time.Second
)

// Work is the background work of one domain.
type Work struct {
	// Register adds the domain's workers, each with AddWorker.
	Register func(*river.Workers)
	// Periodic jobs run on a schedule; see Every.
	Periodic []*river.PeriodicJob
	// Queues are queues in addition to the default one. They keep slow work from delaying other jobs, and they keep
	// nodes of the previous version from claiming jobs of a new kind.
	Queues []Queue
}

// Queue is a queue with its own workers. A job names its queue in its river.InsertOpts.
type Queue struct {
	Name string
	// Workers is the number of workers per node. A deployment that is alone gets half of them.
	Workers int
	// Poll is the maximum delay before a job is seen; 0 means one second.
	Poll time.Duration
	// Role is a role of nodes: others do not serve the queue. Empty are the nodes that serve the default queue.
	Role string
}

// Every returns a periodic job. It is enqueued when a node becomes the leader, and then at each interval.
func Every(interval time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(
		river.PeriodicInterval(interval),
		func() (river.JobArgs, *river.InsertOpts) { return args, nil },
		&river.PeriodicJobOpts{RunOnStart: true}, // otherwise a server that restarts more often would never run it
	)
}

// Jobs is the queue and, between Start and Stop, this node's workers.
type Jobs struct {
	store      *store.Store
	log        *slog.Logger
	client     *river.Client[*sql.Tx]
	queues     map[string]*turns
	trail      *audit.Trail // nil: changes are not audited
	hasWorkers bool         // false if no domain has workers
	// stopping is closed when Stop begins.
	stopping chan struct{}
	stop     sync.Once
	// drained is closed when all jobs have ended and their results are recorded.
	drained chan struct{}
}

// New returns a queue on a migrated store. Jobs can be enqueued at once, and run after Start.
func New(st *store.Store, log *slog.Logger, work ...Work) (*Jobs, error) {
	return NewWithRoles(st, log, func(string) bool { return true }, work...)
}

// NewWithRoles is New for a node that serves only the queues of its roles: see [Queue].
func NewWithRoles(st *store.Store, log *slog.Logger, serves func(role string) bool, work ...Work) (*Jobs, error) {
	workers := river.NewWorkers()
	var periodic []*river.PeriodicJob
	queues := map[string]river.QueueConfig{}
	if serves("") {
		queues[river.QueueDefault] = river.QueueConfig{MaxWorkers: maxWorkers}
	}
	turns := map[string]*turns{river.QueueDefault: newTurns(pollInterval)}
	hasWorkers := false
	for _, w := range work {
		if w.Register != nil {
			hasWorkers = true
			w.Register(workers)
		}
		for _, q := range w.Queues {
			if serves(q.Role) {
				queues[q.Name] = river.QueueConfig{MaxWorkers: q.Workers}
			}
			turns[q.Name] = newTurns(cmp.Or(q.Poll, pollInterval))
		}
		periodic = append(periodic, w.Periodic...)
	}
	j := &Jobs{store: st, log: log, hasWorkers: hasWorkers, queues: turns, drained: make(chan struct{}), stopping: make(chan struct{})}
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
		config.ReindexerSchedule = river.NeverSchedule() // it removes index bloat, which only PostgreSQL has
	}
	client, err := river.NewClient(newDriver(st, turns), config)
	if err != nil {
		return nil, fmt.Errorf("job queue: %w", err)
	}
	j.client = client
	return j, nil
}

// newDriver returns River's driver. It uses no notifications: SQLite has none, and on PostgreSQL they would need a
// connection outside the pool.
func newDriver(st *store.Store, queues map[string]*turns) riverdriver.Driver[*sql.Tx] {
	reader, writer := st.DB()
	if st.Postgres() {
		return newFairDriver(riverdatabasesql.New(writer), st, queues)
	}
	return newFairDriver(newSQLiteDriver(reader, writer), st, queues)
}

// Enqueue adds a job in the transaction of the store.Write that ctx comes from. The job runs after the commit; a
// rollback removes it. If opts is nil, the options of args apply (river.JobArgsWithInsertOpts). Enqueueing a unique
// job that is already waiting does nothing and is no error.
func (j *Jobs) Enqueue(ctx context.Context, args river.JobArgs, opts *river.InsertOpts) error {
	_, err := j.EnqueueTask(ctx, args, opts)
	return err
}

// EnqueueTask is Enqueue for jobs that clients watch. It returns the id of the job, or of the job that already waits.
func (j *Jobs) EnqueueTask(ctx context.Context, args river.JobArgs, opts *river.InsertOpts) (id int64, err error) {
	tx, ok := j.store.Tx(ctx)
	if !ok {
		return 0, fmt.Errorf("enqueue %s: not inside store.Write, or not with its context", args.Kind())
	}
	inserted, err := j.client.InsertTx(ctx, tx, args, opts)
	if err != nil {
		return 0, fmt.Errorf("enqueue %s: %w", args.Kind(), err)
	}
	return inserted.Job.ID, nil
}

// maxDepth bounds the count of a queue's jobs in one state, because metrics read it often.
const maxDepth = 10_000

// Depth returns the number of waiting jobs by queue: runnable ones and ones that wait for a retry, each counted up
// to maxDepth. An empty queue may be missing, except the default queue.
func (j *Jobs) Depth(ctx context.Context) (map[string]int64, error) {
	var parts []string
	var args []any
	for queue := range j.queues {
		for _, state := range []string{"available", "retryable"} {
			parts = append(parts, "SELECT CAST(? AS text), COUNT(*) FROM (SELECT 1 FROM river_job WHERE state = '"+state+"' AND queue = ? LIMIT ?) AS counted")
			args = append(args, queue, queue, maxDepth)
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

// Waiting returns the number of a deployment's waiting jobs in a queue, including scheduled jobs and retries.
func (j *Jobs) Waiting(ctx context.Context, queue string, deploymentID int64) (n int64, err error) {
	reader, _ := j.store.DB()
	query := j.store.Placeholders("SELECT COUNT(*) " + waitingJobs(j.store.Postgres()))
	if err = reader.QueryRowContext(ctx, query, queue, deploymentID).Scan(&n); err != nil {
		return 0, fmt.Errorf("count waiting jobs: %w", err)
	}
	return n, nil
}
