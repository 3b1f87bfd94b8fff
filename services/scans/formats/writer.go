package formats

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/places"
	"github.com/palisade/palisade/services/scans/sarif"
)

const (
	// maxRules bounds the rules that one tool may have in a report.
	maxRules = 50_000
	// maxRuleBytes bounds the texts of rules that are kept until the end of a run. Later rules have only an id.
	maxRuleBytes = 24 << 20
	// maxNotes bounds the warnings and the unreadable items that are listed for each run; all are counted.
	maxNotes = 50
)

// Writer writes the results of a report as a SARIF 2.1.0 document. Then everything that happens to SARIF reports
// happens to reports of all formats: limits, redaction, severities, paths, identity, and closing of findings.
type Writer struct {
	out     *bufio.Writer
	err     error
	facts   *bufio.Writer
	kept    struct{ dependencies, decisions int }
	runs    []*Notes
	tool    *Tool // of the open run, or nil
	rules   map[string]int
	written []sarifRule
	bytes   int
	results int
	list    string // the array of the open run that is being written
	failed  []failedFile
	// absolute says that the report has absolute paths of files.
	absolute bool
	at       string // pointer of the item that is being read
	// heads are parts that were converted or ignored before the first run.
	heads []headFix
}

type headFix struct {
	pointer string
	fix     jsonstream.Fix
}

// Notes is what the conversion says about a run, for people.
type Notes struct {
	// Warnings have the places of the original report.
	Warnings []string
	// Failure says why no finding is closed by the run; empty if findings may be closed.
	Failure string
	// Unreadable are items that could not be used. Omitted counts the ones that are not listed.
	Unreadable []Unreadable
	Omitted    int
	// FailedPackages are packages that the tool could not look at. No finding about one of them is closed.
	FailedPackages []string
	// FactsOnly says that the document has dependencies or decisions and no results. It says nothing about findings that
	// it does not name, so it neither creates nor closes any.
	FactsOnly bool

	fixes map[string]*fixNote
	order []string
}

// Unreadable is an item of the report that could not be used.
type Unreadable struct {
	// Index is the number of results before it in the run.
	Index int
	// Pointer is its JSON pointer, Reason says what is wrong.
	Pointer, Reason string
}

// fixNote counts equal fixes.
type fixNote struct {
	first jsonstream.Fix
	n     int
}

func newWriter(out, facts io.Writer) *Writer {
	w := &Writer{out: bufio.NewWriterSize(out, 64<<10), facts: bufio.NewWriterSize(facts, 64<<10)}
	w.text(`{"version":"2.1.0","runs":[`)
	return w
}

// Run starts the results of a tool. A report has at least one run, also without results.
func (w *Writer) Run(t Tool) {
	w.endRun()
	if len(w.runs) > 0 {
		w.text(",")
	}
	w.tool, w.rules, w.written, w.bytes, w.results, w.list, w.failed, w.absolute = &t, map[string]int{}, nil, 0, 0, "", nil, false
	w.runs = append(w.runs, &Notes{fixes: map[string]*fixNote{}})
	w.text("{")
	for _, h := range w.heads {
		w.Fixed(h.pointer, h.fix)
	}
	w.heads = nil
}

// Fail says that the tool did not finish the open run, so that no finding is closed by it.
func (w *Writer) Fail(reason string) {
	if n := w.notes(); n.Failure == "" {
		n.Failure = sarif.RedactTokens(reason)
	}
}

// Warn adds a warning to the open run.
func (w *Writer) Warn(format string, args ...any) { w.notes().warn(fmt.Sprintf(format, args...)) }

func (w *Writer) notes() *Notes { return w.runs[len(w.runs)-1] }

func (n *Notes) warn(text string) {
	text = sarif.RedactTokens(text)
	if len(n.Warnings) < maxNotes && !slices.Contains(n.Warnings, text) {
		n.Warnings = append(n.Warnings, text)
	}
}

// Unreadable records an item that may be a problem but could not be used. No finding of the tool is closed then.
func (w *Writer) Unreadable(pointer, reason string) {
	n := w.notes()
	if len(n.Unreadable) >= maxNotes {
		n.Omitted++
	} else {
		n.Unreadable = append(n.Unreadable, Unreadable{Index: w.results + len(n.Unreadable) + n.Omitted, Pointer: sarif.RedactTokens(pointer), Reason: sarif.RedactTokens(reason)})
	}
	w.Fail("some of its results could not be read")
}

// describing matches parts that describe a problem. No finding is recognised by them.
var describing = regexp.MustCompile(`(?i)/(?:[a-z_]*severity|[a-z0-9_]*scores?|cvss[a-z0-9_]*|cwe[a-z_]*|owasp|[a-z_]*confidence|references|licenses?)(?:/[^/]*)*$`)

// Fixed records a part that was converted or ignored. Equal parts of several items are one warning. No finding is
// closed then: the part may have been what a finding is recognised by.
func (w *Writer) Fixed(pointer string, fix jsonstream.Fix) {
	if w.tool == nil {
		if len(w.heads) < maxNotes {
			w.heads = append(w.heads, headFix{pointer, fix})
		}
		return
	}
	if !strings.HasSuffix(fix.Problem, "want an integer: converted") && !describing.MatchString(fix.Pointer) {
		w.Fail("a part of it could not be read as the tool writes it")
	}
	n := w.notes()
	key := anyIndex(fix.Pointer) + fix.Problem
	if n.fixes[key] == nil {
		if len(n.fixes) >= maxNotes {
			return
		}
		n.fixes[key] = &fixNote{first: jsonstream.Fix{Pointer: pointer + fix.Pointer, Problem: fix.Problem}}
		n.order = append(n.order, key)
	}
	n.fixes[key].n++
}

// anyIndex replaces the indexes of a pointer.
func anyIndex(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i, part := range parts {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// Result writes a result of the open run. A result that says nothing is unreadable.
func (w *Writer) Result(r *Result) error {
	if r.Rule.ID == "" && r.Rule.Message == "" && r.Rule.Name == "" && r.Message == "" && r.Path == "" {
		w.Unreadable(w.at, "has neither a rule nor a message nor a place")
		return w.err
	}
	if r.Rule.ID == "" {
		w.Fail("a result names no rule")
	}
	w.absolute = w.absolute || places.IsAbsolute(places.Decode(r.Path))
	w.element(listResults)
	w.results++
	w.json(w.convert(r))
	return w.err
}

// close ends the document.
func (w *Writer) close() error {
	w.endRun()
	w.text("]}")
	if w.err == nil {
		w.err = errors.Join(w.out.Flush(), w.facts.Flush())
	}
	return w.err
}

func (w *Writer) endRun() {
	if w.tool == nil {
		return
	}
	w.placeFailed()
	n := w.notes()
	for _, key := range n.order {
		f := n.fixes[key]
		text := f.first.Pointer + " " + f.first.Problem
		if f.n > 1 {
			text += fmt.Sprintf(" (and in %d more places)", f.n-1)
		}
		n.warn(text)
	}
	w.begin(listResults)
	w.text(`],"tool":`)
	w.json(sarifTool{sarifDriver{Name: w.tool.Name, Version: w.tool.Version, Rules: w.written}})
	w.invocation()
	if w.tool.Category != "" {
		w.text(`,"automationDetails":`)
		w.json(sarifID{ID: w.tool.Category + "/"})
	}
	if n.Failure != "" && !n.FactsOnly {
		n.warn("no finding is closed by this run: " + n.Failure)
	}
	if w.tool.Product != "" {
		w.text(`,"properties":`)
		w.json(map[string]string{"product": w.tool.Product})
	}
	w.text("}")
	w.tool = nil
}

func (w *Writer) text(s string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(s)
	}
}

func (w *Writer) json(v any) {
	if w.err == nil {
		w.err = json.MarshalWrite(w.out, v, jsonstream.Options)
	}
}
