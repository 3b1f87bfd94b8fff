package definition_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/workflows/definition"
)

// drawn is a random step in the notation of definitions.
type drawn struct {
	Name         string            `json:"name"`
	Type         string            `json:"type,omitempty"`
	Next         []string          `json:"next,omitempty"`
	MatchingJoin string            `json:"matchingJoin,omitempty"`
	Foreach      string            `json:"foreach,omitempty"`
	NumParallel  int               `json:"numParallel,omitempty"`
	Condition    string            `json:"condition,omitempty"`
	Cases        map[string]string `json:"cases,omitempty"`
}

// builder generates structured graphs: a chain of blocks. A block is a step, or a fork with chains in it.
type builder struct {
	*rapid.T
	steps []*drawn
}

func (b *builder) step(kind string) *drawn {
	s := &drawn{Name: fmt.Sprintf("s%d", len(b.steps)), Type: kind}
	b.steps = append(b.steps, s)
	return s
}

// chain generates one to three consecutive blocks. It returns the first step and the step that still needs a next step.
func (b *builder) chain(depth int) (first, last *drawn) {
	for range rapid.IntRange(1, 3).Draw(b.T, "blocks") {
		from, to := b.block(depth)
		if first == nil {
			first = from
		} else {
			last.Next = []string{from.Name}
		}
		last = to
	}
	return first, last
}

func (b *builder) block(depth int) (first, last *drawn) {
	kind := "linear"
	if depth < 3 && len(b.steps) < 60 {
		kind = rapid.SampledFrom([]string{"linear", "linear", "split", "foreach", "parallel", "switch"}).Draw(b.T, "type")
	}
	s := b.step(kind)
	branches := 1
	switch kind {
	case "linear":
		return s, s
	case "split", "switch":
		branches = rapid.IntRange(2, 3).Draw(b.T, "branches")
	case "foreach":
		s.Foreach = "[1, 2]"
	case "parallel":
		s.NumParallel = rapid.IntRange(1, 1000).Draw(b.T, "numParallel")
	}
	var ends []*drawn
	var targets []string
	for range branches {
		from, to := b.chain(depth + 1)
		targets, ends = append(targets, from.Name), append(ends, to)
	}
	if kind == "switch" {
		last = b.step("linear")
		s.Condition, s.Cases = "'x'", map[string]string{"default": targets[0]}
		for i, target := range targets[1:] {
			s.Cases[fmt.Sprint(i)] = target
		}
	} else {
		last = b.step("join")
		s.Next, s.MatchingJoin = targets, last.Name
	}
	for _, end := range ends {
		end.Next = []string{last.Name}
	}
	return s, last
}

func draw(t *rapid.T) []*drawn {
	b := &builder{T: t}
	b.chain(0)
	return rapid.Permutation(b.steps).Draw(t, "order")
}

func source(steps []*drawn) []byte {
	text, err := json.MarshalIndent(map[string]any{"name": "random", "steps": steps}, "", "\t")
	if err != nil {
		panic(err)
	}
	return text
}

func TestStructuredGraphsAreAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := draw(t)
		parsed, problems := definition.Parse(source(steps), kinds)
		if len(problems) > 0 {
			t.Fatalf("%s\n%v", source(steps), problems)
		}
		order := map[string]int{}
		for i, s := range parsed.Plan.GetSteps() {
			order[s.GetName()] = i
		}
		if len(order) != len(steps) {
			t.Fatalf("%d steps of %d", len(order), len(steps))
		}
		for _, s := range parsed.Plan.GetSteps() {
			for _, next := range s.GetNext() {
				if order[next] <= order[s.GetName()] {
					t.Fatalf("%s comes before %s", next, s.GetName())
				}
			}
		}
	})
}

// mutations break a structured graph in one way each; they report whether they found something to break.
var mutations = map[string]func(t *rapid.T, steps []*drawn) ([]*drawn, bool){
	"join becomes linear": func(t *rapid.T, steps []*drawn) ([]*drawn, bool) {
		s, found := pick(t, steps, func(s *drawn) bool { return s.Type == "join" })
		if found {
			s.Type = "linear"
		}
		return steps, found
	},
	"no matching join": func(t *rapid.T, steps []*drawn) ([]*drawn, bool) {
		s, found := pick(t, steps, func(s *drawn) bool { return s.MatchingJoin != "" })
		if found {
			s.MatchingJoin = ""
		}
		return steps, found
	},
	"two forks change their joins": func(t *rapid.T, steps []*drawn) ([]*drawn, bool) {
		a, _ := pick(t, steps, func(s *drawn) bool { return s.MatchingJoin != "" })
		b, found := pick(t, steps, func(s *drawn) bool { return s.MatchingJoin != "" && s != a })
		if found {
			a.MatchingJoin, b.MatchingJoin = b.MatchingJoin, a.MatchingJoin
		}
		return steps, found
	},
	"a step is gone": func(t *rapid.T, steps []*drawn) ([]*drawn, bool) {
		s, found := pick(t, steps, func(s *drawn) bool { return len(s.Next) > 0 && reached(steps, s) })
		return slices.DeleteFunc(slices.Clone(steps), func(other *drawn) bool { return other == s }), found && len(steps) > 1
	},
	"a way back": func(t *rapid.T, steps []*drawn) ([]*drawn, bool) {
		s, found := pick(t, steps, func(s *drawn) bool { return (s.Type == "linear" || s.Type == "join") && len(s.Next) > 0 })
		if !found {
			return steps, false
		}
		before, found := pick(t, steps, func(other *drawn) bool { return leads(steps, other, s) })
		if found {
			s.Next = []string{before.Name}
		}
		return steps, found
	},
	"a second start": func(t *rapid.T, steps []*drawn) ([]*drawn, bool) {
		s, found := pick(t, steps, func(s *drawn) bool { return reached(steps, s) })
		if !found {
			return steps, false
		}
		return append(steps, &drawn{Name: "extra", Next: []string{s.Name}}), true
	},
	"a second end": func(_ *rapid.T, steps []*drawn) ([]*drawn, bool) {
		return append(steps, &drawn{Name: "extra"}), true
	},
	"out of a branch": func(t *rapid.T, steps []*drawn) ([]*drawn, bool) {
		end, _ := pick(t, steps, func(s *drawn) bool { return len(s.Next) == 0 && len(s.Cases) == 0 })
		s, found := pick(t, steps, func(s *drawn) bool {
			return len(s.Next) == 1 && slices.ContainsFunc(steps, func(j *drawn) bool { return j.Type == "join" && j.Name == s.Next[0] && j != end })
		})
		if found && end.Type == "linear" {
			s.Next = []string{end.Name}
		}
		return steps, found && end.Type == "linear"
	},
}

func pick(t *rapid.T, steps []*drawn, want func(*drawn) bool) (*drawn, bool) {
	var found []*drawn
	for _, s := range steps {
		if want(s) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	return rapid.SampledFrom(found).Draw(t, "step"), true
}

func followers(s *drawn) []string {
	out := slices.Clone(s.Next)
	for _, target := range s.Cases {
		out = append(out, target)
	}
	return out
}

func reached(steps []*drawn, s *drawn) bool {
	return slices.ContainsFunc(steps, func(from *drawn) bool { return slices.Contains(followers(from), s.Name) })
}

// leads reports whether a path leads from one step to another.
func leads(steps []*drawn, from, to *drawn) bool {
	for _, name := range followers(from) {
		i := slices.IndexFunc(steps, func(s *drawn) bool { return s.Name == name })
		if steps[i] == to || leads(steps, steps[i], to) {
			return true
		}
	}
	return false
}

func TestBrokenGraphsAreRefused(t *testing.T) {
	for name, mutate := range mutations {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				steps, broken := mutate(t, draw(t))
				if !broken {
					t.Skip("nothing to break")
				}
				if parsed, problems := definition.Parse(source(steps), kinds); parsed != nil || len(problems) == 0 {
					t.Fatalf("accepted: %s", source(steps))
				}
			})
		})
	}
}
