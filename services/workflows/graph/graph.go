// Package graph says where the steps of a run are together, from how many of their tasks are where.
package graph

import (
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// Step is one of a plan.
type Step struct {
	Name string
	// Next are the names of the steps that follow.
	Next []string
	// ContinueOnError: a task that failed for good counts as done.
	ContinueOnError bool
}

// Tasks counts the tasks of a step by status.
type Tasks struct{ Pending, Running, Succeeded, Failed, Skipped, Error int64 }

// Live reports whether any of them may still bring tasks of other steps.
func (t Tasks) Live() bool { return t.Pending+t.Running > 0 }

// All is how many there are.
func (t Tasks) All() int64 {
	return t.Pending + t.Running + t.Succeeded + t.Failed + t.Skipped + t.Error
}

// Fork is a place where some branches have not reached the join.
type Fork struct {
	// Step is the one that forked, Join the one where its branches end.
	Step, Join string
	// Unstarted: some branches have not even begun.
	Unstarted bool
}

// Run is what is known of a run.
type Run struct {
	// Steps in topological order, the first one is the start.
	Steps []Step
	// Tasks by name of the step.
	Tasks map[string]Tasks
	// Open are the forks that wait for branches.
	Open []Fork
	// Ended: no task will begin any more.
	Ended bool
}

// Statuses returns where each step is, by name:
//
//   - RUNNING when a task of it runs, else PENDING when one waits.
//   - ERROR, else FAILED, when a task ended so and the run does not go on after such.
//   - ERROR or FAILED also when none of its tasks succeeded, although the run went on.
//   - SUCCEEDED when tasks of it are done and no more can come; RUNNING when more can: the other branches of a foreach.
//   - SKIPPED when nothing can lead to it any more, PENDING when something can. What can is a live task, over the steps that
//     follow it, and an open fork, over its join.
func (r Run) Statuses() map[string]workflowsv1.WorkflowStepStatus {
	reachable := r.reachable()
	statuses := make(map[string]workflowsv1.WorkflowStepStatus, len(r.Steps))
	for _, step := range r.Steps {
		statuses[step.Name] = statusOf(r.Tasks[step.Name], step.ContinueOnError, reachable[step.Name])
	}
	return statuses
}

func statusOf(tasks Tasks, tolerant, reachable bool) workflowsv1.WorkflowStepStatus {
	switch {
	case tasks.Running > 0:
		return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_RUNNING
	case tasks.Pending > 0:
		return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_PENDING
	case tasks.Error > 0 && !tolerant:
		return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_ERROR
	case tasks.Failed > 0 && !tolerant:
		return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_FAILED
	}
	done := tasks.Succeeded + tasks.Failed + tasks.Error
	switch {
	case done > 0 && reachable:
		return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_RUNNING
	case done > 0 && done == tasks.Error:
		return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_ERROR
	case done > 0 && tasks.Succeeded == 0:
		return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_FAILED
	case done > 0:
		return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_SUCCEEDED
	case reachable:
		return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_PENDING
	}
	return workflowsv1.WorkflowStepStatus_WORKFLOW_STEP_STATUS_SKIPPED
}

// reachable finds the steps that may still get tasks.
func (r Run) reachable() map[string]bool {
	found := map[string]bool{}
	if r.Ended || len(r.Steps) == 0 {
		return found
	}
	next := make(map[string][]string, len(r.Steps))
	for _, step := range r.Steps {
		next[step.Name] = step.Next
	}
	begun := false
	var reach func(names ...string)
	reach = func(names ...string) {
		for _, name := range names {
			if !found[name] {
				found[name] = true
				reach(next[name]...)
			}
		}
	}
	for name, tasks := range r.Tasks {
		begun = begun || tasks.All() > 0
		if tasks.Live() {
			reach(next[name]...)
		}
	}
	for _, fork := range r.Open {
		reach(fork.Join)
		if fork.Unstarted {
			reach(next[fork.Step]...)
		}
	}
	if !begun {
		reach(r.Steps[0].Name)
	}
	return found
}
