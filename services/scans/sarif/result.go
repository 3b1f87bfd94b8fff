package sarif

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Result is one finding of a tool. Its texts are valid UTF-8 without NUL.
type Result struct {
	// Run and Index are the positions in the report and in the run's results, from 0.
	Run, Index int
	// RuleID is the id as written, which may have components after the rule's ("CA5350/md5").
	RuleID string
	// Rule is never nil. An unknown id has a stub.
	Rule *Rule
	// Product is the run's, unless the rule of a tool with several products says otherwise.
	Product string
	// Message is plain text, with arguments and links resolved; never empty.
	Message string
	// Severity is low, medium, high or critical.
	Severity string
	// Confidence is the result's own, else the rule's: low, medium, high, or empty.
	Confidence string
	// Path is relative to the checkout if possible, with forward slashes. It is empty if the result names no file.
	Path string
	// Line to EndColumn are 1-based and never 0. The end column is exclusive. The package comment has the defaults.
	Line, Column, EndLine, EndColumn int
	// Snippet is the code of the region or around it. It is redacted if it may contain a secret, and may be empty.
	Snippet string
	// MatchBasedID is fingerprints["matchBasedId/v1"], or empty.
	MatchBasedID string
	// ToolFingerprint is "name:value" of the best other fingerprint, or empty. It need not be unique.
	ToolFingerprint string
	// Suppressed says that the tool or the code suppresses the result. SuppressionReason may be empty.
	Suppressed        bool
	SuppressionReason string
	// BaselineState is new, unchanged, updated, or empty. Absent results are skipped.
	BaselineState string
	// HistoricalCommit is the commit of a secret that was found in the history. The file may no longer exist.
	HistoricalCommit string
	// Package is the dependency of a dependency scanner's result, or nil.
	Package *Package
}

// Skip is a result that is not used, and the reason. It never has text of the result that could be a secret.
type Skip struct {
	Run, Index           int
	RuleID, Path, Reason string
}

// convert converts raw JSON to a result or a skip. Exactly one of the two is not nil.
func (run *Run) convert(raw jsontext.Value, index int, rep *Report) (*Result, *Skip) {
	if run.wire == nil {
		run.wire = &wireResult{}
	}
	w := run.wire
	*w = wireResult{}
	var id, file string
	skip := func(reason string) (*Result, *Skip) {
		return nil, &Skip{Run: run.Index, Index: index, RuleID: id, Path: file, Reason: reason}
	}
	if err := json.Unmarshal(raw, w, decodeOptions); err != nil {
		id = salvageRuleID(raw)
		return skip(describe(err))
	}
	id = ruleID(w.RuleID)
	location := w.location()
	var err error
	file, err = run.paths.resolve(location.ArtifactLocation)
	if err != nil {
		file = ""
		return skip(err.Error())
	}
	rule, name := run.rule(w)
	if rule == nil {
		return skip("it names no rule: it has neither ruleId nor rule.id nor the index of a known rule")
	}
	id = name
	severity := run.severityOf(w, rule)
	if reason := noFinding(w, severity); reason != "" {
		return skip(reason)
	}
	res := &Result{
		Run: run.Index, Index: index, RuleID: id, Rule: rule, Severity: severity, Path: file,
		Confidence:    confidence(first(w.Properties.Confidence), first(w.Properties.IssueConfidence), rule.Confidence),
		BaselineState: baseline(w.BaselineState),
		Product:       run.productFor(rule, rep.options),
	}
	res.region(location.Region)
	res.suppression(w.Suppressions)
	run.texts(res, w, location, rep)
	if res.Product == vocabulary.SCA {
		res.Package = packageOf(w, rule, res.Message, res.Path)
	}
	return res, nil
}

// texts sets all fields that may contain a secret, redacted if necessary.
func (run *Run) texts(res *Result, w *wireResult, location wirePhysicalLocation, rep *Report) {
	res.Message = run.message(w, res.Rule)
	res.MatchBasedID, res.ToolFingerprint = fingerprints(w)
	own, around := snippetOf(location.Region), snippetOf(location.ContextRegion)
	snippet := own
	if snippet == "" {
		snippet = around
	}
	if !run.Secrets && res.Product != vocabulary.Secrets && !res.Rule.sensitive {
		res.Snippet = cut(clean(snippet), rep.limits.MaxSnippetBytes)
		res.trim(rep.limits)
		return
	}
	res.HistoricalCommit = historicalCommit(w)
	r := newRedactor(rep.options.redactionKey, own, around)
	res.Snippet = r.snippet(snippet)
	res.Message = r.text(res.Message)
	res.SuppressionReason = r.text(res.SuppressionReason)
	if r.leaks(res.MatchBasedID) {
		res.MatchBasedID = ""
	}
	if r.leaks(res.ToolFingerprint) {
		res.ToolFingerprint = ""
	}
	res.trim(rep.limits) // after redaction, because a cut could leave a part of a secret
}

// trim cuts the free texts to their maximal lengths.
func (res *Result) trim(limits Limits) {
	res.Message = cut(res.Message, limits.MaxMessageBytes)
	res.SuppressionReason = cut(res.SuppressionReason, 2048)
}

// noFinding returns why a result is not a finding of this commit, or "".
func noFinding(w *wireResult, severity string) string {
	switch {
	case isNoProblem(w.Kind):
		return "kind " + strings.ToLower(w.Kind) + " is not a problem"
	case strings.EqualFold(w.BaselineState, "absent"):
		return "baselineState absent: the problem of the baseline is gone"
	case severity == levelNone:
		return "level none is not a problem"
	}
	return ""
}

func baseline(state string) string {
	switch state = strings.ToLower(state); state {
	case "new", "unchanged", "updated":
		return state
	}
	return ""
}

// productFor returns the product of the rule if the tool has several products. A product set by the caller takes
// precedence.
func (run *Run) productFor(rule *Rule, o options) string {
	if run.rulesSayProduct(o) && rule.product != "" {
		return rule.product
	}
	return run.Product
}

func (run *Run) rulesSayProduct(o options) bool {
	return run.Product == vocabulary.SCA && o.product == ""
}

// rule finds the rule of a result and its id as written. It returns nil if the result names none.
func (run *Run) rule(w *wireResult) (*Rule, string) {
	id := ruleID(w.RuleID)
	var ref wireDescriptorRef
	if w.Rule != nil {
		ref = *w.Rule
	}
	if id == "" {
		id = ruleID(ref.ID)
	}
	if id == "" {
		if ref.Index == nil {
			ref.Index = w.RuleIndex
		}
		if rule := run.component(ref.ToolComponent).at(ref.Index); rule != nil {
			return rule, rule.ID
		}
		return nil, ""
	}
	if rule := run.ruleByID(id, ref.ToolComponent); rule != nil {
		return rule, id
	}
	stub := run.stubs[id]
	if stub == nil {
		stub = stubRule(id)
		// A report that names a new rule in every result must not exhaust the memory.
		if len(run.stubs) < maxStubs {
			run.stubs[id] = stub
		}
	}
	return stub, id
}

const maxStubs = 10_000

// ruleByID looks in the named component first, then in all. Then it looks for hierarchical prefixes of the id (SARIF
// 3.27.5).
func (run *Run) ruleByID(id string, ref *wireComponentRef) *Rule {
	for name := id; name != ""; {
		if c := run.component(ref); ref != nil && c != nil && c.byID[name] != nil {
			return c.byID[name]
		}
		if rule := run.driver.byID[name]; rule != nil {
			return rule
		}
		for _, c := range run.extensions {
			if rule := c.byID[name]; rule != nil {
				return rule
			}
		}
		name = name[:max(strings.LastIndexByte(name, '/'), 0)]
	}
	return nil
}

// location is the first location that names a file, or else the analysis target.
func (w *wireResult) location() wirePhysicalLocation {
	for _, location := range w.Locations {
		if p := location.PhysicalLocation; p != nil && p.ArtifactLocation != nil {
			return *p
		}
	}
	for _, location := range w.Locations {
		if p := location.PhysicalLocation; p != nil {
			return *p
		}
	}
	return wirePhysicalLocation{ArtifactLocation: w.AnalysisTarget}
}

// region applies the defaults of SARIF 3.30.
func (res *Result) region(r *wireRegion) {
	res.Line, res.Column, res.EndLine, res.EndColumn = 1, 1, 1, 1
	if r == nil || r.StartLine < 1 {
		return
	}
	res.Line = int(r.StartLine)
	res.Column = max(int(r.StartColumn), 1)
	res.EndLine = max(int(r.EndLine), res.Line)
	switch {
	case r.EndColumn >= 1:
		res.EndColumn = int(r.EndColumn)
	case res.EndLine == res.Line:
		res.EndColumn = res.Column
	}
	if res.EndLine == res.Line {
		res.EndColumn = max(res.EndColumn, res.Column)
	}
}

// suppression applies suppressions: one that is accepted or has no status suppresses; rejected or under review ones do
// not.
func (res *Result) suppression(all []wireSuppression) {
	for _, s := range all {
		if s.Status != "" && !strings.EqualFold(s.Status, "accepted") {
			continue
		}
		reason := strings.TrimSpace(clean(s.Justification))
		if !res.Suppressed || res.SuppressionReason == "" {
			res.SuppressionReason = reason
		}
		res.Suppressed = true
	}
}

func snippetOf(r *wireRegion) string {
	if r == nil || r.Snippet == nil {
		return ""
	}
	return r.Snippet.Text
}

// salvageRuleID returns the rule of a result that could not be decoded.
func salvageRuleID(raw jsontext.Value) string {
	var w struct {
		RuleID loose `json:"ruleId"`
	}
	if json.Unmarshal(raw, &w, decodeOptions) != nil {
		return ""
	}
	return ruleID(first(w.RuleID))
}
