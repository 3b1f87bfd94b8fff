// Package graph computes the status of each step of a run from the number of its tasks in each status.
package graph

import (
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// Step is a step of a plan.
type Step struct {
	Name string
	// Next holds the names of the steps that follow.
	Next []string
	// ContinueOnError: a task that failed finally counts as done.
	ContinueOnError bool
}

// Tasks counts the tasks of a step by status.
type Tasks struct{ Pending, Running, Succeeded, Failed, Skipped, Error int64 }

// Live reports whether a task is pending or running, so that tasks of later steps may follow.
func (t Tasks) Live() bool { return t.Pending+t.Running > 0 }

// All is the total number of tasks.
func (t Tasks) All() int64 {
	return t.Pending + t.Running + t.Succeeded + t.Failed + t.Skipped + t.Error
}

// Fork is a fork with branches that have not reached the join.
type Fork struct {
	// Step is the step that forked. Join is the step where its branches end.
	Step, Join string
	// Unstarted: some branches have not begun.
	Unstarted bool
}

// Run is the known state of a run.
type Run struct {
	// Steps is in topological order. The first one is the start step.
	Steps []Step
	// Tasks holds the counts by step name.
	Tasks map[string]Tasks
	// Open holds the forks that wait for branches.
	Open []Fork
	// Ended: no more tasks will begin.
	Ended bool
}

// Statuses returns the status of each step by name:
//
//   - RUNNING if one of its tasks is running, else PENDING if one is pending.
//   - ERROR, else FAILED, if one of its tasks ended so and ContinueOnError is not set.
//   - ERROR or FAILED also if no task succeeded, although ContinueOnError is set.
//   - SUCCEEDED if its tasks are done and no more can follow; RUNNING if more can: other branches of a foreach.
//   - SKIPPED if the step cannot be reached any more, PENDING if it can: from a live task through the steps that
//     follow, or from an open fork through its join.
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
