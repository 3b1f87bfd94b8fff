package identity

import (
	"slices"
	"strings"
	"testing"
)

// strip returns the part of a line that an edit must not change.
func strip(text string) string { return strings.TrimSpace(text) }

// TestLineMapsAreTrue: for every edit and many seeds, the line map matches the code.
func TestLineMapsAreTrue(t *testing.T) {
	for _, edit := range Edits() {
		t.Run(edit.Name, func(t *testing.T) {
			changed := edit.code == nil
			for seed := range uint64(40) {
				source := mall()
				source.Scan = nil
				w := &work{random: testRandom(seed), tree: source.Tree.Clone(), before: source.Report, wholeFolders: seed%2 == 0}
				if edit.code == nil {
					continue
				}
				edit.code(w)
				changed = changed || w.tree.Digest() != source.Tree.Digest()
				parses(t, w.tree)
				lines, err := NewLineMap(w.tree)
				if err != nil {
					t.Fatal(err)
				}
				comparesLines(t, source, w, lines)
			}
			if !changed {
				t.Error("nothing was ever changed")
			}
		})
	}
}

func comparesLines(t *testing.T, source *Source, w *work, lines *LineMap) {
	t.Helper()
	for file, old := range source.Tree.Files {
		for i, line := range old {
			position, there := lines.Now(Place{file, i + 1})
			if !there {
				continue
			}
			want := strip(line.Text)
			for _, word := range w.words {
				if word.file == file && word.first <= i+1 && i+1 <= word.last && strip(position.Text) != want {
					want = replaceWord(want, word.old, word.now)
				}
			}
			got := strip(w.tree.Files[position.File][position.Line-1].Text)
			if got != want && !strings.Contains(want, `"`) { // imports, and words that also are field names or text
				t.Errorf("%s:%d is now %s:%d, which is %q, want %q", file, i+1, position.File, position.Line, got, want)
			}
		}
	}
	for _, place := range []Place{{"main.go", 10}, {"shop/shop.go", 20}} {
		for _, duplicate := range lines.Copies(place) {
			if strip(duplicate.Text) != strip(source.Tree.Files[place.File][place.Line-1].Text) {
				t.Errorf("copy of %v is %q", place, duplicate.Text)
			}
		}
	}
}

// TestCarriedResultsStandOnTheirLines: results of unedited lines are carried correctly: they are on lines that end in
// "// R".
func TestCarriedResultsStandOnTheirLines(t *testing.T) {
	for _, edit := range Edits() {
		if !edit.Fits(mall()) {
			continue
		}
		for seed := range uint64(20) {
			plan := planOf(t, mall(), edit.Name, seed)
			for _, step := range plan.After {
				for _, r := range step.Report.Results {
					line := step.Tree.Files[r.File][r.Line-1].Text
					if !strings.HasSuffix(line, "// R") {
						t.Errorf("%s, seed %d: a result at %s:%d, where %q findingOf", edit.Name, seed, r.File, r.Line, line)
					}
					if r.Snippet != strings.TrimSpace(line) {
						t.Errorf("%s: snippet %q of line %q", edit.Name, r.Snippet, line)
					}
					if column := len(line) - len(strings.TrimLeft(line, "\t ")) + 1; r.Column != column {
						t.Errorf("%s, seed %d: column %d of %q", edit.Name, seed, r.Column, line)
					}
				}
			}
		}
	}
}

// TestTruthFollowsTheCode checks the truth about carried reports against the lines themselves, which are all distinct.
func TestTruthFollowsTheCode(t *testing.T) {
	source := mall()
	for file, lines := range source.Tree.Files {
		for i := range lines {
			if strings.HasSuffix(lines[i].Text, "// R") {
				lines[i].Text = strings.TrimSuffix(lines[i].Text, "// R") + "// " + file + string(rune('a'+i))
			}
		}
	}
	mark := func(text string) string { return text[strings.Index(text, "// "):] }
	for _, edit := range Edits() {
		for seed := range uint64(20) {
			plan := planOf(t, source, edit.Name, seed)
			step := plan.After[0]
			for i, truth := range step.Truth {
				old := plan.Before.Results[i]
				want := mark(source.Tree.Files[old.File][old.Line-1].Text)
				now := 0
				for _, file := range step.Tree.Paths() {
					now += strings.Count(step.Tree.Text(file), want)
				}
				switch truth.State {
				case Gone:
					if now != 0 {
						t.Errorf("%s: %q is said to be gone", edit.Name, want)
					}
				case Unseen:
					if now == 0 {
						t.Errorf("%s: %q is said to be in the code", edit.Name, want)
					}
				case Here:
					r := step.Report.Results[truth.Result]
					if got := mark(step.Tree.Files[r.File][r.Line-1].Text); got != want {
						t.Errorf("%s: result %d is said to be at %q, not %q", edit.Name, i, got, want)
					}
					if step.Tree.Files[r.File][r.Line-1].Copy {
						t.Errorf("%s: result %d is said to be its copy", edit.Name, i)
					}
				}
			}
		}
	}
}

// TestLineMapRefusesALineTwice: an edit that puts a line into two places has no defined truth.
func TestLineMapRefusesALineTwice(t *testing.T) {
	tree := mall().Tree
	tree.Files["twice.go"] = slices.Clone(tree.Files["main.go"])
	if _, err := NewLineMap(tree); err == nil {
		t.Error("a line is in two places, and no error")
	}
}

func TestPlansAreRepeatable(t *testing.T) {
	for _, edit := range Edits() {
		first, again := planOf(t, mall(), edit.Name, 7), planOf(t, mall(), edit.Name, 7)
		for i, step := range first.After {
			one, err := step.Report.SARIF()
			if err != nil {
				t.Fatal(err)
			}
			two, err := again.After[i].Report.SARIF()
			if err != nil {
				t.Fatal(err)
			}
			if string(one) != string(two) || step.Tree.Digest() != again.After[i].Tree.Digest() {
				t.Errorf("%s: not the same twice", edit.Name)
			}
		}
	}
}

func TestShiftedColumns(t *testing.T) {
	l := Line{Text: "\tx := y"}
	l.indent(true, true)
	if l.Text != "    x := y" || l.column(2) != 5 || l.column(7) != 10 || l.column(1) != 1 {
		t.Errorf("%q: columns %d %d %d", l.Text, l.column(2), l.column(7), l.column(1))
	}
}

// TestLocatePairsByMessage: a scanner may report fewer problems of a line than before, or in another order.
func TestLocatePairsByMessage(t *testing.T) {
	at := func(column int, message string) Result {
		return Result{Rule: "r", Place: Place{"a.go", 3}, Column: column, Message: message}
	}
	before := []Result{at(1, "one"), at(1, "two"), at(9, "three")}
	cases := []struct {
		after []Result
		want  []int
	}{
		{[]Result{at(1, "two"), at(1, "one"), at(9, "three")}, []int{1, 0, 2}},
		{[]Result{at(9, "three"), at(1, "two")}, []int{-1, 1, 0}},
		{[]Result{at(3, "uno"), at(3, "dos"), at(12, "tres")}, []int{1, 0, 2}},
		{nil, []int{-1, -1, -1}},
	}
	for _, c := range cases {
		all := make([]int, len(c.after))
		for i := range all {
			all[i] = i
		}
		if got := pair(before, c.after, []int{0, 1, 2}, all); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.after, got, c.want)
		}
	}
}

// TestPartialScansAndCopies: a problem that a scan did not cover is still in the code, and counts; so does a problem
// with a copy.
func TestPartialScansAndCopies(t *testing.T) {
	for name, want := range map[string]func(total, seen, unseen, touched int) bool{
		"20 % of the files fail": func(total, seen, unseen, touched int) bool { return unseen > 0 && seen > 0 && touched == unseen },
		"scan crashes half-way":  func(total, seen, unseen, touched int) bool { return seen == total/2 && touched == unseen },
		"lines duplicated":       func(total, seen, unseen, touched int) bool { return seen == total && touched > 0 },
		"deleted and restored":   func(total, seen, unseen, touched int) bool { return seen < total && unseen == 0 },
		"same again":             func(total, seen, unseen, touched int) bool { return seen == total && touched == total },
		"results in another order": func(total, seen, unseen, touched int) bool {
			return seen == total && touched == total
		},
	} {
		plan := planOf(t, mall(), name, 5)
		step := plan.After[0]
		seen, unseen, touched := 0, 0, 0
		for _, truth := range step.Truth {
			switch truth.State {
			case Here:
				seen++
			case Unseen:
				unseen++
			}
			if truth.Touched {
				touched++
			}
		}
		if total := len(step.Truth); !want(total, seen, unseen, touched) {
			t.Errorf("%s: of %d, %d are seen and %d not; %d are touched", name, total, seen, unseen, touched)
		}
		for file := range step.Skipped {
			if slices.Contains(step.Report.Analysed, file) || slices.ContainsFunc(step.Report.Results, func(r Result) bool { return r.File == file }) {
				t.Errorf("%s: %s was skipped, and is in the report", name, file)
			}
		}
		if plan.Edit.back != (len(plan.After) == 2) {
			t.Errorf("%s: %d scans", name, len(plan.After))
		}
	}
}

// TestProtocolIDs: the ids and hashes of the scanner protocol survive the same edits as the real client's.
func TestProtocolIDs(t *testing.T) {
	ids := func(s Step) map[string][]string {
		of := map[string][]string{}
		for _, f := range ciFindings(s) {
			hashes := f["hashes"].(object)
			for _, id := range []any{f["syntactic_id"], f["match_based_id"], hashes["code_hash"], hashes["pattern_hash"]} {
				of[f["path"].(string)] = append(of[f["path"].(string)], id.(string))
			}
		}
		for _, list := range of {
			slices.Sort(list)
		}
		return of
	}
	source := mall()
	before := ids(Step{Tree: source.Tree, Report: source.Report})
	for _, list := range before {
		for i, id := range list {
			if i > 0 && id == list[i-1] && len(id) != 64 {
				t.Errorf("two findings have the id %s", id)
			}
		}
	}
	for _, name := range []string{"lines inserted above", "re-indented", "results in another order"} {
		after := ids(planOf(t, source, name, 3).After[0])
		if !slices.Equal(after["shop/shop.go"], before["shop/shop.go"]) {
			t.Errorf("%s changes ids:\n%q\n%q", name, before, after)
		}
	}
	if slices.Equal(ids(planOf(t, source, "variable renamed", 3).After[0])["shop/shop.go"], before["shop/shop.go"]) {
		t.Error("a renamed variable changes nothing")
	}
}
