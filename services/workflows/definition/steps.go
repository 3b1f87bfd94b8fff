package definition

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// Types of steps (contract: workflow catalog entry, step definition).
const (
	typeLinear   = "linear"
	typeSplit    = "split"
	typeForeach  = "foreach"
	typeParallel = "parallel"
	typeSwitch   = "switch"
	typeJoin     = "join"
)

// DefaultCase is the case of a switch for values without a case of their own.
const DefaultCase = "default"

const (
	defaultUses    = "pass"
	defaultTimeout = 10 * time.Minute
	maxTimeout     = 24 * time.Hour
	maxRetries     = 10
	maxParallel    = 1000
)

// parsedStep is a step as the definition has it.
type parsedStep struct {
	line             int
	name             string
	displayName, doc string
	kind             string // type
	uses             string
	with             map[string]any
	next             []string
	matchingJoin     string
	foreach          string
	numParallel      int32
	condition        string
	cases            []switchCase
	retries          int32
	timeout          time.Duration
	continueOnError  bool

	at          map[string]int // line of each key
	expressions []text         // see texts
}

type switchCase struct {
	value, step string
	line        int
}

// lineOf returns the line of a key of the step, or of the step if the key is absent.
func (s *parsedStep) lineOf(key string) int {
	if line, known := s.at[key]; known {
		return line
	}
	return s.line
}

// forks reports whether the step opens branches that its matching join closes.
func (s *parsedStep) forks() bool {
	return s.kind == typeSplit || s.kind == typeForeach || s.kind == typeParallel
}

func (p *parser) readSteps(list *node, line int) {
	items := p.items(list, "", "steps")
	if len(items) == 0 {
		if list = follow(list); list != nil {
			line = list.Line
		}
		p.problem(line, "", "there is no step: a workflow has at least one")
		return
	}
	if len(items) > MaxSteps {
		p.problem(list.Line, "", "there are %d steps, at most %d are allowed", len(items), MaxSteps)
		return
	}
	lines := map[string]int{}
	for _, item := range items {
		s := p.readStep(item)
		if first, twice := lines[s.name]; twice && s.name != "" {
			p.problem(s.line, s.name, "there is a step of this name already, in line %d", first)
			continue
		}
		lines[s.name] = s.line
		p.steps = append(p.steps, s)
	}
}

var stepKeys = []string{
	"name", "displayName", "doc", "type", "uses", "with", "next", "matchingJoin", "foreach", "numParallel", "condition", "cases",
	"retries", "timeout", "continueOnError",
}

func (p *parser) readStep(n *node) *parsedStep {
	s := &parsedStep{line: n.Line, kind: typeLinear, at: map[string]int{}}
	if named := follow(n); named != nil { // the name comes first, so that later problems can name the step
		for i := 0; i+1 < len(named.Content); i += 2 {
			if named.Content[i].Value == "name" {
				s.name = clip(follow(named.Content[i+1]).Value)
			}
			s.at[named.Content[i].Value] = named.Content[i].Line
		}
	}
	f := p.object(n, s.name, "a step", stepKeys...)
	s.name = p.name(f["name"], n.Line, s.name, "name of a step")
	s.displayName = p.text(f["displayName"], s.name, "displayName", 200)
	s.doc = p.text(f["doc"], s.name, "doc", 4000)
	s.kind = p.word(f["type"], s.name, "type", typeLinear, typeLinear, typeSplit, typeForeach, typeParallel, typeSwitch, typeJoin)
	if s.uses = p.text(f["uses"], s.name, "uses", 200); s.uses == "" {
		s.uses = defaultUses
	}
	before := len(p.problems)
	if !isNull(f["with"]) {
		s.with, _ = p.value(f["with"], s.name).(map[string]any)
		if s.with == nil {
			p.problem(s.lineOf("with"), s.name, "with must be an object, got %s", kindOf(f["with"]))
		}
	}
	if s.with == nil {
		s.with = map[string]any{}
	}
	if len(p.problems) == before {
		p.checkUses(s)
	}
	for _, item := range p.items(f["next"], s.name, "next") {
		s.next = append(s.next, p.text(item, s.name, "a name in next", 200))
	}
	s.matchingJoin = p.text(f["matchingJoin"], s.name, "matchingJoin", 200)
	s.foreach = p.text(f["foreach"], s.name, "foreach", 10_000)
	s.numParallel = p.integer(f["numParallel"], s.name, "numParallel", 1, maxParallel)
	s.condition = p.text(f["condition"], s.name, "condition", 10_000)
	p.members(f["cases"], s.name, "cases", func(key, value *node) {
		target := p.text(value, s.name, "case "+clip(key.Value), 200)
		s.cases = append(s.cases, switchCase{value: key.Value, step: target, line: key.Line})
	})
	s.retries = p.integer(f["retries"], s.name, "retries", 0, maxRetries)
	s.timeout = p.timeout(f["timeout"], s.name)
	s.continueOnError = p.boolean(f["continueOnError"], s.name, "continueOnError")
	p.checkStep(s)
	return s
}

func (p *parser) timeout(n *node, step string) time.Duration {
	if isNull(n) {
		return defaultTimeout
	}
	got, err := time.ParseDuration(p.text(n, step, "timeout", 100))
	if err != nil || got < time.Second || got > maxTimeout {
		p.problem(n.Line, step, "timeout must be a duration from 1s to 24h, such as 90s or 10m, got %q", clip(n.Value))
		return defaultTimeout
	}
	return got
}

// checkUses rejects unknown kinds and parameters that the kind does not have.
func (p *parser) checkUses(s *parsedStep) {
	kind, known := p.kinds[s.uses]
	if !known {
		p.problem(s.lineOf("uses"), s.name, "uses must be one of %s, got %q", strings.Join(p.kinds.Names(), ", "), clip(s.uses))
		return
	}
	if kind.Check == nil {
		return
	}
	if err := kind.Check(s.with); err != nil {
		p.problem(s.lineOf("with"), s.name, "%s: %s", s.uses, err)
	}
}

// checkStep rejects keys that the step's type does not allow.
func (p *parser) checkStep(s *parsedStep) {
	for _, rule := range []struct {
		key  string
		set  bool
		with []string // types that require the key; no other type may have it
		why  string
	}{
		{"matchingJoin", s.matchingJoin != "", []string{typeSplit, typeForeach, typeParallel}, "the name of the join that ends its branches"},
		{"foreach", s.foreach != "", []string{typeForeach}, "the expression that gives its list"},
		{"numParallel", s.numParallel != 0, []string{typeParallel}, "how many branches there are, 1 to 1000"},
		{"condition", s.condition != "", []string{typeSwitch}, "the expression that chooses"},
		{"cases", len(s.cases) > 0, []string{typeSwitch}, "value: step, with a default"},
	} {
		_, written := s.at[rule.key]
		switch needed := slices.Contains(rule.with, s.kind); {
		case needed && !written:
			p.problem(s.line, s.name, "a %s needs %s: %s", s.kind, rule.key, rule.why)
		case needed && !rule.set && rule.key != "numParallel": // an invalid number is already reported
			p.problem(s.lineOf(rule.key), s.name, "%s is empty: want %s", rule.key, rule.why)
		case !needed && rule.set:
			p.problem(s.lineOf(rule.key), s.name, "%s is not allowed with the type %s, only with %s", rule.key, s.kind, strings.Join(rule.with, ", "))
		}
	}
	if s.continueOnError && (s.kind == typeForeach || s.kind == typeSwitch) {
		p.problem(s.lineOf("continueOnError"), s.name, "continueOnError is not allowed with the type %s: without an output no next step can be chosen", s.kind)
	}
	if s.kind == typeSwitch {
		p.checkCases(s)
	}
	p.checkNext(s)
}

// checkCases derives the next steps of a switch from its cases.
func (p *parser) checkCases(s *parsedStep) {
	var targets []string
	hasDefault := false
	for _, c := range s.cases {
		hasDefault = hasDefault || c.value == DefaultCase
		if !slices.Contains(targets, c.step) {
			targets = append(targets, c.step)
		}
	}
	if len(s.cases) > 0 && !hasDefault {
		p.problem(s.lineOf("cases"), s.name, "the cases have no default: say where all other values lead")
	}
	if len(s.next) > 0 && !slices.Equal(slices.Sorted(slices.Values(s.next)), slices.Sorted(slices.Values(targets))) {
		p.problem(s.lineOf("next"), s.name, "next names other steps than the cases: leave it out, the cases say it")
	}
	s.next = targets
}

func (p *parser) checkNext(s *parsedStep) {
	for i, name := range s.next {
		switch {
		case name == "":
			p.problem(s.lineOf("next"), s.name, "next names an empty step")
		case name == s.name:
			p.problem(s.lineOf("next"), s.name, "the step follows itself")
		case slices.Contains(s.next[:i], name):
			p.problem(s.lineOf("next"), s.name, "next names step %s twice", clip(name))
		case s.forks() && name == s.matchingJoin:
			p.problem(s.lineOf("next"), s.name, "a branch leads straight to the join %s: it needs a step of its own", clip(name))
		}
	}
	switch n := len(s.next); {
	case s.kind == typeSplit && n < 2:
		p.problem(s.lineOf("next"), s.name, "a split needs at least two steps in next, got %d", n)
	case (s.kind == typeForeach || s.kind == typeParallel) && n != 1:
		p.problem(s.lineOf("next"), s.name, "a %s needs exactly one step in next, got %d: its branches all begin there", s.kind, n)
	case (s.kind == typeLinear || s.kind == typeJoin) && n > 1:
		p.problem(s.lineOf("next"), s.name, "a %s step has at most one step in next, got %d: use a split or a switch", s.kind, n)
	}
}

// planned converts the step to the form that runs execute.
func (s *parsedStep) planned() *storev1.PlannedStep {
	with, err := json.Marshal(s.with)
	if err != nil { // the value has only JSON values
		panic(fmt.Sprintf("parameters of step %s: %v", s.name, err))
	}
	out := &storev1.PlannedStep{
		Name: s.name, DisplayName: s.displayName, Type: s.kind, Uses: s.uses, With: with, Next: s.next, MatchingJoin: s.matchingJoin,
		ForeachArtifact: s.foreach, NumParallel: s.numParallel, Condition: s.condition, Retries: s.retries,
		TimeoutSeconds: int32(s.timeout / time.Second), ContinueOnError: s.continueOnError,
	}
	if out.DisplayName == "" {
		out.DisplayName = s.name
	}
	if len(s.cases) > 0 {
		out.SwitchCases = maps.Collect(func(yield func(string, string) bool) {
			for _, c := range s.cases {
				if !yield(c.value, c.step) {
					return
				}
			}
		})
	}
	return out
}

// graphOf converts the steps to the catalog's form.
func graphOf(order []*parsedStep) *workflowsv1.WorkflowGraph {
	graph := &workflowsv1.WorkflowGraph{
		SchemaVersion: schemaVersion, StartStep: order[0].name, EndStep: order[len(order)-1].name,
	}
	for _, s := range order {
		out := &workflowsv1.WorkflowStepDefinition{
			Name: s.name, Type: s.kind, Next: s.next, Doc: s.doc, Line: int32(s.line), MatchingJoin: s.matchingJoin,
			ForeachArtifact: s.foreach, NumParallel: s.numParallel, Condition: s.condition,
		}
		for _, c := range s.cases {
			out.SwitchCases = append(out.SwitchCases, &workflowsv1.WorkflowSwitchCase{CaseValue: c.value, Step: c.step})
		}
		graph.Steps = append(graph.Steps, out)
	}
	return graph
}
