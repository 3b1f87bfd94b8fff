package sarif

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Result is one finding of a tool. Its texts are valid UTF-8 without NUL.
type Result struct {
	// Run and Index are the positions in the report and in the run's results, from 0.
	Run, Index int
	// RuleID is the id as written, which may have components after the rule's ("CA5350/md5").
	RuleID string
	// Rule is never nil. An unknown id has a stub.
	Rule *Rule
	// Redacted says that the id of the rule had the secret of the result.
	Redacted bool
	// Unnamed says that the result names no rule, and has the rule [Run.UnnamedRule].
	Unnamed bool
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
	// Rebased says that the report has the path as absolute, or out of the repository by "..".
	Rebased bool
	// Line to EndColumn are 1-based and never 0. The end column is exclusive. The package comment has the defaults.
	Line, Column, EndLine, EndColumn int
	// Snippet is the code of the region or around it. It is redacted if it may contain a secret, and may be empty.
	Snippet string
	// MatchBasedID is fingerprints["matchBasedId/v1"], or empty.
	MatchBasedID string
	// ToolFingerprint is "name:value" of the best other fingerprint, or empty. It need not be unique.
	ToolFingerprint string
	// Fingerprints are further fingerprints that identify the result, each as "name:value".
	Fingerprints []string
	// Suppressed says that the tool or the code suppresses the result. SuppressionReason may be empty, and so may the
	// kind (inSource or external) and the person.
	Suppressed                                            bool
	SuppressionReason, SuppressionKind, SuppressionAuthor string
	// TriageReason is the word of the suppression's properties that is a triage reason, or empty.
	TriageReason string
	// BaselineState is new, unchanged, updated, or empty. Absent results are skipped.
	BaselineState string
	// HistoricalCommit is the commit of a secret that was found in the history. The file may no longer exist.
	HistoricalCommit string
	// Package is the dependency of a dependency scanner's result, or nil.
	Package *Package
	// CWENames and OWASPNames are the ones that the result names itself, beside those of its rule.
	CWENames, OWASPNames []string
	// Logical is the name of the place inside the program or resource (logicalLocations), or empty. LogicalKind is its
	// kind as the report writes it, such as "function" or "resource", or empty.
	Logical, LogicalKind string
	// Related are further places, in the order of the report.
	Related []RelatedLocation
	// Flows are paths through the code to the result, and Fixes are changes that the tool proposes.
	Flows []Flow
	Fixes []Fix
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
	var fault pathFault
	skip := func(reason string) (*Result, *Skip) {
		return nil, &Skip{Run: run.Index, Index: index, RuleID: id, Path: file, Reason: reason}
	}
	unreadable := func(reason string) (*Result, *Skip) {
		return nil, run.unreadable(Skip{Run: run.Index, Index: index, RuleID: id, Path: file, Reason: reason})
	}
	if err := jsonstream.Unmarshal(raw, w, run.fixed); err != nil {
		id = salvageRuleID(raw)
		return unreadable(jsonstream.Describe(err))
	}
	id = ruleID(w.RuleID)
	if !w.saysSomething() {
		return unreadable("it has neither a message, nor a rule, nor a location")
	}
	location := w.location()
	file, fault = run.paths.resolve(location.ArtifactLocation)
	run.lostPlace(location.ArtifactLocation, file)
	run.lostRegion(location.Region)
	rule, name := run.rule(w)
	nameless := rule == nil
	if nameless {
		rule = run.ruleOfMessage(w)
		name = rule.ID
	}
	id = name
	severity := run.severityOf(w, rule)
	if reason := noFinding(w, severity); reason != "" {
		return skip(reason)
	}
	res := &Result{
		Unnamed: nameless && run.unnamed.count(run, rule),
		Run:     run.Index, Index: index, RuleID: id, Rule: rule, Severity: severity, Path: file,
		Confidence:    confidence(first(w.Properties.texts[factConfidence]), first(w.Properties.texts[factPrecision]), rule.Confidence),
		BaselineState: baseline(w.BaselineState),
		Product:       run.productFor(w, rule, rep.options),
	}
	res.CWENames, res.OWASPNames = run.ownWeaknesses(w)
	res.Rebased = file != "" && run.paths.last.rebased
	res.region(location.Region)
	run.told.path(file, fault)
	run.addLocations(res, w)
	res.suppression(w.Suppressions)
	run.texts(res, w, location, rep)
	if res.Product == vocabulary.SCA {
		res.Package = packageOf(w, rule, res.Message, res.Path)
		run.placePackage(res.Package)
	}
	return res, nil
}

// placePackage resolves the files of a package like the files of results.
func (run *Run) placePackage(p *Package) {
	if p == nil {
		return
	}
	for _, file := range []*string{&p.Lockfile, &p.Manifest} {
		path, _ := run.paths.resolve(&wireArtifactLocation{URI: *file})
		*file = redactTokens(path)
	}
}

// texts sets all fields that may contain a secret, redacted.
func (run *Run) texts(res *Result, w *wireResult, location wirePhysicalLocation, rep *Report) {
	res.Message = run.message(w, res.Rule)
	found := fingerprintsOf(w)
	own, around := snippetOf(location.Region), snippetOf(location.ContextRegion)
	var r redactor
	if run.isSensitive(res) {
		res.HistoricalCommit = historicalCommit(w)
		if r = newRedactor(rep.options.redactionKey, own, around); own == "" && around == "" {
			r.add(quotedIn(res.Message, res.Path))
		}
	}
	res.redactRule(r)
	res.Snippet = r.snippet(jsonstream.Clean(cmp.Or(own, around)))
	res.Message = r.text(res.Message)
	res.redactPlaces(r)
	run.addContext(res, w, r)
	res.SuppressionReason, res.SuppressionAuthor = r.text(res.SuppressionReason), r.text(res.SuppressionAuthor)
	found.drop(r.leaks)
	res.MatchBasedID, res.ToolFingerprint, res.Fingerprints = found.matchBased, found.best, found.others
	res.trim(rep.limits) // after redaction, because a cut could leave a part of a secret
}

// trim cuts the free texts to their maximal lengths.
func (res *Result) trim(limits Limits) {
	res.Message = jsonstream.Cut(res.Message, limits.MaxMessageBytes)
	res.Snippet = jsonstream.Cut(res.Snippet, limits.MaxSnippetBytes)
	res.SuppressionReason = jsonstream.Cut(res.SuppressionReason, 2048)
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

// productFor returns the product that the result or its rule names if the tool has several products. A product set by
// the caller takes precedence. A known vulnerability of a package is one of a dependency, whatever the tool is.
func (run *Run) productFor(w *wireResult, rule *Rule, o options) string {
	if named := strings.ToLower(first(w.Properties.texts[factProduct])); o.product == "" && isProduct[named] {
		return named
	}
	if run.rulesSayProduct(o) {
		return cmp.Or(productWord(w.Properties.texts[factProduct]), rule.product, run.Product)
	}
	if o.product == "" && run.Product == vocabulary.SAST && isDependency(w, rule) {
		return vocabulary.SCA
	}
	return run.Product
}

func (run *Run) rulesSayProduct(o options) bool {
	return o.product == "" && run.ownProduct == "" && (run.Product == vocabulary.SCA || contains(severalProducts, run.Tool.Slug))
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
		if rule := run.ruleByGUID(ref.GUID); rule != nil {
			return rule, rule.ID
		}
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
	return run.stub(id), id
}

// stub returns the rule of an id that the run does not declare.
func (run *Run) stub(id string) *Rule {
	stub := run.stubs[id]
	if stub == nil {
		stub = stubRule(id)
		// A report that names a new rule in every result must not exhaust the memory.
		if len(run.stubs) < maxStubs {
			run.stubs[id] = stub
		}
	}
	return stub
}

const maxStubs = 10_000

// ruleByGUID returns the rule with a GUID, or nil.
func (run *Run) ruleByGUID(guid string) *Rule {
	if guid == "" {
		return nil
	}
	if run.byGUID == nil {
		run.byGUID = map[string]*Rule{}
		for _, rule := range run.Rules() {
			run.byGUID[strings.ToLower(rule.guid)] = rule
		}
	}
	return run.byGUID[strings.ToLower(guid)]
}

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

// region applies the defaults of SARIF 3.30.
func (res *Result) region(r *wireRegion) {
	res.Line, res.Column, res.EndLine, res.EndColumn = 1, 1, 1, 1
	if r == nil || r.StartLine == nil || *r.StartLine < 1 {
		return
	}
	res.Line = int(*r.StartLine)
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
// not. One that says nothing could not be read, or is none. The first one with a triage reason is kept, else the first
// with a text, else the first. The specification has no author and no triage reason; tools use properties.
func (res *Result) suppression(all []wireSuppression) {
	for _, s := range all {
		if s == (wireSuppression{}) || s.Status != "" && !strings.EqualFold(s.Status, "accepted") {
			continue
		}
		author, reason, triage := "", s.Justification, ""
		if s.Properties != nil {
			told := s.Properties.texts[factReason]
			author = first(s.Properties.texts[factPerson])
			if at := slices.IndexFunc(told, isTriageReason); at >= 0 {
				triage = told[at]
			} else {
				reason = cmp.Or(reason, first(told))
			}
		}
		reason = strings.TrimSpace(jsonstream.Clean(reason))
		if !res.Suppressed || res.TriageReason == "" && (triage != "" || res.SuppressionReason == "" && reason != "") {
			res.SuppressionReason, res.SuppressionAuthor, res.TriageReason, res.SuppressionKind = reason, author, triage, ""
			switch strings.ToLower(s.Kind) {
			case "insource":
				res.SuppressionKind = "inSource"
			case "external":
				res.SuppressionKind = "external"
			}
		}
		res.Suppressed = true
	}
}

// isTriageReason reports whether a text is the word of a triage reason.
func isTriageReason(text string) bool {
	return slices.Contains([]string{"false_positive", "acceptable_risk", "no_time", lifecycle.NoTriageReason}, text)
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
	if json.Unmarshal(raw, &w, jsonstream.Options) != nil {
		return ""
	}
	return ruleID(first(w.RuleID))
}
