package definition_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/palisade/palisade/services/workflows/definition"
	"github.com/palisade/palisade/services/workflows/step"
)

// kinds are a few kinds of steps. One of them rejects some parameters.
var kinds = step.NewRegistry(
	step.Kind{Name: "pass"}, step.Kind{Name: "external"},
	step.Kind{Name: "llm", Check: func(with map[string]any) error {
		if _, has := with["prompt"]; !has {
			return errors.New("prompt is required")
		}
		return nil
	}},
)

const everything = `# Every type of step.
name: every-type
displayName: Every type of step
description: For tests.
targetType: deployment
budgetCredits: 12.5
inputs:
  - {name: limit, type: integer, default: 10, description: How many.}
  - {name: severity, type: string, required: true, enum: [low, high]}
  - {name: refs, type: string_list, default: [main], semanticType: git_ref}
  - {name: options, type: object, visibility: internal}
  - {name: dry_run, type: boolean, default: false}
  - {name: ratio, type: number}
steps:
  - name: start
    doc: Where it begins.
    with: {output: "${{ inputs.limit }}"}
    next: [decide]
  - name: decide
    type: switch
    condition: inputs.severity
    cases: {high: look, default: nothing}
  - name: look
    type: foreach
    foreach: steps.start.output
    next: [check]
    matchingJoin: looked
  - name: check
    type: split
    next: [ask, copy]
    matchingJoin: checked
  - name: ask
    displayName: Ask the model
    uses: llm
    with: {prompt: "is ${{ item }} bad? ${{ steps.look.output }}"}
    retries: 3
    timeout: 90s
    continueOnError: true
    next: [checked]
  - name: copy
    type: parallel
    numParallel: 3
    next: [work]
    matchingJoin: copied
  - {name: work, uses: external, with: {payload: {n: "${{ index }}"}}, next: [copied]}
  - {name: copied, type: join, next: [checked]}
  - {name: checked, type: join, with: {output: "${{ branches.map(b, b.output) }}"}, next: [looked]}
  - name: looked
    type: join
    next: [end]
  - {name: nothing, next: [end]}
  - {name: end, with: {output: "${{ has(steps.looked) ? steps.looked.output : null }}"}}
`

func TestParse(t *testing.T) {
	parsed, problems := definition.Parse([]byte(everything), kinds)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	entry := protojson.MarshalOptions{Multiline: true, Indent: " "}.Format(parsed.Entry)
	plan := protojson.MarshalOptions{Multiline: true, Indent: " "}.Format(parsed.Plan)
	golden(t, "entry.json", strings.ReplaceAll(entry, ":  ", ": "))
	golden(t, "plan.json", strings.ReplaceAll(plan, ":  ", ": "))
}

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s", path, got)
	}
}

// JSON is valid input, with tabs and surrogate pairs.
func TestParseJSON(t *testing.T) {
	source := "{\n\t\"name\": \"j\",\t\"description\": \"\\ud83d\\ude00 \\t\\/ \\\\u00e4 \\u00e4\\\\ud83d\",\n\t\"steps\": [\n\t\t{\"name\": \"a\", \"next\": [\"b\"]},\n\t\t{\"name\": \"b\"}]}"
	parsed, problems := definition.Parse([]byte(source), kinds)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := parsed.Entry.GetDescription(); got != "😀 \t/ \\u00e4 ä\\ud83d" {
		t.Errorf("description %q", got)
	}
	if line := parsed.Entry.GetGraph().GetSteps()[1].GetLine(); line != 5 {
		t.Errorf("line %d, want 5", line)
	}
}

func TestSmallest(t *testing.T) {
	parsed, problems := definition.Parse([]byte("name: a\nsteps: [{name: only}]"), kinds)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if g := parsed.Entry.GetGraph(); g.GetStartStep() != "only" || g.GetEndStep() != "only" || parsed.Entry.GetTargetType() != "repository" {
		t.Errorf("got %v", parsed.Entry)
	}
}

// Blanks around a name are removed in all notations.
func TestNamesHaveNoBlanks(t *testing.T) {
	parsed, problems := definition.Parse([]byte("name: |\n  spaced\ninputs: [{name: ' x ', type: string}]\nsteps: [{name: ' one ', next: [two]}, {name: two}]\n"), kinds)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	entry := parsed.Entry
	if entry.GetName() != "spaced" || entry.GetDisplayName() != "spaced" || entry.GetInputs().GetFields()[0].GetName() != "x" || entry.GetGraph().GetStartStep() != "one" {
		t.Errorf("got %v", entry)
	}
}

// Aliases are resolved.
func TestAliases(t *testing.T) {
	parsed, problems := definition.Parse([]byte("name: a\nsteps:\n- {name: one, with: &w {output: [1, two]}, next: [two]}\n- {name: two, with: *w}\n"), kinds)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := string(parsed.Plan.GetSteps()[1].GetWith()); got != `{"output":[1,"two"]}` {
		t.Errorf("with %s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("{\"name\":\"a\",\"steps\":[{\"name\":\"b\"}]}"))
	for _, c := range refused {
		f.Add([]byte(c.source))
	}
	f.Fuzz(func(t *testing.T, source []byte) {
		parsed, problems := definition.Parse(source, kinds)
		if (parsed == nil) == (len(problems) == 0) {
			t.Fatalf("%v and %v", parsed, problems)
		}
		for i, p := range problems {
			if p.Line < 1 || p.Text == "" || i > 0 && p.Line < problems[i-1].Line {
				t.Errorf("problem %d: %+v", i, p)
			}
		}
		if parsed == nil {
			return
		}
		steps := parsed.Plan.GetSteps()
		if steps[0].GetName() != parsed.Entry.GetGraph().GetStartStep() || steps[len(steps)-1].GetName() != parsed.Entry.GetGraph().GetEndStep() {
			t.Errorf("%s … %s", steps[0].GetName(), steps[len(steps)-1].GetName())
		}
	})
}

// bomb is a small text that expands to an unbounded size through aliases.
func bomb() string {
	var b strings.Builder
	b.WriteString("name: bomb\nsteps:\n- name: a\n  with:\n    x0: &x0 [1,1,1,1,1,1,1,1,1,1]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "    x%d: &x%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d,", i-1), 10), ","))
	}
	return b.String()
}
