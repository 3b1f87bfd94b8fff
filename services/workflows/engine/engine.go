package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowrun"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/expression"
	"github.com/palisade/palisade/services/workflows/schedule"
	"github.com/palisade/palisade/services/workflows/step"
)

const (
	// lease is how long an attempt belongs to a worker of this server without a heartbeat. heartbeat is the interval of
	// renewals. watch is how often a worker checks whether its attempt was canceled.
	lease     = 30 * time.Second
	heartbeat = 10 * time.Second
	watch     = 2 * time.Second
	// grace is the time for a worker to record its timeout before the lease expires.
	grace = 10 * time.Second
	// defaultTimeout applies to steps without a timeout.
	defaultTimeout = 10 * time.Minute
	// maxAttempts limits the attempts of a run: the number of tasks is checked before they are created, but each may be
	// retried.
	maxAttempts = 1_000_000
	// maxLost is how many attempts of a task may end without a result before the task ends in error.
	maxLost = 3
	// firstRetry is the backoff before the second attempt; it doubles up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// plans is the number of cached workflow versions. turns is the number of claim criteria with a stored turn.
	plans, turns = 128, 1024
	// CreditsPerDollar is the contract's price of credits.
	CreditsPerDollar = 100
)

// Status of tasks and attempts, as stored.
const (
	Pending   = "pending"
	Running   = "running"
	Succeeded = "succeeded"
	Failed    = "failed"
	Skipped   = "skipped"
	Error     = "error"
)

// Stored statuses of runs, except Running and Failed.
const (
	Submitted = "submitted"
	Completed = "completed"
	Cancelled = "cancelled"
)

// Engine runs workflows.
type Engine struct {
	store *store.Store
	kinds step.Registry
	log   *slog.Logger
	// maxTasks is the maximum number of tasks of a run.
	maxTasks int64
	plans    *lru.Cache[int64, *program]
	// turns holds the run that was last served for each set of claim criteria; see nextTurn.
	turns *lru.Cache[string, int64]
	// node is the prefix of the names of this process's workers.
	node string
}

// New creates an engine for steps of the given kinds. A run that needs more than maxTasks tasks fails.
func New(st *store.Store, kinds step.Registry, maxTasks int, log *slog.Logger) *Engine {
	return &Engine{
		store: st, kinds: kinds, log: log, maxTasks: int64(maxTasks), plans: newCache[int64, *program](plans), turns: newCache[string, int64](turns),
		node: rand.Text()[:12],
	}
}

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // the size is a constant
	}
	return cache
}

// program is a workflow version, compiled for execution.
type program struct {
	graph  *schedule.Graph
	budget float64
	reads  map[string]reads
}

// reads is what the expressions of a step read from the run.
type reads struct {
	steps           []string
	item, branches  bool
	condition, list string
}

// program returns a version of the context's deployment.
func (e *Engine) program(ctx context.Context, versionID int64) (*program, error) {
	if p, ok := e.plans.Get(versionID); ok {
		return p, nil
	}
	row, err := e.store.Reader.WorkflowVersion.Get(ctx, versionID)
	if err != nil {
		return nil, fmt.Errorf("version %d of a workflow: %w", versionID, err)
	}
	plan := &storev1.WorkflowPlan{}
	if err := proto.Unmarshal(row.Plan, plan); err != nil {
		return nil, fmt.Errorf("plan of version %d of workflow %s: %w", versionID, row.Name, err)
	}
	graph, err := schedule.New(plan)
	if err != nil {
		return nil, fmt.Errorf("plan of version %d of workflow %s: %w", versionID, row.Name, err)
	}
	p := &program{graph: graph, budget: plan.GetBudgetCredits(), reads: map[string]reads{}}
	for _, s := range plan.GetSteps() {
		with, err := parameters(s)
		if err != nil {
			return nil, err
		}
		p.reads[s.GetName()] = readsOf(graph, s, with)
	}
	e.plans.Add(versionID, p)
	return p, nil
}

func readsOf(graph *schedule.Graph, s *storev1.PlannedStep, with map[string]any) reads {
	r := reads{condition: s.GetCondition(), list: s.GetForeachArtifact()}
	uses := []expression.Uses{expression.UsesOf(with)}
	for _, text := range []string{r.condition, r.list} {
		if text != "" {
			uses = append(uses, expression.UsesOfExpression(text))
		}
	}
	named := map[string]bool{}

	for _, u := range uses {
		r.item = r.item || u.Variables[expression.Item]
		r.branches = r.branches || u.Variables[expression.Branches]
		for name := range u.Steps {
			named[name] = true
		}
	}
	all := computesStepNames(s)
	for _, name := range graph.Names() {
		if (all || named[name]) && name != s.GetName() {
			r.steps = append(r.steps, name)
		}
	}
	return r
}

// lock finds an active run and locks it until the end of the transaction; nil if it has ended.
func (e *Engine) lock(ctx context.Context, tx *ent.Tx, id int64) (*ent.WorkflowRun, error) {
	query := tx.WorkflowRun.Query().Where(workflowrun.ID(id))
	if e.store.Postgres() {
		query.ForUpdate()
	}
	run, err := query.Only(ctx)
	if err != nil {
		return nil, err
	}
	if !Active(run) {
		return nil, nil
	}
	return run, nil
}

// Active reports whether a run has not ended.
func Active(run *ent.WorkflowRun) bool { return run.Status == Submitted || run.Status == Running }

// queueOf returns the given queue, or the queue of the running job if it is nil.
func queueOf(ctx context.Context, queue *jobs.Jobs) *jobs.Jobs {
	if queue == nil {
		return jobs.FromContext(ctx)
	}
	return queue
}
