package definition

import (
	"maps"
	"slices"

	"github.com/palisade/palisade/services/workflows/expression"
)

// text is a part of a step that may contain expressions.
type text struct {
	key  string
	uses expression.Uses
	err  error
	// own: the expressions may read the step's own output, because they are evaluated after the step's work.
	own bool
}

// texts lists the parts of a step that may contain expressions.
func (s *parsedStep) texts() []text {
	if s.expressions != nil {
		return s.expressions
	}
	out := []text{{key: "with", uses: expression.UsesOf(s.with), err: expression.CheckTexts(s.with)}}
	for _, e := range []struct{ key, source string }{{"foreach", s.foreach}, {"condition", s.condition}} {
		if e.source != "" {
			out = append(out, text{key: e.key, uses: expression.UsesOfExpression(e.source), err: expression.Check(e.source), own: true})
		}
	}
	s.expressions = out
	return out
}

// checkTexts rejects expressions that can never be evaluated.
func (p *parser) checkTexts() {
	for _, s := range p.steps {
		for _, t := range s.texts() {
			if t.err != nil {
				p.problem(s.lineOf(t.key), s.name, "%s: %s", t.key, t.err)
			}
			for _, name := range slices.Sorted(maps.Keys(t.uses.Inputs)) {
				if !slices.ContainsFunc(p.inputs, func(in *input) bool { return in.field.GetName() == name }) {
					p.problem(s.lineOf(t.key), s.name, "%s reads inputs.%s, which is not declared", t.key, clip(name))
				}
			}
		}
	}
}

// checkReferences rejects expressions that read values outside their scope: outputs of steps that do not come before or
// are in a closed branch, an item outside a foreach, branches outside a join.
func (g *graph) checkReferences(s *parsedStep) {
	stack := g.stacks[s.name]
	for _, t := range s.texts() {
		for _, name := range slices.Sorted(maps.Keys(t.uses.Steps)) {
			if name == s.name && t.own {
				continue
			}
			other := g.stacks[name]
			switch line := s.lineOf(t.key); {
			case g.byName[name] == nil:
				g.problem(line, s.name, "%s reads steps.%s, which is not there%s", t.key, clip(name), g.nearest(name, g.names()))
			case !g.ancestors[s.name][name]:
				g.problem(line, s.name, "%s reads steps.%s, which does not come before this step", t.key, name)
			case len(other) > len(stack) || !slices.Equal(other, stack[:len(other)]):
				g.problem(line, s.name, "%s reads steps.%s, which is inside of %s: after the join its output is in branches", t.key, name, describe(other))
			}
		}
		if t.uses.Variables[expression.Branches] && s.kind != typeJoin {
			g.problem(s.lineOf(t.key), s.name, "%s reads branches, which only a join has", t.key)
		}
		for _, name := range []string{expression.Item, expression.Index} {
			if t.uses.Variables[name] && !g.inside(stack, name) {
				g.problem(s.lineOf(t.key), s.name, "%s reads %s, but the step is not in a branch of a foreach%s", t.key, name,
					map[string]string{expression.Index: " or parallel"}[name])
			}
		}
	}
}

// inside reports whether a stack contains the fork that provides item or index.
func (g *graph) inside(stack []branch, name string) bool {
	return slices.ContainsFunc(stack, func(b branch) bool {
		kind := g.byName[b.fork].kind
		return kind == typeForeach || kind == typeParallel && name == expression.Index
	})
}
