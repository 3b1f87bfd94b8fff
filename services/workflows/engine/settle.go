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
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/expression"
	"github.com/palisade/palisade/services/workflows/schedule"
	"github.com/palisade/palisade/services/workflows/step"
)

// maxSummary is how long the reason of a failure may be, in characters.
const maxSummary = 500

// outcome is how an attempt ended.
type outcome struct {
	// dropped says that the attempt is not this worker's any more: nothing is to be written.
	dropped bool
	// status is succeeded, failed or error, summary says why it is no success.
	status, summary string
	// permanent: another attempt would fail too. lost: it brought no result. stopped: the server was told to stop.
	permanent, lost, stopped bool

	result    step.Result
	artifacts []packed
	items     []json.RawMessage
	value     string
}

// cost is what the attempt cost in US dollars: a number that can be added up.
func (o outcome) cost() float64 {
	if math.IsNaN(o.result.CostUSD) || math.IsInf(o.result.CostUSD, 0) {
		return 0
	}
	return max(o.result.CostUSD, 0)
}

// failure is the outcome of a step that said that it failed, or that could not be asked.
func (e *Engine) failure(ctx context.Context, err error, costUSD float64) outcome {
	if errors.Is(err, errUnread) {
		e.log.WarnContext(ctx, "a workflow attempt could not be made", "error", err)
		return outcome{status: Error, summary: errUnread.Error(), lost: true, result: step.Result{CostUSD: costUSD}}
	}
	return outcome{status: Failed, summary: oneLine(err.Error()), permanent: step.IsPermanent(err), result: step.Result{CostUSD: costUSD}}
}

// oneLine makes an error's text fit for people: one line of a bearable length, valid UTF-8.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")), " ")
	if runes := []rune(text); len(runes) > maxSummary {
		text = string(runes[:maxSummary-1]) + "…"
	}
	return text
}

// conclude checks what a step has brought and evaluates what the graph needs of it: the list of a foreach, the
// condition of a switch. An error makes the attempt a failure.
func (e *Engine) conclude(ctx context.Context, h *held, result step.Result) (outcome, error) {
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

func (e *Engine) concludeFork(ctx context.Context, h *held, output any, done *outcome) error {
	kind := h.step.GetType()
	if kind != schedule.Foreach && kind != schedule.Switch {
		return nil
	}
	scope, err := e.scope(ctx, h)
	if err != nil {
		return unread(err)
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

// ofWorker are the conditions that an attempt is still running for a worker.
func ofWorker(id int64, worker string) []predicate.WorkflowAttempt {
	return []predicate.WorkflowAttempt{workflowattempt.ID(id), workflowattempt.Status(Running), workflowattempt.Worker(worker)}
}

// extend gives a worker more time; false when the attempt is not its own any more.
func (e *Engine) extend(ctx context.Context, id int64, worker string, until int64) (mine bool, err error) {
	err = e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.WorkflowAttempt.Update().Where(ofWorker(id, worker)...).SetLeaseUntil(until).Save(ctx)
		mine = n == 1
		return err
	})
	return mine, err
}

// settle ends an attempt and makes what follows, all or nothing. It counts only while the attempt is running for
// h.worker and the further conditions hold; settled says whether it did. A nil queue is that of the job that runs.
func (e *Engine) settle(ctx context.Context, queue *jobs.Jobs, h *held, done outcome, only ...predicate.WorkflowAttempt) (settled bool, err error) {
	err = e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		settled = false
		run, err := e.lock(ctx, tx, h.run.ID)
		if err != nil || run == nil {
			return err
		}
		cost := done.cost()
		n, err := tx.WorkflowAttempt.Update().Where(append(ofWorker(h.attempt.ID, h.worker), only...)...).
			SetStatus(done.status).SetError(done.summary).SetFinishedAt(store.Now()).ClearLeaseUntil().ClearDeadline().
			SetCostUsd(cost).SetCostCredits(cost * CreditsPerDollar).Save(ctx)
		if settled = n == 1; err != nil || !settled {
			return err
		}
		w := &writing{engine: e, tx: tx, queue: queueOf(ctx, queue), held: h, run: run}
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

// charge counts what an attempt cost that others have ended before its worker could: because the run ended, or the
// worker was thought dead. It does so once.
func (e *Engine) charge(ctx context.Context, h *held, cost float64) error {
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

// writing is the transaction that ends an attempt.
type writing struct {
	*held
	engine *Engine
	tx     *ent.Tx
	queue  *jobs.Jobs
	run    *ent.WorkflowRun
	task   *ent.WorkflowTask
}

func (w *writing) settle(ctx context.Context, done outcome, cost float64) error {
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

// exhausted says why a run may not go on, if so.
func (w *writing) exhausted() string {
	budget := w.run.BudgetCredits
	switch {
	case budget > 0 && w.run.CostCredits > budget:
		return fmt.Sprintf("the budget of %g credits is used up", budget)
	case w.run.Revision > 2*maxAttempts: // it grows when an attempt begins, and when it ends
		return fmt.Sprintf("the run has made more than %d attempts", maxAttempts)
	}
	return ""
}

func (w *writing) label() string {
	if w.task.Path == "" {
		return w.task.Step
	}
	return w.task.Step + " (" + w.task.Path + ")"
}

// retry decides whether there is another attempt, and how long it waits. Failures have the retries of the step, lost
// attempts an allowance of their own, and those that ended because the server stopped do not count.
func (w *writing) retry(ctx context.Context, done outcome) (again bool, wait time.Duration, err error) {
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
