package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/expression"
	"github.com/palisade/palisade/services/workflows/schedule"
	"github.com/palisade/palisade/services/workflows/step"
)

// maxSummary is the maximum length of a failure's reason, in characters.
const maxSummary = 500

// outcome is the result of an attempt.
type outcome struct {
	// dropped: the worker has lost the attempt, and nothing is written.
	dropped bool
	// status is succeeded, failed or error. summary gives the reason unless it is succeeded.
	status, summary string
	// permanent: a retry would fail too. lost: the attempt has no result. stopped: the server is shutting down.
	permanent, lost, stopped bool

	result    step.Result
	artifacts []packed
	items     []json.RawMessage
	value     string
}

// cost returns the attempt's cost in US dollars; invalid numbers count as 0.
func (o outcome) cost() float64 {
	if math.IsNaN(o.result.CostUSD) || math.IsInf(o.result.CostUSD, 0) {
		return 0
	}
	return max(o.result.CostUSD, 0)
}

// failure is the outcome of a step that returned an error or could not be run.
func (e *Engine) failure(ctx context.Context, err error, costUSD float64) outcome {
	if errors.Is(err, errTransient) {
		e.log.WarnContext(ctx, "a workflow attempt could not be created", "error", err)
		return outcome{status: Error, summary: errTransient.Error(), lost: true, result: step.Result{CostUSD: costUSD}}
	}
	return outcome{status: Failed, summary: oneLine(err.Error()), permanent: step.IsPermanent(err), result: step.Result{CostUSD: costUSD}}
}

// oneLine reduces an error text to one line of valid UTF-8 and at most maxSummary characters.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")), " ")
	if runes := []rune(text); len(runes) > maxSummary {
		text = string(runes[:maxSummary-1]) + "…"
	}
	return text
}

// conclude validates a step's result and evaluates what the graph needs from it: the list of a foreach, the condition
// of a switch. An error makes the attempt a failure.
func (e *Engine) conclude(ctx context.Context, h *leasedAttempt, result step.Result) (outcome, error) {
	done := outcome{status: Succeeded, result: result}
	if len(result.Output) == 0 {
		result.Output = json.RawMessage("null")
	}
	if len(result.Output) > step.MaxOutput {
		return done, step.Permanent("the output has %d bytes, want at most %d", len(result.Output), step.MaxOutput)
	}
	var output any
	if err := json.Unmarshal(result.Output, &output); err != nil {
		return done, step.Permanent("the output is no JSON: %w", err)
	}
	done.artifacts = []packed{pack(outputName, result.Output)}
	names, sum := map[string]bool{outputName: true}, 0
	for _, a := range result.Artifacts {
		sum += len(a.Content)
		switch {
		case a.Name == "" || names[a.Name] || strings.Contains(a.Name, ":"):
			return done, step.Permanent("an artifact cannot be called %q: names are unique, not %q, and have no colon", a.Name, outputName)
		case len(a.Content) > step.MaxArtifact || sum > step.MaxArtifacts:
			return done, step.Permanent("artifact %q is too large: one may have %d bytes, all of a task %d", a.Name, step.MaxArtifact, step.MaxArtifacts)
		}
		names[a.Name] = true
		done.artifacts = append(done.artifacts, pack(a.Name, a.Content))
	}
	return done, e.concludeFork(ctx, h, output, &done)
}

func (e *Engine) concludeFork(ctx context.Context, h *leasedAttempt, output any, done *outcome) error {
	kind := h.step.GetType()
	if kind != schedule.Foreach && kind != schedule.Switch {
		return nil
	}
	scope, err := e.scope(ctx, h)
	if err != nil {
		return transient(err)
	}
	steps, _ := scope[expression.Steps].(map[string]any)
	steps[h.step.GetName()] = map[string]any{"output": output, "status": Succeeded}
	if kind == schedule.Switch {
		value, err := expression.Eval(h.reads.condition, scope)
		if err == nil {
			done.value, err = expression.Text(value)
		}
		if err != nil {
			return step.Permanent("condition: %w", err)
		}
		return nil
	}
	value, err := expression.Eval(h.reads.list, scope)
	if err != nil {
		return step.Permanent("foreach: %w", err)
	}
	list, ok := value.([]any)
	if !ok {
		return step.Permanent("foreach: %s gives no list", h.reads.list)
	}
	if len(list) > schedule.MaxItems {
		return step.Permanent("foreach: the list has %d items, want at most %d", len(list), schedule.MaxItems)
	}
	for _, item := range list {
		text, err := json.Marshal(item)
		if err != nil {
			return step.Permanent("foreach: %w", err)
		}
		done.items = append(done.items, text)
	}
	items, err := packItems(done.items)
	done.artifacts = append(done.artifacts, items...)
	return err
}

// runningUnder selects an attempt that is still running under a worker.
func runningUnder(id int64, worker string) []predicate.WorkflowAttempt {
	return []predicate.WorkflowAttempt{workflowattempt.ID(id), workflowattempt.Status(Running), workflowattempt.Worker(worker)}
}

// extend renews a worker's lease; false if the worker no longer owns the attempt.
func (e *Engine) extend(ctx context.Context, id int64, worker string, until int64) (owned bool, err error) {
	err = e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.WorkflowAttempt.Update().Where(runningUnder(id, worker)...).SetLeaseUntil(until).Save(ctx)
		owned = n == 1
		return err
	})
	return owned, err
}

// settle ends an attempt and creates its follow-up tasks in one transaction. It takes effect only if the attempt is
// still running under h.worker and the further conditions hold; settled reports that. A nil queue means the queue of
// the running job.
func (e *Engine) settle(ctx context.Context, queue *jobs.Jobs, h *leasedAttempt, done outcome, only ...predicate.WorkflowAttempt) (settled bool, err error) {
	err = e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		settled = false
		run, err := e.lock(ctx, tx, h.run.ID)
		if err != nil || run == nil {
			return err
		}
		cost := done.cost()
		n, err := tx.WorkflowAttempt.Update().Where(append(runningUnder(h.attempt.ID, h.worker), only...)...).
			SetStatus(done.status).SetError(done.summary).SetFinishedAt(store.Now()).ClearLeaseUntil().ClearDeadline().
			SetCostUsd(cost).SetCostCredits(cost * CreditsPerDollar).Save(ctx)
		if settled = n == 1; err != nil || !settled {
			return err
		}
		w := &transition{engine: e, tx: tx, queue: queueOf(ctx, queue), leasedAttempt: h, run: run}
		if w.task, err = tx.WorkflowTask.Get(ctx, h.task.ID); err != nil {
			return err
		}
		change := run.Update().AddRevision(1).AddCostUsd(cost).AddCostCredits(cost * CreditsPerDollar)
		if done.result.Commit != "" {
			change.SetCommit(done.result.Commit)
		}
		if w.run, err = change.Save(ctx); err != nil {
			return err
		}
		return w.settle(ctx, done, cost)
	})
	return settled && err == nil, err
}

// charge adds, once, the cost of an attempt that ended before its worker was done, because the run ended or the
// lease expired.
func (e *Engine) charge(ctx context.Context, h *leasedAttempt, cost float64) error {
	if cost == 0 {
		return nil
	}
	return e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := e.lock(ctx, tx, h.run.ID); err != nil {
			return err
		}
		n, err := tx.WorkflowAttempt.Update().Where(workflowattempt.ID(h.attempt.ID), workflowattempt.Worker(h.worker),
			workflowattempt.StatusNEQ(Running), workflowattempt.CostUsd(0)).SetCostUsd(cost).SetCostCredits(cost * CreditsPerDollar).Save(ctx)
		if err != nil || n == 0 {
			return err
		}
		if err := tx.WorkflowTask.UpdateOneID(h.task.ID).AddCostUsd(cost).AddCostCredits(cost * CreditsPerDollar).Exec(ctx); err != nil {
			return err
		}
		return tx.WorkflowRun.UpdateOneID(h.run.ID).AddRevision(1).AddCostUsd(cost).AddCostCredits(cost * CreditsPerDollar).Exec(ctx)
	})
}

// transition is the transaction that ends an attempt.
type transition struct {
	*leasedAttempt
	engine *Engine
	tx     *ent.Tx
	queue  *jobs.Jobs
	run    *ent.WorkflowRun
	task   *ent.WorkflowTask
}

func (w *transition) settle(ctx context.Context, done outcome, cost float64) error {
	if err := storeArtifacts(ctx, w.tx, w.run.ID, w.task.ID, done.artifacts); err != nil {
		return err
	}
	change := w.task.Update().AddCostUsd(cost).AddCostCredits(cost * CreditsPerDollar)
	if done.lost {
		change.AddLost(1)
	}
	again, wait, err := w.retry(ctx, done)
	if err != nil {
		return err
	}
	stop := w.exhausted()
	if again && stop == "" {
		attempts := w.task.Attempts
		if err := change.SetStatus(Pending).AddAttempts(1).Exec(ctx); err != nil {
			return err
		}
		return w.attempts(ctx, wait, attempts, w.task)
	}
	if err := change.SetStatus(done.status).SetFinishedAt(store.Now()).Exec(ctx); err != nil {
		return err
	}
	if stop != "" {
		return w.end(ctx, Failed, stop)
	}
	if done.status != Succeeded && !w.step.GetContinueOnError() {
		return w.end(ctx, Failed, oneLine(fmt.Sprintf("step %s failed: %s", w.label(), done.summary)))
	}
	return w.advance(ctx, done)
}

// exhausted returns the reason why a run must stop because of a limit; "" if none is reached.
func (w *transition) exhausted() string {
	budget := w.run.BudgetCredits
	switch {
	case budget > 0 && llm.Money(w.run.CostCredits) > budget:
		return fmt.Sprintf("the budget of %g credits is used up", budget)
	case w.run.Revision > 2*maxAttempts: // an attempt's start and its end each increment it
		return fmt.Sprintf("the run has made more than %d attempts", maxAttempts)
	}
	return ""
}

func (w *transition) label() string {
	if w.task.Path == "" {
		return w.task.Step
	}
	return w.task.Step + " (" + w.task.Path + ")"
}

// retry decides whether to retry and how long to wait. Failures use the step's retries, lost attempts have their own
// limit, and attempts that ended because the server stopped do not count.
func (w *transition) retry(ctx context.Context, done outcome) (again bool, wait time.Duration, err error) {
	switch {
	case done.status == Succeeded || done.permanent:
		return false, 0, nil
	case done.stopped:
		return true, 0, nil
	case done.lost:
		return w.task.Lost+1 < maxLost, 0, nil
	}
	failed, err := w.tx.WorkflowAttempt.Query().Where(workflowattempt.TaskID(w.task.ID), workflowattempt.Status(Failed)).Count(ctx)
	if err != nil {
		return false, 0, err
	}
	wait = min(firstRetry<<min(failed-1, 16), lastRetry)
	return failed <= int(w.step.GetRetries()), wait, nil
}
