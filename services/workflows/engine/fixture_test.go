package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/ent/workflowtask"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/workflows/definition"
	"github.com/palisade/palisade/services/workflows/step"
)

// testTimeout is the test timeout. Tests normally need less than a tenth of it.
const testTimeout = 10 * time.Minute

// testMaxTasks is the maximum number of tasks of a run in these tests.
const testMaxTasks = 20_000

// onEachStore runs a test on both databases.
func onEachStore(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		o.MaxOpen = 12
		test(t, newFixture(t, o))
	})
}

// fixture is a database with a deployment and a running engine.
type fixture struct {
	t       *testing.T
	options store.Options
	store   *store.Store
	ctx     context.Context
	kinds   *kinds
	*node
}

// node is one server.
type node struct {
	engine *Engine
	queue  *jobs.Jobs
}

// stop stops the node. Running work is canceled after patience.
func (n *node) stop(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return n.queue.Stop(ctx)
}

func newFixture(t *testing.T, o store.Options) *fixture {
	t.Helper()
	f := &fixture{t: t, options: o, kinds: newKinds()}
	f.store = f.open()
	err := f.store.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Deployment.Create().SetSlug("acme").SetName("Acme").SetCreatedAt(store.Now()).Save(ctx)
		if err == nil {
			f.ctx = tenant.NewContext(context.WithoutCancel(t.Context()), row.ID)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.node = f.start(f.store)
	return f
}

func (f *fixture) open() *store.Store {
	f.t.Helper()
	return storetest.Open(f.t, f.options)
}

// start starts a server on the database.
func (f *fixture) start(st *store.Store) *node {
	f.t.Helper()
	log, err := telemetry.NewLogger(f.t.Output(), "text", "warn")
	if err != nil {
		f.t.Fatal(err)
	}
	n := &node{engine: New(st, f.kinds.registry(), testMaxTasks, log)}
	if n.queue, err = jobs.New(st, log, n.engine.Background(time.Hour)); err != nil {
		f.t.Fatal(err)
	}
	if err := n.queue.Start(context.WithoutCancel(f.t.Context())); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := n.stop(time.Second); err != nil {
			f.t.Error(err)
		}
	})
	return n
}

// run publishes a definition and starts a run of it.
func (f *fixture) run(source string, budget float64) *ent.WorkflowRun {
	f.t.Helper()
	run, err := f.tryRun(source, budget)
	if err != nil {
		f.t.Fatal(err)
	}
	return run
}

func (f *fixture) tryRun(source string, budget float64) (*ent.WorkflowRun, error) {
	f.t.Helper()
	parsed, problems := definition.Parse([]byte(source), f.kinds.registry())
	if len(problems) > 0 {
		f.t.Fatal(problems)
	}
	plan, err := proto.Marshal(parsed.Plan)
	if err != nil {
		f.t.Fatal(err)
	}
	entry, err := proto.Marshal(parsed.Entry)
	if err != nil {
		f.t.Fatal(err)
	}
	var run *ent.WorkflowRun
	err = f.store.Write(f.ctx, func(ctx context.Context, tx *ent.Tx) error {
		numbered, err := tx.WorkflowVersion.Query().Count(ctx)
		if err != nil {
			return err
		}
		version, err := tx.WorkflowVersion.Create().SetName(parsed.Entry.GetName()).SetNumber(int64(numbered) + 1).SetCatalogEntry(entry).
			SetPlan(plan).SetSource([]byte(source)).SetSourceHash("").SetPublishedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		f.engine.plans.Remove(version.ID)
		run, err = tx.WorkflowRun.Create().SetWorkflow(version.Name).SetVersionID(version.ID).SetStatus(Submitted).SetTriggerSource("manual").
			SetEventSource("api").SetActorKind("token").SetActorID(1).SetInputs([]byte(`{"n": 3}`)).SetBudgetCredits(budget).
			SetSubmittedAt(store.Now()).Save(ctx)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	needs, err := f.engine.Needs(f.ctx, run.VersionID)
	if err != nil {
		return nil, err
	}
	return run, f.store.Write(f.ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.WorkflowRun.UpdateOneID(run.ID).SetPlannedTasks(needs).Exec(ctx); err != nil {
			return err
		}
		return f.engine.Begin(ctx, tx, f.queue, run)
	})
}

// ended waits for the end of a run and checks the invariants of ended runs.
func (f *fixture) ended(run *ent.WorkflowRun, want string) *ent.WorkflowRun {
	f.t.Helper()
	f.eventually("the run ends", func() bool {
		var err error
		if run, err = f.store.Reader.WorkflowRun.Get(f.ctx, run.ID); err != nil {
			f.t.Fatal(err)
		}
		return !Active(run)
	})
	if run.Status != want {
		f.t.Fatalf("the run is %s (%s), want %s", run.Status, run.Error, want)
	}
	if run.FinishedAt == nil || len(run.Report) == 0 {
		f.t.Error("an ended run has no time and no report")
	}
	left := f.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID), workflowtask.StatusIn(Pending, Running)).CountX(f.ctx)
	left += f.store.Reader.WorkflowAttempt.Query().Where(workflowattempt.RunID(run.ID),
		workflowattempt.Or(workflowattempt.StatusIn(Pending, Running), workflowattempt.LeaseUntilNotNil())).CountX(f.ctx)
	if left > 0 {
		f.t.Errorf("%d tasks and attempts of the ended run are not final", left)
	}
	return run
}

func (f *fixture) eventually(what string, yes func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(testTimeout); !yes(); {
		if time.Now().After(deadline) {
			f.t.Fatalf("it did not happen: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// tasks returns the tasks of a run as "step path status", sorted.
func (f *fixture) tasks(run *ent.WorkflowRun) []string {
	f.t.Helper()
	rows, err := f.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID)).All(f.ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, row := range rows {
		out = append(out, strings.Join(strings.Fields(row.Step+" "+row.Path+" "+row.Status), " "))
	}
	slices.Sort(out)
	return out
}

// attempts returns the attempts of a step of a run as "index status: error".
func (f *fixture) attempts(run *ent.WorkflowRun, name string) []string {
	f.t.Helper()
	rows, err := f.store.Reader.WorkflowAttempt.Query().Where(workflowattempt.RunID(run.ID), workflowattempt.Step(name)).
		Order(ent.Asc(workflowattempt.FieldTaskID, workflowattempt.FieldIndex)).All(f.ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, row := range rows {
		out = append(out, fmt.Sprintf("%d %s: %s", row.Index, row.Status, row.Error))
	}
	return out
}

// output is the output of a step's task at a path, as JSON.
func (f *fixture) output(run *ent.WorkflowRun, name, path string) string {
	f.t.Helper()
	id, err := f.store.Reader.WorkflowTask.Query().Where(workflowtask.RunID(run.ID), workflowtask.Step(name), workflowtask.Path(path)).OnlyID(f.ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	content, err := readArtifact(f.ctx, f.store.Reader, run.ID, id, outputName)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(content)
}

func (f *fixture) same(what string, got, want []string) {
	f.t.Helper()
	if !slices.Equal(got, want) {
		f.t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// kinds are steps controlled by the test. They record their calls.
type kinds struct {
	mu   sync.Mutex
	runs map[string]int
	// begun receives the name of each started step of the kind "wait"; release ends the steps.
	begun   chan string
	release chan struct{}
}

func newKinds() *kinds {
	return &kinds{runs: map[string]int{}, begun: make(chan string, 100), release: make(chan struct{})}
}

// twice lists attempts that ran more than once.
func (k *kinds) twice() (keys []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, n := range k.runs {
		if n > 1 {
			keys = append(keys, key)
		}
	}
	return keys
}

func (k *kinds) registry() step.Registry {
	kind := func(name string, run func(context.Context, step.Call) (step.Result, error)) step.Kind {
		return step.Kind{Name: name, Run: func(ctx context.Context, call step.Call) (step.Result, error) {
			k.mu.Lock()
			k.runs[fmt.Sprint(call.TaskID, "/", call.Attempt)]++
			k.mu.Unlock()
			return run(ctx, call)
		}}
	}
	return step.NewRegistry(
		kind("pass", func(_ context.Context, call step.Call) (step.Result, error) {
			output, err := json.Marshal(call.With["output"])
			cost, _ := call.With["cost"].(float64)
			return step.Result{Output: output, CostUSD: cost}, err
		}),
		kind("fail", func(_ context.Context, call step.Call) (step.Result, error) {
			if until, set := call.With["until"]; set && fmt.Sprint(call.Attempt) >= fmt.Sprint(until) { // float64 or int64
				return step.Result{}, nil
			}
			if call.With["permanent"] == true {
				return step.Result{CostUSD: 0.01}, step.Permanent("it can never\nwork")
			}
			return step.Result{CostUSD: 0.01}, errors.New("not this time")
		}),
		kind("panic", func(context.Context, step.Call) (step.Result, error) { panic("a mistake in a step") }),
		kind("wait", func(ctx context.Context, call step.Call) (step.Result, error) {
			k.begun <- call.Step
			select {
			case <-ctx.Done():
				return step.Result{}, ctx.Err()
			case <-k.release:
				return step.Result{Output: json.RawMessage(`"waited"`)}, nil
			}
		}),
		kind("deaf", func(_ context.Context, call step.Call) (step.Result, error) {
			k.begun <- call.Step
			<-k.release
			return step.Result{}, nil
		}),
		kind("late", func(ctx context.Context, call step.Call) (step.Result, error) {
			k.begun <- call.Step
			<-ctx.Done()
			return step.Result{Output: json.RawMessage(`[1, 2]`), CostUSD: 0.03}, nil
		}),
		step.Kind{Name: "external"},
	)
}
