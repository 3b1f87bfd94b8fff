package identity

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// State is the outcome of a problem.
type State int

// Values of State.
const (
	// Gone: the code no longer exists, or the scanner no longer reports it.
	Gone State = iota
	// Here: the new report has it.
	Here
	// Unseen: the problem is in the code, but the new report does not cover it.
	Unseen
)

// Truth is the outcome of a result in the report before an edit.
type Truth struct {
	State State
	// Result is the index of its result in the new report; only with Here.
	Result int
	// Ambiguous lists further results that are equally right: if a line is duplicated directly below itself, either copy
	// may be the original.
	Ambiguous []int
	// Touched is true if the edit changed anything in the scanner's result: location, quoted code, rule, message.
	Touched bool
}

// carried returns the report that the scanner would write about the edited code, computed from the old report and the
// line map. The order is kept; copies follow their originals.
func carried(before *Report, old, edited *Tree, lines *LineMap, words []word) *Report {
	var results []Result
	for i, result := range before.Results {
		if position, there := lines.Now(result.Place); there {
			now := carry(result, old, edited, lines, words, position)
			now.origin = i + 1
			results = append(results, now)
		}
		for _, duplicate := range lines.Copies(result.Place) {
			now := carry(result, old, edited, lines, words, duplicate)
			now.origin, now.copyOf = 0, i+1
			results = append(results, now)
		}
	}
	return before.with(results)
}

// carry moves one result to the present position of its line.
func carry(r Result, old, edited *Tree, lines *LineMap, words []word, to Position) Result {
	before := r
	r.Place = to.Place
	if r.Column > 0 {
		r.Column = to.line.column(r.Column)
	}
	if r.EndLine > 0 {
		r.EndLine = to.Line + before.EndLine - before.Line
		last := to.line
		if end, there := lines.Now(Place{before.File, before.EndLine}); there && !to.line.Copy && end.File == to.File && end.Line >= to.Line {
			r.EndLine, last = end.Line, end.line
		}
		if r.EndCol > 0 {
			r.EndCol = last.column(r.EndCol)
		}
	}
	for _, w := range words {
		if w.file == before.File && w.first <= before.Line && before.Line <= w.last {
			r.Message = replaceWord(r.Message, w.old, w.now)
			r.Snippet = replaceWord(r.Snippet, w.old, w.now)
		}
	}
	// A tool that quotes exactly the line quotes its present text.
	if before.Snippet != "" && old.quoted(before.Place) == strings.TrimSpace(before.Snippet) {
		r.Snippet = strings.TrimSpace(edited.Files[to.File][to.Line-1].Text)
	}
	return r
}

func (t *Tree) quoted(p Place) string {
	if lines := t.Files[p.File]; p.Line <= len(lines) {
		return strings.TrimSpace(lines[p.Line-1].Text)
	}
	return ""
}

// replaceWord replaces an identifier where it is a whole word.
func replaceWord(text, old, now string) string {
	return regexp.MustCompile(`\b`+regexp.QuoteMeta(old)+`\b`).ReplaceAllLiteralString(text, now)
}

// follow derives the truth from a report with the origins of its results.
func follow(before, after *Report) []Truth {
	truth := make([]Truth, len(before.Results))
	for i := range truth {
		truth[i] = Truth{State: Gone, Touched: true}
	}
	for i, result := range after.Results {
		if result.origin > 0 {
			old := before.Results[result.origin-1]
			truth[result.origin-1] = Truth{State: Here, Result: i, Touched: differ(old, result)}
		}
	}
	for i, result := range after.Results {
		if result.copyOf > 0 {
			truth[result.copyOf-1].copied(i)
		}
	}
	return truth
}

// copied records a result of a copy.
func (t *Truth) copied(result int) {
	t.Ambiguous, t.Touched = append(t.Ambiguous, result), true
}

// locate finds each old result in a scanner's report about the edited code: by rule, on the present line, by order if
// there are several. The scanner may report fewer results for a line than before; the last ones then count as gone.
func locate(before, after *Report, lines *LineMap) []Truth {
	type key struct {
		rule string
		Place
	}
	now := map[key][]int{}
	for i, result := range after.Results {
		k := key{result.Rule, result.Place}
		now[k] = append(now[k], i)
	}
	was, copies := map[key][]int{}, map[key][]int{}
	truth := make([]Truth, len(before.Results))
	for i, result := range before.Results {
		truth[i] = Truth{State: Gone, Touched: true}
		if position, there := lines.Now(result.Place); there {
			k := key{result.Rule, position.Place}
			was[k] = append(was[k], i)
		}
		for _, duplicate := range lines.Copies(result.Place) {
			k := key{result.Rule, duplicate.Place}
			copies[k] = append(copies[k], i)
		}
	}
	for k, olds := range was {
		for i, now := range pair(before.Results, after.Results, olds, now[k]) {
			if now >= 0 {
				truth[olds[i]] = Truth{State: Here, Result: now, Touched: differ(before.Results[olds[i]], after.Results[now])}
			}
		}
	}
	for k, olds := range copies {
		for i, now := range pair(before.Results, after.Results, olds, now[k]) {
			if now >= 0 {
				truth[olds[i]].copied(now)
			}
		}
	}
	return truth
}

// pair assigns new results to the old results of a line: first results with equal messages, then in order.
func pair(before, after []Result, olds, news []int) []int {
	sorted := func(list []Result, of []int) []int {
		of = slices.Clone(of)
		slices.SortStableFunc(of, func(a, b int) int {
			return cmp.Or(cmp.Compare(list[a].Column, list[b].Column), strings.Compare(list[a].Message, list[b].Message))
		})
		return of
	}
	inOrder, left := sorted(before, olds), sorted(after, news)
	given := map[int]int{}
	if len(inOrder) != len(left) {
		for _, old := range inOrder {
			same := slices.IndexFunc(left, func(i int) bool { return after[i].Message == before[old].Message })
			if same >= 0 {
				given[old] = left[same]
				left = slices.Delete(left, same, same+1)
			}
		}
	}
	for _, old := range inOrder {
		if _, done := given[old]; !done && len(left) > 0 {
			given[old], left = left[0], left[1:]
		}
	}
	pairs := make([]int, len(olds))
	for i, old := range olds {
		pairs[i] = -1
		if now, ok := given[old]; ok {
			pairs[i] = now
		}
	}
	return pairs
}

// differ reports whether anything changed that identity could depend on.
func differ(a, b Result) bool {
	return a.Place != b.Place || a.Column != b.Column || a.Rule != b.Rule || a.Message != b.Message || a.Snippet != b.Snippet
}

// byPlace compares results by location.
func byPlace(a, b Result) int {
	return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}
