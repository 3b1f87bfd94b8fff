package definition

import (
	"cmp"
	"fmt"
	"slices"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/workflows/step"
)

// Limits of a definition.
const (
	MaxSource = 256 << 10 // bytes
	MaxSteps  = 500
	MaxInputs = 100
	MaxBudget = 1_000_000 // credits

	maxExpressions = 2000
)

// schemaVersion is the schema version of graph and inputs (contract: workflow catalog entry).
const schemaVersion = 1

// Definition is a valid definition.
type Definition struct {
	// Entry is the catalog entry. The catalog sets version and enabled.
	Entry *workflowsv1.WorkflowCatalogEntry
	// Plan is the form that runs execute.
	Plan *storev1.WorkflowPlan
}

// Problem is one error in a definition.
type Problem struct {
	// Line starts at 1.
	Line int
	// Step is the name of the step concerned; empty if there is none.
	Step string
	// Text says what was found and what is allowed, without the line and the step.
	Text string
}

// String formats the problem as one line.
func (p Problem) String() string {
	if p.Step == "" {
		return fmt.Sprintf("line %d: %s", p.Line, p.Text)
	}
	return fmt.Sprintf("line %d: step %s: %s", p.Line, p.Step, p.Text)
}

// Parse parses a definition. It returns either a definition that can be run, or all problems sorted by line. Steps may
// use the given kinds.
func Parse(source []byte, kinds step.Registry) (*Definition, []Problem) {
	p := &parser{kinds: kinds}
	if root := p.document(source); root != nil {
		p.workflow(root)
	}
	if len(p.problems) > 0 {
		slices.SortStableFunc(p.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
		return nil, slices.Compact(p.problems)
	}
	return &Definition{Entry: p.entry, Plan: p.plan}, nil
}

// parser parses one definition and collects its problems.
type parser struct {
	kinds    step.Registry
	problems []Problem
	// expanded counts the nodes read: with aliases, a small text could expand to an unbounded size.
	expanded int
	// hints counts the calls of nearest.
	hints int

	entry  *workflowsv1.WorkflowCatalogEntry
	plan   *storev1.WorkflowPlan
	inputs []*input
	steps  []*parsedStep
}

func (p *parser) problem(line int, step, format string, args ...any) {
	p.problems = append(p.problems, Problem{Line: line, Step: step, Text: fmt.Sprintf(format, args...)})
}

// workflow parses the whole definition.
func (p *parser) workflow(root *node) {
	fields := p.object(root, "", "a workflow", "name", "displayName", "description", "targetType", "budgetCredits", "inputs", "steps")
	entry := &workflowsv1.WorkflowCatalogEntry{
		Name:        p.name(fields["name"], root.Line, "", "name"),
		DisplayName: p.text(fields["displayName"], "", "displayName", 200),
		Description: p.text(fields["description"], "", "description", 4000),
		TargetType:  p.word(fields["targetType"], "", "targetType", "repository", "repository", "deployment"),
	}
	if entry.DisplayName == "" {
		entry.DisplayName = entry.Name
	}
	p.plan = &storev1.WorkflowPlan{BudgetCredits: p.number(fields["budgetCredits"], "", "budgetCredits", 0, MaxBudget)}
	p.readInputs(fields["inputs"])
	p.readSteps(fields["steps"], root.Line)
	order := p.checkGraph()
	p.checkTexts()
	if len(p.problems) > 0 {
		return
	}
	entry.Inputs = inputsOf(p.inputs)
	entry.Graph = graphOf(order)
	for _, s := range order {
		p.plan.Steps = append(p.plan.Steps, s.planned())
	}
	p.entry = entry
}
