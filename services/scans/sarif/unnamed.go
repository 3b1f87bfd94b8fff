package sarif

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// unnamed counts the results of a run that name no rule.
type unnamed struct {
	first            string // place
	byMessage, other int
}

// ruleOfMessage is the rule of a result that names none: the rule of the run whose name its message begins with, or
// else "<tool>/unnamed". It depends on nothing else, because the rule is part of the identity of a finding.
func (run *Run) ruleOfMessage(w *wireResult) *Rule {
	if rule := run.longestName(w.text()); rule != nil {
		return rule
	}
	return run.stub(run.UnnamedRule())
}

// count counts a result that names no rule, and reports whether its rule is the unnamed one.
func (u *unnamed) count(run *Run, rule *Rule) bool {
	if u.first == "" {
		u.first = run.at.String()
	}
	if rule.ID != run.UnnamedRule() {
		u.byMessage++
		return false
	}
	u.other++
	return true
}

// UnnamedRule is the id of the rule of results that name no rule.
func (run *Run) UnnamedRule() string {
	return jsonstream.Cut(run.Tool.Slug, maxName-len("/unnamed")) + "/unnamed"
}

// longestName returns the rule with the longest id or name with which a text begins, or nil.
func (run *Run) longestName(text string) (rule *Rule) {
	if run.named == nil {
		run.named = map[string]*Rule{}
		for _, rule := range run.Rules() {
			for _, name := range []string{rule.ID, rule.Name} {
				if other, known := run.named[name]; known && other != rule {
					run.named[name] = nil // the name of two rules
				} else {
					run.named[name] = rule
				}
			}
		}
	}
	text = jsonstream.OneLine(jsonstream.Clean(jsonstream.Cut(text, 2*maxName)))
	for i, c := range text {
		if i > 0 && !isWord(c) {
			if named := run.named[text[:i]]; named != nil {
				rule = named
			}
		}
	}
	if named := run.named[text]; named != nil {
		return named
	}
	return rule
}

func isWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// text is the message of a result as written.
func (w *wireResult) text() string {
	if w.Message == nil {
		return ""
	}
	if w.Message.Text != "" {
		return w.Message.Text
	}
	return w.Message.Markdown
}

// tell warns about results without a rule.
func (u *unnamed) tell(run *Run) {
	n := u.byMessage + u.other
	if n == 0 {
		return
	}
	text := fmt.Sprintf("%d results name no rule, the first is %s:", n, u.first)
	if n == 1 {
		text = fmt.Sprintf("%s names no rule:", u.first)
	}
	if u.byMessage > 0 {
		text += fmt.Sprintf(" %d got the rule whose name their message begins with", u.byMessage)
	}
	if u.byMessage > 0 && u.other > 0 {
		text += ", and"
	}
	if u.other > 0 {
		text += fmt.Sprintf(" %d got the rule %s; each may be a finding of any rule, so that no finding of another rule is closed by this run", u.other, run.UnnamedRule())
	}
	run.warn("%s", text)
}

// saysSomething reports whether a result has a message, a rule or a location.
func (w *wireResult) saysSomething() bool {
	m := w.Message
	return m != nil && m.Text+m.Markdown+m.ID != "" || w.RuleID != "" || w.RuleIndex != nil || w.Rule != nil ||
		len(w.Locations) > 0 || w.AnalysisTarget != nil
}

// identifying are the members of a result by which its finding is recognised.
var identifying = map[string]bool{
	"ruleId": true, "ruleIndex": true, "rule": true, "message": true, "locations": true, "analysisTarget": true,
	"fingerprints": true, "partialFingerprints": true,
}

// identifies reports whether a part that was converted or ignored may identify the result, so that the result may not
// be recognised as the finding that it is. The numbers of a region do not change when they are converted.
func identifies(f jsonstream.Fix) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(f.Pointer, "/"), "/")
	if strings.HasSuffix(f.Problem, ": converted") {
		// The texts stay the same, and so do the numbers of a region.
		if first == "message" || first == "fingerprints" || first == "partialFingerprints" || strings.Contains(rest, "/region/") {
			return false
		}
	}
	return identifying[first]
}

// unreadable records a result that cannot be read.
func (run *Run) unreadable(s Skip) *Skip {
	run.resultNotes.add(run.at.String(), "cannot be read: "+s.Reason, true)
	return &s
}

// lostPlace records a result whose file is named by an index that the run does not have.
func (run *Run) lostPlace(location *wireArtifactLocation, path string) {
	if path == "" && location != nil && location.URI == "" && location.Index != nil && *location.Index >= 0 {
		run.resultNotes.add(run.at.String(), "names its file by an index that could not be read", true)
	}
}

// lostRegion records a result with a region that says nothing. SARIF 3.30 requires a line or an offset.
func (run *Run) lostRegion(r *wireRegion) {
	if r != nil && r.StartLine == nil && r.CharOffset == nil && r.ByteOffset == nil && r.Snippet == nil {
		run.resultNotes.add(run.at.String(), "has a region without a line or an offset", true)
	}
}
