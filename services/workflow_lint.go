package services

import (
	"github.com/palisade/palisade/services/workflows/definition"
	"github.com/palisade/palisade/services/workflows/steps"
)

// WorkflowProblem is one thing that is wrong in the definition of a workflow.
type WorkflowProblem = definition.Problem

// LintWorkflow tells what is wrong in the definition of a workflow, by line; nothing for one that a server of this
// version publishes. It needs no server.
func LintWorkflow(source []byte) []WorkflowProblem {
	_, problems := definition.Parse(source, steps.Registry(steps.Needs{}))
	return problems
}
