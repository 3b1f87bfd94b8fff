package services

import (
	"github.com/palisade/palisade/services/workflows/definition"
	"github.com/palisade/palisade/services/workflows/steps"
)

// WorkflowProblem is one problem of a workflow definition.
type WorkflowProblem = definition.Problem

// LintWorkflow returns the problems of a workflow definition, by line; none if a server of this version would publish
// it. It needs no server.
func LintWorkflow(source []byte) []WorkflowProblem {
	_, problems := definition.Parse(source, steps.Registry(steps.Needs{}))
	return problems
}
