package workflows

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowfork"
	"github.com/palisade/palisade/ent/workflowtask"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/graph"
)

// stepsOfRun holds the current state of the steps of a run.
type stepsOfRun struct {
	nodes  []*workflowsv1.WorkflowStepNode // in topological order
	byName map[string]*workflowsv1.WorkflowStepNode
	types  map[string]string // linear, foreach, …
}

// liveSteps reads the state of the steps of a run in three queries: its version, its tasks by step and status, and its
// open forks.
func liveSteps(ctx context.Context, db *ent.Client, run *ent.WorkflowRun) (*stepsOfRun, error) {
	version, err := readVersion(ctx, db, run.VersionID)
	if err != nil {
		return nil, err
	}
	counts, err := countTasks(ctx, db, run.ID)
	if err != nil {
		return nil, err
	}
	steps := &stepsOfRun{byName: map[string]*workflowsv1.WorkflowStepNode{}, types: map[string]string{}}
	state := graph.Run{Tasks: map[string]graph.Tasks{}, Ended: hasEnded(run)}
	if err := steps.plan(version, counts, &state); err != nil {
		return nil, err
	}
	for _, count := range counts {
		count.addTo(steps.byName[count.Step], state.Tasks)
	}
	if !state.Ended {
		if state.Open, err = openForks(ctx, db, run.ID); err != nil {
			return nil, err
		}
	}
	for name, status := range state.Statuses() {
		node := steps.byName[name]
		if node.Status = status; status == pendingStep || status == runningStep {
			node.FinishedAt = nil
		}
	}
	return steps, nil
}

const (
	pendingStep = workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_PENDING
	runningStep = workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_RUNNING
)

// plan takes the steps from the version, published or not. If the version is gone, it takes the steps that have tasks,
// ordered by their start.
func (s *stepsOfRun) plan(version *ent.WorkflowVersion, counts []taskCount, state *graph.Run) (err error) {
	if version != nil {
		var plan *storev1.WorkflowPlan
		if s.nodes, plan, err = stepNodes(version); err != nil {
			return err
		}
		for _, step := range plan.GetSteps() {
			s.types[step.GetName()] = step.GetType()
			state.Steps = append(state.Steps, graph.Step{Name: step.GetName(), Next: step.GetNext(), ContinueOnError: step.GetContinueOnError()})
		}
	}
	for _, node := range s.nodes {
		s.byName[node.GetStepId()] = node
	}
	for _, step := range state.Steps {
		s.addUnknown(step.Name)
	}
	for _, count := range counts {
		if _, known := s.byName[count.Step]; !known {
			s.addUnknown(count.Step)
			state.Steps = append(state.Steps, graph.Step{Name: count.Step})
		}
	}
	return nil
}

func (s *stepsOfRun) addUnknown(name string) {
	if s.byName[name] == nil {
		s.byName[name] = &workflowsv1.WorkflowStepNode{StepId: name, Name: name, DisplayName: name}
		s.nodes = append(s.nodes, s.byName[name])
	}
}

// taskCount is a row of the query that aggregates tasks by step and status.
type taskCount struct {
	Step        string        `sql:"step"`
	Status      string        `sql:"status"`
	N           int64         `sql:"n"`
	First       int64         `sql:"first"`
	StartedAt   sql.NullInt64 `sql:"started"`
	FinishedAt  sql.NullInt64 `sql:"finished"`
	CostUSD     float64       `sql:"usd"`
	CostCredits float64       `sql:"credits"`
}

func countTasks(ctx context.Context, db *ent.Client, runID int64) (counts []taskCount, err error) {
	err = db.WorkflowTask.Query().Where(workflowtask.RunID(runID)).GroupBy(workflowtask.FieldStep, workflowtask.FieldStatus).Aggregate(
		ent.As(ent.Count(), "n"), ent.As(ent.Min(workflowtask.FieldID), "first"),
		ent.As(ent.Min(workflowtask.FieldStartedAt), "started"), ent.As(ent.Max(workflowtask.FieldFinishedAt), "finished"),
		ent.As(ent.Sum(workflowtask.FieldCostUsd), "usd"), ent.As(ent.Sum(workflowtask.FieldCostCredits), "credits"),
	).Scan(ctx, &counts)
	slices.SortFunc(counts, func(a, b taskCount) int { return int(a.First - b.First) })
	return counts, err
}

// addTo adds the counts to the step's totals.
func (c taskCount) addTo(node *workflowsv1.WorkflowStepNode, all map[string]graph.Tasks) {
	tasks := all[c.Step]
	switch c.Status {
	case "pending":
		tasks.Pending += c.N
	case "running":
		tasks.Running += c.N
	case "succeeded":
		tasks.Succeeded += c.N
		node.TasksCompleted += c.N
	case "skipped":
		tasks.Skipped += c.N
	case "failed":
		tasks.Failed += c.N
		node.TasksFailed += c.N
	default:
		tasks.Error += c.N
		node.TasksFailed += c.N
	}
	all[c.Step] = tasks
	node.TaskCount += c.N
	node.CostUsd = llm.Money(node.CostUsd + c.CostUSD)
	node.CostCredits = llm.Money(node.CostCredits + c.CostCredits)
	if at := c.StartedAt; at.Valid && (node.GetStartedAt() == nil || store.Time(at.Int64).Before(node.GetStartedAt().AsTime())) {
		node.StartedAt = timestamppb.New(store.Time(at.Int64))
	}
	if at := c.FinishedAt; at.Valid && (node.GetFinishedAt() == nil || store.Time(at.Int64).After(node.GetFinishedAt().AsTime())) {
		node.FinishedAt = timestamppb.New(store.Time(at.Int64))
	}
}

// openForks reads the forks that still wait at their joins. A nested foreach may have many forks; the query returns one
// row for all of them.
func openForks(ctx context.Context, db *ent.Client, runID int64) ([]graph.Fork, error) {
	var rows []struct {
		Step      string `sql:"step"`
		Join      string `sql:"join_step"`
		Unstarted int64  `sql:"unstarted"`
	}
	waiting := func(s *entsql.Selector) {
		s.Where(entsql.ColumnsLT(s.C(workflowfork.FieldArrived), s.C(workflowfork.FieldBranches)))
	}
	err := db.WorkflowFork.Query().Where(workflowfork.RunID(runID), waiting).GroupBy(workflowfork.FieldStep, workflowfork.FieldJoinStep).
		Aggregate(func(s *entsql.Selector) string {
			return entsql.As(fmt.Sprintf("MAX(%s - %s)", s.C(workflowfork.FieldBranches), s.C(workflowfork.FieldStarted)), "unstarted")
		}).Scan(ctx, &rows)
	forks := make([]graph.Fork, len(rows))
	for i, row := range rows {
		forks[i] = graph.Fork{Step: row.Step, Join: row.Join, Unstarted: row.Unstarted > 0}
	}
	return forks, err
}

func convertTask(row *ent.WorkflowTask, steps *stepsOfRun) *workflowsv1.WorkflowTaskNode {
	node := &workflowsv1.WorkflowTaskNode{
		TaskId: strconv.FormatInt(row.ID, 10), StepId: row.Step, DisplayName: row.Step, Status: stepStatuses[row.Status],
		StartedAt: store.Timestamp(row.StartedAt), FinishedAt: store.Timestamp(row.FinishedAt), LogicalPath: row.Path, BranchKey: row.Branch,
		ForeachIndex: steps.foreachIndex(row.Path), ForeachValuePreview: row.ValuePreview,
	}
	if step := steps.byName[row.Step]; step != nil {
		node.DisplayName = step.GetDisplayName()
	}
	if row.Path != "" {
		node.DisplayName += " (" + row.Path + ")"
	}
	for _, id := range row.Upstream {
		node.UpstreamTaskIds = append(node.UpstreamTaskIds, strconv.FormatInt(id, 10))
	}
	return node
}

// foreachIndex returns the index in the innermost foreach of a path such as units[3]/checks.sqli.
func (s *stepsOfRun) foreachIndex(path string) *int64 {
	segments := strings.Split(path, "/")
	for _, segment := range slices.Backward(segments) {
		name, index, ok := strings.Cut(strings.TrimSuffix(segment, "]"), "[")
		if n, err := strconv.ParseInt(index, 10, 64); ok && err == nil && s.types[name] != "parallel" {
			return &n
		}
	}
	return nil
}
