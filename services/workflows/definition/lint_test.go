package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/workflows/definition"
)

// flow builds a definition with its steps from line 3 on, one per line.
func flow(steps ...string) string { return "name: a\nsteps:\n- " + strings.Join(steps, "\n- ") + "\n" }

// refused lists invalid definitions with all their problems.
var refused = []struct {
	name, source string
	want         []string
}{
	// The document.
	{"empty", "", []string{"line 1: the definition is empty"}},
	{"comment", "# nothing", []string{"line 1: the definition is empty"}},
	{"syntax", "name: a\nsteps: [", []string{"line 2: this is not YAML: did not find expected node content"}},
	{"list", "[]", []string{"line 1: a workflow must be an object, got a list", "line 1: name is missing", "line 1: there is no step"}},
	{"text", "hello", []string{`line 1: a workflow must be an object, got "hello"`, "line 1: name is missing", "line 1: there is no step"}},
	{"two documents", "name: a\nsteps: [{name: a}]\n---\nname: b\n", []string{"line 3: a second document begins here"}},
	{"not UTF-8", "name: \xff", []string{"line 1: the definition is not UTF-8"}},
	{"too large", strings.Repeat("#", definition.MaxSource+1), []string{"line 1: the definition has 262145 bytes, at most 262144 are allowed"}},
	{"expressions", "name: a # " + strings.Repeat("${{", 2001), []string{"line 1: the definition has more than 2000 expressions"}},
	{"bomb", bomb(), []string{"more than 50000 values"}},
	{"itself", "name: a\nsteps: [{name: a, with: &w {x: *w}}]", []string{"line 2: step a: values are nested deeper than 50 levels"}},
	{"unknown key", "name: a\ndescripton: b\nsteps: [{name: a}]", []string{`line 2: a workflow has no key "descripton"; the nearest is "description"`}},
	{"key twice", "name: a\nname: b\nsteps: [{name: a}]", []string{`line 2: a workflow has the key "name" twice`}},
	{"merge", "name: a\nsteps:\n- &s {name: a, next: [b]}\n- <<: *s\n  name: b\n", []string{"line 4: step b: merge keys (<<) are not supported"}},
	{"name", "name: A b\nsteps: [{name: a}]", []string{`line 1: name must match ^[a-z][a-z0-9_-]{0,62}$, got "A b"`}},
	{"no name", "steps: [{name: a}]", []string{"line 1: name is missing"}},
	{"target", "name: a\ntargetType: repo\nsteps: [{name: a}]", []string{`line 2: targetType must be one of repository, deployment, got "repo"`}},
	{"budget", "name: a\nbudgetCredits: -1\nsteps: [{name: a}]", []string{"line 2: budgetCredits must be a number from 0 to 1000000, got -1"}},
	{"display name", "name: a\ndisplayName: " + strings.Repeat("ä", 201) + "\nsteps: [{name: a}]", []string{"line 2: displayName has 201 characters, at most 200 are allowed"}},
	// Inputs.
	{"input type", "name: a\ninputs:\n- {name: x, type: text}\n- {name: y}\nsteps: [{name: a}]", []string{
		`line 3: input x: type must be one of string, integer, number, boolean, string_list, object, got "text"`, "line 4: input y: type is missing",
	}},
	{"input default", "name: a\ninputs:\n- {name: x, type: integer, default: 1.5}\n- {name: y, type: string, enum: [a, b], default: c}\n- {name: z, type: string_list, default: [a, 1]}\nsteps: [{name: a}]", []string{
		"line 3: input x: default got number, want integer", "line 4: input y: default value must be one of 'a', 'b'", "line 5: input z: default 1: got number, want string",
	}},
	{"input twice", "name: a\ninputs:\n- {name: x, type: string}\n- {name: x, type: string}\nsteps: [{name: a}]", []string{"line 4: input x is there already, in line 3"}},
	{"input words", "name: a\ninputs:\n- {name: x, type: string, visibility: all, ui: knob, semanticType: y, required: maybe}\nsteps: [{name: a}]", []string{
		`line 3: input x: required must be true or false, got "maybe"`, "line 3: input x: semanticType must be one of repository, git_ref",
		"line 3: input x: visibility must be one of user, internal", "line 3: input x: ui must be one of text, textarea, select, checkbox",
	}},
	{"input enum", "name: a\ninputs:\n- {name: x, type: object, enum: [a]}\n- {name: y, type: integer, enum: [a]}\n- {name: z, type: string, ui: select}\n- {name: v, type: string, ui: checkbox}\nsteps: [{name: a}]", []string{
		"line 3: input x: enum is not allowed with the type object", "line 4: input y: enum[0] got string, want integer",
		"line 5: input z: ui select needs an enum", "line 6: input v: ui checkbox is for the type boolean",
	}},
	// Single steps.
	{"no steps", "name: a\nsteps: []", []string{"line 2: there is no step"}},
	{"step name", flow("{name: A}"), []string{`line 3: step A: name of a step must match ^[a-z][a-z0-9_-]{0,62}$, got "A"`}},
	{"step key", flow("{name: a, nxt: [b]}"), []string{`line 3: step a: a step has no key "nxt"; the nearest is "next"`}},
	{"step twice", flow("{name: a, next: [b]}", "{name: b}", "{name: b}"), []string{"line 5: step b: there is a step of this name already, in line 4"}},
	{"type", flow("{name: a, type: loop}"), []string{`line 3: step a: type must be one of linear, split, foreach, parallel, switch, join, got "loop"`}},
	{"uses", flow("{name: a, uses: lllm}"), []string{`line 3: step a: uses must be one of external, llm, pass, got "lllm"`}},
	{"with", "name: a\nsteps:\n- name: a\n  uses: llm\n  with: {promt: x}\n", []string{"line 5: step a: llm: prompt is required"}},
	{"with list", flow("{name: a, with: [1]}"), []string{"line 3: step a: with must be an object, got a list"}},
	{"with value", flow("{name: a, with: {x: .nan, y: !!binary aGk=}}"), []string{"line 3: step a: .nan is not a number that JSON knows", "line 3: step a: values of the YAML type !!binary are not supported"}},
	{"numbers", flow("{name: a, retries: 11, timeout: 25h, next: [b]}", "{name: b, retries: 1.5, timeout: 5}"), []string{
		"line 3: step a: retries must be a whole number from 0 to 10, got 11", `line 3: step a: timeout must be a duration from 1s to 24h, such as 90s or 10m, got "25h"`,
		"line 4: step b: retries must be a whole number from 0 to 10, got 1.5", `got "5"`,
	}},
	{"continueOnError", flow("{name: a, type: switch, condition: 'true', cases: {default: b}, continueOnError: true}", "{name: b}"), []string{"line 3: step a: continueOnError is not allowed with the type switch"}},
	{"keys of other types", flow("{name: a, foreach: '[1]', numParallel: 2, condition: 'true', cases: {default: b}, matchingJoin: b, next: [b]}", "{name: b}"), []string{
		"line 3: step a: matchingJoin is not allowed with the type linear, only with split, foreach, parallel", "foreach is not allowed with the type linear",
		"numParallel is not allowed with the type linear", "condition is not allowed with the type linear", "cases is not allowed with the type linear",
	}},
	// Keys that each type requires.
	{"split of one", flow("{name: a, type: split, next: [b], matchingJoin: j}", "{name: b, next: [j]}", "{name: j, type: join}"), []string{"line 3: step a: a split needs at least two steps in next, got 1"}},
	{"split without join", flow("{name: a, type: split, next: [b, c]}", "{name: b, next: [d]}", "{name: c, next: [d]}", "{name: d}"), []string{
		"line 3: step a: a split needs matchingJoin", "line 6: step d: it is reached through the branch a.c from c, but through the branch a.b from b",
		"line 6: step d: the workflow ends inside of the branch a.b",
	}},
	{"foreach without artifact", flow("{name: a, type: foreach, next: [b], matchingJoin: j}", "{name: b, next: [j]}", "{name: j, type: join}"), []string{"line 3: step a: a foreach needs foreach: the expression that gives its list"}},
	{"foreach of nothing", flow("{name: a, type: foreach, foreach: '', next: [b], matchingJoin: j}", "{name: b, next: [j]}", "{name: j, type: join}"), []string{"line 3: step a: foreach is empty"}},
	{"foreach to two", flow("{name: a, type: foreach, foreach: '[1]', next: [b, c], matchingJoin: j}", "{name: b, next: [j]}", "{name: c, next: [j]}", "{name: j, type: join}"), []string{"line 3: step a: a foreach needs exactly one step in next, got 2"}},
	{"parallel", flow("{name: a, type: parallel, numParallel: 1001, next: [b], matchingJoin: j}", "{name: b, next: [j]}", "{name: j, type: join}"), []string{"line 3: step a: numParallel must be a whole number from 1 to 1000, got 1001"}},
	{"parallel without number", flow("{name: a, type: parallel, next: [b], matchingJoin: j}", "{name: b, next: [j]}", "{name: j, type: join}"), []string{"line 3: step a: a parallel needs numParallel"}},
	{"switch without cases", flow("{name: a, type: switch, condition: 'true'}", "{name: b}"), []string{"line 3: step a: a switch needs cases", "line 4: step b: the step is an orphan"}},
	{"switch without default", flow("{name: a, type: switch, condition: 'true', cases: {true: b}}", "{name: b}"), []string{"line 3: step a: the cases have no default"}},
	{"switch without condition", flow("{name: a, type: switch, cases: {default: b}}", "{name: b}"), []string{"line 3: step a: a switch needs condition"}},
	{"case to nowhere", flow("{name: a, type: switch, condition: 'true', cases: {true: c, default: b}}", "{name: b}"), []string{`line 3: step a: case true names the step "c", which is not there; the nearest is`}},
	{"switch with another next", flow("{name: a, type: switch, condition: 'true', cases: {default: b}, next: [c]}", "{name: b, next: [c]}", "{name: c}"), []string{"line 3: step a: next names other steps than the cases"}},
	{"linear to two", flow("{name: a, next: [b, c]}", "{name: b, next: [c]}", "{name: c}"), []string{"line 3: step a: a linear step has at most one step in next, got 2"}},
	// The graph.
	{"unknown next", flow("{name: a, next: [bb]}", "{name: bc}"), []string{`line 3: step a: next names the step "bb", which is not there; the nearest is "bc"`}},
	{"next twice", flow("{name: a, type: split, next: [b, b], matchingJoin: j}", "{name: b, next: [j]}", "{name: j, type: join}"), []string{"line 3: step a: next names step b twice"}},
	{"follows itself", flow("{name: a, next: [a]}", "{name: b}"), []string{"line 3: step a: the step follows itself", "line 4: step b: the step is an orphan"}},
	{"two starts", flow("{name: a, next: [c]}", "{name: b, next: [c]}", "{name: c}"), []string{"line 4: step b: no step leads to this one, and the start is a"}},
	{"two ends", flow("{name: a, type: switch, condition: 'true', cases: {true: b, default: c}}", "{name: b}", "{name: c}"), []string{"line 4: step b: the step has no next, and the end is c"}},
	{"orphan", flow("{name: a, next: [c]}", "{name: b}", "{name: c}"), []string{"line 4: step b: the step is an orphan: no step leads to it, and it leads nowhere", "line 4: step b: the step has no next, and the end is c"}},
	{"cycle", flow("{name: a, next: [b]}", "{name: b, next: [c]}", "{name: c, next: [d]}", "{name: d, type: switch, condition: 'true', cases: {true: b, default: e}}", "{name: e}"), []string{"line 4: step b: the steps form a cycle: b → c → d → b"}},
	{"cycle without start and end", flow("{name: a, next: [b]}", "{name: b, next: [a]}"), []string{"line 3: there is no start", "line 3: step a: the steps form a cycle: a → b → a", "line 4: there is no end"}},
	{"join of nobody", flow("{name: a, next: [j]}", "{name: j, type: join}"), []string{"line 4: step j: the join is unmatched", "line 4: step j: the join is reached from a outside of all branches"}},
	{"join that is none", flow("{name: a, type: split, next: [b, c], matchingJoin: d}", "{name: b, next: [d]}", "{name: c, next: [d]}", "{name: d}"), []string{
		"line 3: step a: matchingJoin names step d, which is a linear, not a join", "line 6: step d: it is reached through", "line 6: step d: the workflow ends inside of",
	}},
	{"join that is not there", flow("{name: a, type: split, next: [b, c], matchingJoin: e}", "{name: b, next: [d]}", "{name: c, next: [d]}", "{name: d, type: join}"), []string{
		`line 3: step a: matchingJoin names the step "e", which is not there`, "line 6: step d: the join is unmatched", "line 6: step d: the join is reached from b inside of the branch a.b, whose matchingJoin is e", "from c inside",
	}},
	{"join of two", flow("{name: a, type: switch, condition: 'true', cases: {true: b, default: c}}", "{name: b, type: parallel, numParallel: 2, matchingJoin: j, next: [d]}", "{name: c, type: parallel, numParallel: 2, matchingJoin: j, next: [e]}", "{name: d, next: [j]}", "{name: e, next: [j]}", "{name: j, type: join}"), []string{
		"line 5: step c: matchingJoin names j, which is the join of b already: every fork has its own",
	}},
	{"straight to the join", flow("{name: a, type: split, next: [b, j], matchingJoin: j}", "{name: b, next: [j]}", "{name: j, type: join}"), []string{"line 3: step a: a branch leads straight to the join j"}},
	{"crossed joins", flow("{name: a, type: split, next: [b, c], matchingJoin: j}", "{name: b, type: split, next: [d, e], matchingJoin: k}", "{name: c, next: [k]}", "{name: d, next: [j]}", "{name: e, next: [k]}", "{name: j, type: join, next: [z]}", "{name: k, type: join, next: [z]}", "{name: z}"), []string{
		"line 8: step j: the join is reached from d inside of the branch a.b/b.d, whose matchingJoin is k",
		"line 9: step k: the join is reached from c inside of the branch a.c, whose matchingJoin is j",
		"line 9: step k: it is reached through the branch a.b from e, but through no branch from c",
		"line 10: step z: it is reached through no branch from k, but through the branch a.b from j",
		"line 10: step z: the workflow ends inside of the branch a.b",
	}},
	{"switch out of a branch", flow("{name: a, type: foreach, foreach: '[1]', next: [b], matchingJoin: j}", "{name: b, type: switch, condition: 'true', cases: {true: c, default: d}}", "{name: c, next: [j]}", "{name: d, next: [z]}", "{name: j, type: join, next: [z]}", "{name: z}"), []string{
		"line 8: step z: it is reached through no branch from j, but through the branch a from d",
		"line 8: step z: the workflow ends inside of the branch a",
	}},
	{"branches that meet", flow("{name: a, type: split, next: [b, c], matchingJoin: j}", "{name: b, next: [d]}", "{name: c, next: [d]}", "{name: d, next: [j]}", "{name: j, type: join}"), []string{
		"line 6: step d: it is reached through the branch a.c from c, but through the branch a.b from b: only a join may bring branches together",
	}},
	// Expressions.
	{"expression", flow("{name: a, with: {x: [{y: '${{ item. }}'}]}, next: [b]}", "{name: b, type: switch, condition: '1 +', cases: {default: c}}", "{name: c}"), []string{
		"line 3: step a: with: expression item.: Syntax error", "line 4: step b: condition: expression 1 +: Syntax error",
	}},
	{"open expression", flow("{name: a, with: {x: '${{ 1'}}"), []string{"line 3: step a: with: an expression begins with ${{ and does not end with }}"}},
	{"unknown input", flow("{name: a, with: {x: '${{ inputs.lmit }}'}}"), []string{"line 3: step a: with reads inputs.lmit, which is not declared"}},
	{"unknown step", flow("{name: a, with: {x: '${{ steps.bb.output }}'}, next: [b]}", "{name: b, with: {x: '${{ steps.a.output }}'}}"), []string{`line 3: step a: with reads steps.bb, which is not there; the nearest is "b"`}},
	{"later step", flow("{name: a, with: {x: '${{ steps.b.output }}'}, next: [b]}", "{name: b}"), []string{"line 3: step a: with reads steps.b, which does not come before this step"}},
	{"itself", flow("{name: a, with: {x: '${{ steps.a.output }}'}}"), []string{"line 3: step a: with reads steps.a, which does not come before this step"}},
	{"ended branch", flow("{name: a, type: foreach, foreach: '[1]', next: [b], matchingJoin: j}", "{name: b, next: [j]}", "{name: j, type: join, with: {x: '${{ steps.b.output }}'}}"), []string{
		"line 5: step j: with reads steps.b, which is inside of the branch a: after the join its output is in branches",
	}},
	{"item, index and branches", flow("{name: a, with: {x: '${{ item }} ${{ index }} ${{ branches }}'}}"), []string{
		"line 3: step a: with reads branches, which only a join has", "line 3: step a: with reads item, but the step is not in a branch of a foreach", "line 3: step a: with reads index, but the step is not in a branch of a foreach or parallel",
	}},
}

func TestLint(t *testing.T) {
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			parsed, problems := definition.Parse([]byte(c.source), kinds)
			if parsed != nil {
				t.Error("it was accepted")
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if len(got) != len(c.want) {
				t.Fatalf("%d problems, want %d:\n%s", len(got), len(c.want), strings.Join(got, "\n"))
			}
			for i, want := range c.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got  %s\nwant %s", got[i], want)
				}
			}
		})
	}
}

func TestTooMany(t *testing.T) {
	var steps, inputs strings.Builder
	for i := range definition.MaxSteps + 1 {
		fmt.Fprintf(&steps, "- {name: s%d, next: [s%d]}\n", i, i+1)
	}
	for i := range definition.MaxInputs + 1 {
		fmt.Fprintf(&inputs, "- {name: i%d, type: string}\n", i)
	}
	_, problems := definition.Parse([]byte("name: a\ninputs:\n"+inputs.String()+"steps:\n"+steps.String()), kinds)
	if len(problems) != 2 || !strings.Contains(problems[0].Text, "101 inputs, at most 100") || !strings.Contains(problems[1].Text, "501 steps, at most 500") {
		t.Errorf("got %v", problems)
	}
}

// A definition with only unknown names is checked quickly: any reader may lint a definition.
func TestManyUnknownNames(t *testing.T) {
	steps := []string{"{name: first, type: switch, condition: \"1\", cases: {default: first"}
	for i := range 700 {
		steps[0] += fmt.Sprintf(", k%d: %s", i, strings.Repeat("y", 190))
	}
	steps[0] += "}}"
	for i := range definition.MaxSteps - 1 {
		steps = append(steps, fmt.Sprintf("{name: s%d%s}", i, strings.Repeat("x", 55)))
	}
	hints := 0
	_, problems := definition.Parse([]byte(flow(steps...)), kinds)
	for _, p := range problems {
		if strings.Contains(p.Text, "the nearest is") {
			hints++
		}
	}
	if len(problems) < 700 || hints != 30 {
		t.Errorf("%d problems, %d of them with the nearest name", len(problems), hints)
	}
}
