package services

import (
	"github.com/palisade/palisade/services/workflows/definition"
	"github.com/palisade/palisade/services/workflows/steps"
)

// WorkflowProblem is a problem in a workflow definition.
type WorkflowProblem = definition.Problem

// LintWorkflow returns the problems in a workflow definition, by line. It is empty for a definition that a server of
// this version would publish. It needs no server.
func LintWorkflow(source []byte) []WorkflowProblem {
	_, problems := definition.Parse(source, steps.Registry(steps.Needs{}))
	return problems
}
