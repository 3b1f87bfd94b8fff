package definition

import (
	"slices"
	"strings"
)

// branch is one branch of a fork. A split has one for each of its steps. A foreach and a parallel have one for all,
// because their branches run the same steps.
type branch struct{ fork, first string }

// graph is the graph of the steps during validation. Links to unknown steps are left out.
type graph struct {
	*parser
	byName       map[string]*parsedStep
	predecessors map[string][]*parsedStep
	// stacks holds the enclosing branches of each step, outermost first.
	stacks map[string][]branch
	// ancestors holds the steps that come before each step.
	ancestors map[string]map[string]bool
}

// checkGraph rejects unstructured graphs and returns the steps in topological order; nil if there is no order.
func (p *parser) checkGraph() []*parsedStep {
	g := &graph{parser: p, byName: map[string]*parsedStep{}, predecessors: map[string][]*parsedStep{},
		stacks: map[string][]branch{}, ancestors: map[string]map[string]bool{}}
	for _, s := range p.steps {
		g.byName[s.name] = s
	}
	complete := g.connect()
	if len(p.steps) == 0 {
		return nil
	}
	g.checkEnds(complete)
	g.checkJoins()
	order := g.sort()
	if order == nil {
		return nil
	}
	for _, s := range order {
		g.setStack(s)
	}
	for _, s := range order {
		g.checkReferences(s)
	}
	return order
}

// connect finds the predecessors of each step; false if a link names an unknown step.
func (g *graph) connect() bool {
	complete := true
	unknown := func(line int, s *parsedStep, what, name string) {
		complete = false
		g.problem(line, s.name, "%s names the step %q, which is not there%s", what, clip(name), g.nearest(name, g.names()))
	}
	for _, s := range g.steps {
		var known []string
		for _, name := range s.next {
			target := g.byName[name]
			if target == nil || name == "" {
				if s.kind != typeSwitch && name != "" {
					unknown(s.lineOf("next"), s, "next", name)
				}
				continue
			}
			if name != s.name && !slices.Contains(known, name) {
				known = append(known, name)
				g.predecessors[name] = append(g.predecessors[name], s)
			}
		}
		for _, c := range s.cases {
			if g.byName[c.step] == nil {
				unknown(c.line, s, "case "+clip(c.value), c.step)
			}
		}
	}
	return complete
}

func (g *graph) names() []string {
	names := make([]string, len(g.steps))
	for i, s := range g.steps {
		names[i] = s.name
	}
	return names
}

// successors returns the existing next steps.
func (g *graph) successors(s *parsedStep) (out []*parsedStep) {
	for _, name := range s.next {
		if t := g.byName[name]; t != nil && t != s && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// checkEnds requires exactly one start and one end. If a link names an unknown step, steps without a predecessor are a
// consequence and are not reported.
func (g *graph) checkEnds(complete bool) {
	var starts, ends []*parsedStep
	for _, s := range g.steps {
		if len(g.predecessors[s.name]) == 0 {
			starts = append(starts, s)
		}
		if len(s.next) == 0 && (s.kind == typeLinear || s.kind == typeJoin) {
			ends = append(ends, s)
		}
	}
	switch {
	case len(starts) == 0:
		g.problem(g.steps[0].line, "", "there is no start: every step follows another one")
	case complete:
		for _, s := range starts[1:] {
			if len(s.next) == 0 {
				g.problem(s.line, s.name, "the step is an orphan: no step leads to it, and it leads nowhere")
			} else {
				g.problem(s.line, s.name, "no step leads to this one, and the start is %s: a workflow has one start", starts[0].name)
			}
		}
	}
	if len(ends) == 0 {
		g.problem(g.steps[len(g.steps)-1].line, "", "there is no end: one linear or join step must have no next")
		return
	}
	for _, s := range ends[:len(ends)-1] {
		g.problem(s.line, s.name, "the step has no next, and the end is %s: a workflow has one end", ends[len(ends)-1].name)
	}
}

// checkJoins pairs each fork with its own join.
func (g *graph) checkJoins() {
	forkOf := map[string]*parsedStep{}
	for _, s := range g.steps {
		if !s.forks() || s.matchingJoin == "" {
			continue
		}
		line := s.lineOf("matchingJoin")
		switch join := g.byName[s.matchingJoin]; {
		case join == nil:
			g.problem(line, s.name, "matchingJoin names the step %q, which is not there%s", clip(s.matchingJoin), g.nearest(s.matchingJoin, g.names()))
		case join.kind != typeJoin:
			g.problem(line, s.name, "matchingJoin names step %s, which is a %s, not a join", join.name, join.kind)
		case forkOf[join.name] != nil:
			g.problem(line, s.name, "matchingJoin names %s, which is the join of %s already: every fork has its own", join.name, forkOf[join.name].name)
		default:
			forkOf[join.name] = s
		}
	}
	for _, s := range g.steps {
		if s.kind == typeJoin && forkOf[s.name] == nil {
			g.problem(s.line, s.name, "the join is unmatched: no split, foreach or parallel names it as its matchingJoin")
		}
	}
}

// sort orders the steps topologically; ties keep the order of the definition. It reports a cycle as a problem and
// returns nil.
func (g *graph) sort() []*parsedStep {
	open := map[*parsedStep]int{}
	for _, s := range g.steps {
		open[s] = len(g.predecessors[s.name])
	}
	var order []*parsedStep
	for len(order) < len(g.steps) {
		i := slices.IndexFunc(g.steps, func(s *parsedStep) bool { n, left := open[s]; return left && n == 0 })
		if i < 0 {
			g.cycle(open)
			return nil
		}
		s := g.steps[i]
		delete(open, s)
		order = append(order, s)
		for _, t := range g.successors(s) {
			open[t]--
		}
	}
	return order
}

// cycle reports one cycle among the steps left without an order. Each of them has a predecessor among them.
func (g *graph) cycle(left map[*parsedStep]int) {
	s := g.steps[slices.IndexFunc(g.steps, func(s *parsedStep) bool { _, is := left[s]; return is })]
	var path []*parsedStep
	for !slices.Contains(path, s) {
		path = append(path, s)
		for _, before := range g.predecessors[s.name] {
			if _, is := left[before]; is {
				s = before
				break
			}
		}
	}
	path = append(path[slices.Index(path, s):], s)
	slices.Reverse(path)
	names := make([]string, len(path))
	first := path[0]
	for i, at := range path {
		names[i] = at.name
		if at.line < first.line {
			first = at
		}
	}
	g.problem(first.line, first.name, "the steps form a cycle: %s", strings.Join(names, " → "))
}

// setStack finds the enclosing branches of a step. All paths to it must have the same stack; a join closes the
// innermost branch.
func (g *graph) setStack(s *parsedStep) {
	before := map[string]bool{}
	var stack []branch
	for i, from := range g.predecessors[s.name] {
		before[from.name] = true
		for name := range g.ancestors[from.name] {
			before[name] = true
		}
		arriving := slices.Clone(g.stacks[from.name])
		if from.forks() {
			b := branch{fork: from.name}
			if from.kind == typeSplit {
				b.first = s.name
			}
			arriving = append(arriving, b)
		}
		if s.kind == typeJoin {
			arriving = g.pop(s, from, arriving)
		}
		if i == 0 {
			stack = arriving
		} else if !slices.Equal(stack, arriving) {
			g.problem(s.line, s.name, "it is reached through %s from %s, but through %s from %s: only a join may bring branches together, and a switch must come together inside of its branch",
				describe(arriving), from.name, describe(stack), g.predecessors[s.name][0].name)
		}
	}
	g.stacks[s.name], g.ancestors[s.name] = stack, before
	if len(s.next) == 0 && len(stack) > 0 && (s.kind == typeLinear || s.kind == typeJoin) {
		g.problem(s.line, s.name, "the workflow ends inside of %s: its branches must end in a join", describe(stack))
	}
}

// pop removes the branch that a join closes from the stack of an arriving step.
func (g *graph) pop(join, from *parsedStep, arriving []branch) []branch {
	if len(arriving) == 0 {
		g.problem(join.line, join.name, "the join is reached from %s outside of all branches", from.name)
		return arriving
	}
	top := arriving[len(arriving)-1]
	if fork := g.byName[top.fork]; fork.matchingJoin != join.name && fork.matchingJoin != "" {
		g.problem(join.line, join.name, "the join is reached from %s inside of %s, whose matchingJoin is %s", from.name, describe(arriving), clip(fork.matchingJoin))
	}
	return arriving[:len(arriving)-1]
}

func describe(stack []branch) string {
	if len(stack) == 0 {
		return "no branch"
	}
	parts := make([]string, len(stack))
	for i, b := range stack {
		parts[i] = b.fork
		if b.first != "" {
			parts[i] += "." + b.first
		}
	}
	return "the branch " + strings.Join(parts, "/")
}
