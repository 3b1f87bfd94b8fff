package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowfork"
	"github.com/palisade/palisade/ent/workflowtask"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/expression"
	"github.com/palisade/palisade/services/workflows/schedule"
	"github.com/palisade/palisade/services/workflows/step"

	entsql "entgo.io/ent/dialect/sql"
)

// maxReadBytes is the maximum size of earlier outputs that one step's expressions may read, in bytes of JSON.
const maxReadBytes = 16 << 20

// stepsWord matches each use of steps' outputs. stepName matches the uses that name the step.
var (
	stepsWord = regexp.MustCompile(`\bsteps\b`)
	stepName  = regexp.MustCompile(`\bsteps\s*(\.\s*[A-Za-z_]|\[\s*\\?["'][A-Za-z0-9_-]+\\?["']\s*\])`)
)

// computesStepNames reports whether a step's expressions may read outputs of steps that they do not name.
func computesStepNames(s *storev1.PlannedStep) bool {
	text := string(s.GetWith()) + "\n" + s.GetCondition() + "\n" + s.GetForeachArtifact()
	return len(stepsWord.FindAllString(text, -1)) != len(stepName.FindAllString(text, -1))
}

// parameters returns a step's parameters with expressions not evaluated.
func parameters(s *storev1.PlannedStep) (map[string]any, error) {
	with := map[string]any{}
	if len(s.GetWith()) == 0 {
		return with, nil
	}
	if err := json.Unmarshal(s.GetWith(), &with); err != nil {
		return nil, fmt.Errorf("parameters of step %s: %w", s.GetName(), err)
	}
	return with, nil
}

// render evaluates the parameters of a step. Evaluation is deterministic, so an error is permanent.
func render(s *storev1.PlannedStep, scope expression.Scope) (map[string]any, error) {
	with, err := parameters(s)
	if err != nil {
		return nil, step.Permanent("%w", err)
	}
	value, err := expression.Render(with, scope)
	if err != nil {
		return nil, step.Permanent("%w", err)
	}
	rendered, ok := value.(map[string]any)
	if !ok {
		return nil, step.Permanent("the parameters are not an object")
	}
	return rendered, nil
}

// scope builds the expression scope of a task.
func (e *Engine) scope(ctx context.Context, h *leasedAttempt) (expression.Scope, error) {
	var inputs map[string]any
	if err := json.Unmarshal(h.run.Inputs, &inputs); err != nil {
		return nil, fmt.Errorf("inputs of run %d: %w", h.run.ID, err)
	}
	scope := expression.Scope{
		expression.Inputs: inputs, expression.Item: nil, expression.Index: nil, expression.Branches: nil,
		expression.Run: map[string]any{
			"id": h.run.ID, "workflow": h.run.Workflow, "projectId": nil, "gitRef": h.run.GitRef, "commit": h.run.Commit,
		},
	}
	if h.run.ProjectID != nil {
		scope[expression.Run].(map[string]any)["projectId"] = *h.run.ProjectID
	}
	steps, err := e.visibleSteps(ctx, h)
	if err != nil {
		return nil, err
	}
	scope[expression.Steps] = steps
	if err := e.addBranchScope(ctx, h, scope); err != nil {
		return nil, err
	}
	if h.step.GetType() == schedule.Join && h.reads.branches {
		scope[expression.Branches], err = e.branches(ctx, h)
	}
	return scope, err
}

// visibleSteps returns the outputs of tasks on the same path and on enclosing paths, if the step names them.
func (e *Engine) visibleSteps(ctx context.Context, h *leasedAttempt) (map[string]any, error) {
	visible := map[string]any{}
	if len(h.reads.steps) == 0 {
		return visible, nil
	}
	rows, err := e.store.Reader.WorkflowTask.Query().Where(
		workflowtask.RunID(h.run.ID), store.OneOf(workflowtask.FieldStep, h.reads.steps), store.OneOf(workflowtask.FieldPath, schedule.Enclosing(h.task.Path)),
		workflowtask.StatusIn(Succeeded, Failed, Error),
	).Select(workflowtask.FieldID, workflowtask.FieldStep, workflowtask.FieldStatus).All(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	values, err := outputs(ctx, e.store.Reader, ids, maxReadBytes)
	for _, row := range rows {
		visible[row.Step] = map[string]any{"output": values[row.ID], "status": row.Status}
	}
	return visible, err
}

// addBranchScope adds the item of the innermost foreach, and the index of the innermost foreach or parallel step.
func (e *Engine) addBranchScope(ctx context.Context, h *leasedAttempt, scope expression.Scope) error {
	for _, path := range schedule.Enclosing(h.task.Path) {
		index, indexed := schedule.Index(path)
		if !indexed {
			continue
		}
		if scope[expression.Index] == nil {
			scope[expression.Index] = int64(index)
		}
		fork, _, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], "[")
		if h.graph.Step(fork).GetType() != schedule.Foreach {
			continue
		}
		if !h.reads.item {
			return nil
		}
		of, err := e.store.Reader.WorkflowTask.Query().Where(
			workflowtask.RunID(h.run.ID), workflowtask.Step(fork), workflowtask.Path(schedule.Parent(path))).OnlyID(ctx)
		if err != nil {
			return err
		}
		items, err := itemsOf(ctx, e.store.Reader, h.run.ID, of, index, index+1)
		if err != nil {
			return err
		}
		if len(items) == 0 {
			return fmt.Errorf("the list of step %s has no item %d", fork, index)
		}
		var item any
		if err := json.Unmarshal(items[0], &item); err != nil {
			return err
		}
		scope[expression.Item] = item
		return nil
	}
	return nil
}

// branches returns the results of the branches that a join closes: the last task of each, in branch order.
func (e *Engine) branches(ctx context.Context, h *leasedAttempt) ([]any, error) {
	upstream := h.task.Upstream
	rows, err := e.store.Reader.WorkflowTask.Query().Where(func(s *entsql.Selector) {
		s.Where(store.InIDs(s.C(workflowtask.FieldID), upstream))
	}).All(ctx)
	if err != nil {
		return nil, err
	}
	values, err := outputs(ctx, e.store.Reader, upstream, maxReadBytes)
	if err != nil {
		return nil, err
	}
	last := map[string]*ent.WorkflowTask{}
	forkID := int64(0)
	for _, row := range rows {
		if row.ForkID != h.task.ForkID {
			last[row.Branch], forkID = row, row.ForkID
		}
	}
	list := []any{}
	keys, err := e.branchKeys(ctx, h, rows, forkID)
	for _, key := range keys {
		branch := map[string]any{"key": key, "status": Succeeded, "output": nil} // a branch without steps
		if row := last[key]; row != nil {
			branch["status"], branch["output"] = row.Status, values[row.ID]
		}
		list = append(list, branch)
	}
	return list, err
}

// branchKeys lists all branches of the fork that a join closes.
func (e *Engine) branchKeys(ctx context.Context, h *leasedAttempt, before []*ent.WorkflowTask, forkID int64) ([]string, error) {
	of := workflowfork.ID(forkID)
	if forkID == 0 { // no branch has a task, so the forking step comes right before
		if len(before) == 0 {
			return nil, nil
		}
		of = workflowfork.TaskID(before[0].ID)
	}
	fork, err := e.store.Reader.WorkflowFork.Query().Where(of).Only(ctx)
	if err != nil {
		return nil, err
	}
	if names := h.graph.BranchNames(fork.Step); names != nil {
		return names, nil
	}
	keys := make([]string, fork.Branches)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	return keys, nil
}
