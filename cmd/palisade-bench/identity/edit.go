package identity

import (
	"math/rand/v2"
	"strings"
)

// Limits of the share of decisions kept, in per mille.
const (
	barShift = 990 // lines that were shifted or indented
	barMove  = 950 // files that were moved or renamed
)

// Edit is a kind of edit.
type Edit struct {
	Name string
	// Bar is the minimum share of decisions kept, in per mille; 0: no limit.
	Bar int
	// code changes the tree in place; nil: the code stays unchanged. It draws random numbers in an order that does not
	// depend on map iteration.
	code func(*work)
	// say changes the output of the tool; nil: unchanged.
	say func(*work, *Report)
	// unseen selects the files that the scan fails on.
	unseen func(*work) map[string]bool
	// image is true for a scan of another container image, which finds nothing.
	image bool
	// bare selects the sources: tools whose results have nothing but a constant message and a line, or all others.
	bare, notBare bool
	// half is true for a run that dies halfway.
	half bool
	// back is true if the code before the edit is scanned again at the end.
	back bool
	// all is true if every problem counts as touched, although its result is unchanged.
	all bool
	// adjacent is true if copies are directly below their originals.
	adjacent bool
	// Alone is true for an edit that needs its own server, because it changes the whole deployment.
	Alone bool
	// lists is true if reports must list the analyzed files.
	lists bool
}

// work is an edit in progress.
type work struct {
	random *rand.Rand
	tree   *Tree
	before *Report
	// wholeFolders is true if the result must compile: files then move with their folders.
	wholeFolders bool
	words        []word
	replaced     []string // files that replaceFiles deleted
}

// word is an identifier that was renamed on lines of the tree before the edit.
type word struct {
	file        string
	first, last int
	old, now    string
}

// Edits returns all kinds of edits, in the order of the table.
func Edits() []Edit {
	return []Edit{
		{Name: "same again", Bar: barShift, all: true},
		{Name: "results in another order", Bar: barShift, all: true, say: shuffle},
		{Name: "lines inserted above", Bar: barShift, code: insertLines},
		{Name: "re-indented", Bar: barShift, code: reindent},
		{Name: "variable renamed", code: renameVariables},
		{Name: "file moved", Bar: barMove, code: moveFiles, notBare: true},
		{Name: "file renamed", Bar: barMove, code: renameFiles, notBare: true},
		{Name: "file split in two", code: splitFiles, notBare: true},
		{Name: "other file, same problems", code: replaceFiles, say: reportReplacements, bare: true},
		{Name: "rule renamed", Bar: barShift, Alone: true, say: renameRules},
		{Name: "tool upgrade, other messages", say: rewordMessages},
		{Name: "lines duplicated", code: duplicateLines, adjacent: true},
		{Name: "functions duplicated", code: duplicateFunctions},
		{Name: "deleted and restored", code: deleteFunctions, back: true},
		{Name: "20 % of the files fail", Bar: barShift, unseen: dropFiles, back: true, lists: true},
		{Name: "scan crashes half-way", Bar: barShift, half: true, back: true},
		{Name: "scan of another image", Bar: barShift, image: true, back: true},
	}
}

// Fits reports whether the edit can be measured with a source. The scanner protocol has no images. A tool that has one
// message for all places of a rule does not show that a file moved.
func (e Edit) Fits(s *Source) bool {
	return !(e.image && s.Protocol || e.bare && !s.bare || e.notBare && s.bare)
}

// files returns the files with results that may be edited, sorted.
func (w *work) files() []string {
	var files []string
	for _, file := range w.before.Files() {
		if _, there := w.tree.Files[file]; there {
			files = append(files, file)
		}
	}
	return files
}

// some selects a share of a list, at least one, in its order.
func some[T any](random *rand.Rand, list []T, share float64) []T {
	if len(list) == 0 {
		return nil
	}
	var chosen []T
	for _, one := range list {
		if random.Float64() < share {
			chosen = append(chosen, one)
		}
	}
	if len(chosen) == 0 {
		chosen = append(chosen, list[random.IntN(len(list))])
	}
	return chosen
}

// few selects one to three elements of a list, in its order.
func few[T any](random *rand.Rand, list []T) []T {
	var chosen []T
	left := min(len(list), 1+random.IntN(3))
	for i, one := range list {
		if random.IntN(len(list)-i) < left {
			chosen = append(chosen, one)
			left--
		}
	}
	return chosen
}

// on returns the lines of a file where results start.
func (w *work) on(file string) map[int]bool {
	lines := map[int]bool{}
	for _, result := range w.before.Results {
		if result.File == file {
			lines[result.Line] = true
		}
	}
	return lines
}

// parse parses a Go file of the tree; nil for other files.
func (w *work) parse(file string) *goFile {
	if !isGo(file) {
		return nil
	}
	return parseGo(file, w.tree.Text(file))
}

// renameRules renames the rule with the most results and a third of the other rules, and declares the aliases in the
// report.
func renameRules(w *work, r *Report) {
	counts, best := map[string]int{}, ""
	var rules []string
	for _, result := range r.Results {
		if counts[result.Rule]++; counts[result.Rule] == 1 {
			rules = append(rules, result.Rule)
		}
		if counts[result.Rule] > counts[best] {
			best = result.Rule
		}
	}
	former := map[string]string{best: best + "-v2"}
	for _, rule := range some(w.random, rules, 0.33) {
		former[rule] = rule + "-v2"
	}
	r.Aliases = map[string]string{}
	for old, now := range former {
		r.Aliases[now] = old
	}
	for i := range r.Results {
		if now, renamed := former[r.Results[i].Rule]; renamed {
			r.Results[i].Rule = now
		}
	}
}

// rewordMessages changes all messages, like a new version of a tool.
func rewordMessages(_ *work, r *Report) {
	r.Version += ".1"
	for i := range r.Results {
		text := r.Results[i].Message
		if text != "" {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
		r.Results[i].Message = "Problem: " + text + " See the rule " + r.Results[i].Rule + " for what to do."
	}
}

// shuffle reorders the results, like a tool that scans files in parallel.
func shuffle(w *work, r *Report) {
	w.random.Shuffle(len(r.Results), func(i, j int) { r.Results[i], r.Results[j] = r.Results[j], r.Results[i] })
}

// dropFiles selects a fifth of the files with results.
func dropFiles(w *work) map[string]bool {
	files := map[string]bool{}
	for _, file := range some(w.random, w.files(), 0.2) {
		files[file] = true
	}
	return files
}
