package memory

import (
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
)

func ref(id int64) *int64 { return &id }

func TestInScope(t *testing.T) {
	about := Facts{RuleID: 5, ProjectID: 7, ProjectTagIDs: []int64{11, 12}, Path: "src/app/main.go", VulnerabilityClasses: []string{"SQL Injection", "XSS"}}
	for name, c := range map[string]struct {
		memory ent.AiMemory
		want   bool
	}{
		"everything":              {ent.AiMemory{}, true},
		"suggested":               {ent.AiMemory{Stage: Suggested}, true},
		"deleted":                 {ent.AiMemory{Stage: Deleted}, false},
		"rule":                    {ent.AiMemory{RuleID: ref(5)}, true},
		"other rule":              {ent.AiMemory{RuleID: ref(6)}, false},
		"project":                 {ent.AiMemory{ProjectID: ref(7)}, true},
		"other project":           {ent.AiMemory{ProjectID: ref(8)}, false},
		"tag":                     {ent.AiMemory{ProjectTagID: ref(12)}, true},
		"other tag":               {ent.AiMemory{ProjectTagID: ref(13)}, false},
		"class":                   {ent.AiMemory{VulnerabilityClass: "XSS"}, true},
		"part of a class":         {ent.AiMemory{VulnerabilityClass: "SQL"}, false},
		"file":                    {ent.AiMemory{PathPrefixes: []string{"src/app/main.go"}}, true},
		"directory":               {ent.AiMemory{PathPrefixes: []string{"docs", "src/app"}}, true},
		"part of a name":          {ent.AiMemory{PathPrefixes: []string{"src/ap"}}, false},
		"middle of the path":      {ent.AiMemory{PathPrefixes: []string{"app"}}, false},
		"all of it":               {ent.AiMemory{RuleID: ref(5), ProjectID: ref(7), PathPrefixes: []string{"src"}}, true},
		"all but one":             {ent.AiMemory{RuleID: ref(5), ProjectID: ref(8), PathPrefixes: []string{"src"}}, false},
		"case of the path counts": {ent.AiMemory{PathPrefixes: []string{"SRC"}}, false},
	} {
		if got := InScope(&c.memory, about); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if InScope(&ent.AiMemory{PathPrefixes: []string{"src"}}, Facts{}) {
		t.Error("a finding without a path is below src")
	}
}

func TestCleanPrefix(t *testing.T) {
	for given, want := range map[string]string{"src/": "src", "./src": "src", "/src/app/": "src/app", " src ": "src", ".github": ".github"} {
		if got := CleanPrefix(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

func TestChoose(t *testing.T) {
	memories := []*ent.AiMemory{
		{ID: 1, Stage: Live, Content: "everywhere", UpdatedAt: 9},
		{ID: 2, Stage: Live, Content: "rule", RuleID: ref(5), Context: []string{Triage}},
		{ID: 3, Stage: Live, Content: "project", ProjectID: ref(7), Context: []string{Triage, Guidance}, UpdatedAt: 1},
		{ID: 4, Stage: Live, Content: "project, newer", ProjectID: ref(7), UpdatedAt: 2},
		{ID: 5, Stage: Suggested, Content: "not accepted"},
		{ID: 6, Stage: Live, Content: "of advice", Context: []string{Guidance}, UpdatedAt: 1},
		{ID: 7, Stage: Live, Content: "other rule", RuleID: ref(6)},
		{ID: 8, Stage: Live, Content: strings.Repeat("long ", 300), RuleID: ref(5), ProjectID: ref(7)},
	}
	about := Facts{RuleID: 5, ProjectID: 7}
	for _, c := range []struct {
		context string
		limit   int
		want    []int64
	}{
		{Triage, 5000, []int64{8, 2, 4, 3, 1}},
		{Guidance, 5000, []int64{8, 4, 3, 1, 6}},
		{Triage, 26, []int64{2, 4, 3}}, // 4 + 14 + 7 bytes: the long one and the last do not fit
		{Triage, 0, nil},
	} {
		var got []int64
		for _, m := range Choose(memories, about, c.context, c.limit) {
			got = append(got, m.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s within %d: %v, want %v", c.context, c.limit, got, c.want)
		}
	}
	if len(memories) != 8 || memories[0].ID != 1 {
		t.Error("the list given has changed")
	}
}
