package scans

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/rules/ruleset"
	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/sarif"
)

// unknownConfidence is the confidence of a result if neither it nor its rule has one. The API has no value for
// "unknown".
const unknownConfidence = vocabulary.ConfidenceMedium

// sarifSource provides the results of a SARIF report, or of a report that was converted to SARIF.
type sarifSource struct {
	report   *sarif.Report
	category string // of the upload; empty: the report's own
	format   string
	// converted and notes are set for a report of another format.
	converted io.Closer
	facts     *spool.File
	notes     []*formats.Notes
	// failedRules are the rules of findings about packages that a run could not look at, by run.
	failedRules map[int][]string

	// modes are the policy modes of the deployment's rules in the project, by name. It is empty for reports of tools
	// that do not run such rules.
	modes map[string]string

	rules map[sarifRule]*ingest.Rule
	seen  []seenInRun  // by run
	skips []sarif.Skip // at most maxSkippedShown
	// skippedOf counts skipped results by run.
	skippedOf []int
}

type sarifRule struct{ tool, id string }

// maxRebased bounds the paths of a run that may have been other paths before.
const maxRebased = 20_000

// seenInRun collects what the results of a run show about its coverage.
type seenInRun struct {
	rules map[string]seenOfRule
	files map[string]bool
	// rebased are paths that the report writes with another root.
	rebased map[string]bool
	// products are the products of results.
	products map[string]bool
	// nameless says that there are results without a rule: see ingest.Coverage.
	nameless bool
	// unnamedRules and unnamedFiles say that some results have an unknown rule or file. Then it is unknown which rules
	// or files have no results.
	unnamedRules, unnamedFiles bool
	// listsFiles says that the run has a table of files. Otherwise files are not collected.
	listsFiles bool
}

// seenOfRule is which results of a rule were seen.
type seenOfRule uint8

const (
	seenAny seenOfRule = 1 << iota
	seenInFile
	seenWithoutFile
)

func newSARIFSource(report *sarif.Report, category string) *sarifSource {
	return &sarifSource{report: report, category: category, rules: map[sarifRule]*ingest.Rule{}, modes: map[string]string{}}
}

// loadModes reads the modes of rules, if the report is of the tool that runs them.
func (s *sarifSource) loadModes(ctx context.Context, db *ent.Client, projectName string) (err error) {
	ofTool := func(run *sarif.Run) bool { return s.groupOf(run).Tool == scannerTool }
	if slices.ContainsFunc(s.report.Runs, ofTool) {
		s.modes, err = ruleset.PolicyModes(ctx, db, projectName)
	}
	return err
}

// Each yields the results of all runs in file order. It records skipped results, and the rules and files with results.
func (s *sarifSource) Each(ctx context.Context, yield func(*ingest.Result) error) error {
	s.seen, s.skips, s.skippedOf = make([]seenInRun, len(s.report.Runs)), nil, make([]int, len(s.report.Runs))
	for n, run := range s.report.Runs {
		artifacts, _ := run.Artifacts()
		s.seen[n] = seenInRun{rules: map[string]seenOfRule{}, files: map[string]bool{}, rebased: map[string]bool{}, products: map[string]bool{}, listsFiles: len(artifacts) > 0}
	}
	return s.report.Results(ctx, func(r *sarif.Result) error {
		s.seen[r.Run].note(r)
		return yield(s.toResult(r))
	}, func(skipped sarif.Skip) error {
		s.skip(skipped)
		s.seen[skipped.Run].skip(skipped)
		return nil
	})
}

func (s *sarifSource) skip(skipped sarif.Skip) {
	s.skippedOf[skipped.Run]++
	if len(s.skips) < maxSkippedShown {
		s.skips = append(s.skips, skipped)
	}
}

func (r *seenInRun) note(result *sarif.Result) {
	now := seenAny | seenInFile
	if result.Path == "" {
		now = seenAny | seenWithoutFile
	}
	r.see(result.RuleID, now)
	if result.RuleID != result.Rule.ID {
		r.see(result.Rule.ID, seenAny)
	}
	r.unnamedRules = r.unnamedRules || result.Rule.Stub || result.Redacted // the run does not list all of its rules
	r.nameless = r.nameless || result.Unnamed
	if !r.products[result.Product] {
		r.products[result.Product] = true
	}
	if result.Rebased && len(r.rebased) < maxRebased {
		r.rebased[result.Path] = true
	}
	if r.listsFiles && result.Path != "" && !r.files[result.Path] {
		r.files[result.Path] = true
	}
}

func (r *seenInRun) see(rule string, now seenOfRule) {
	if before := r.rules[rule]; before|now != before {
		r.rules[rule] = before | now
	}
}

// having returns the rules with all of the given results.
func (r *seenInRun) having(want seenOfRule) (rules []string) {
	for rule, seen := range r.rules {
		if seen&want == want {
			rules = append(rules, rule)
		}
	}
	return rules
}

func (r *seenInRun) skip(skipped sarif.Skip) {
	for name := skipped.RuleID; name != ""; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		r.see(name, seenAny)
	}
	r.unnamedRules = r.unnamedRules || skipped.RuleID == ""
	if r.listsFiles && skipped.Path != "" {
		r.files[skipped.Path] = true
	}
	r.unnamedFiles = r.unnamedFiles || skipped.Path == ""
}

// checkNames rejects control characters in the tools and the categories that findings are stored under.
func (s *sarifSource) checkNames() error {
	for _, run := range s.report.Runs {
		in := fmt.Sprintf("runs[%d].", run.Index)
		if err := checkControl(in+"tool.driver.name", run.Tool.Slug); err != nil {
			return err
		}
		if err := checkControl(in+"automationDetails.id", s.groupOf(run).Category); s.category == "" && err != nil {
			return err
		}
	}
	return nil
}

// checkControl rejects control characters.
func checkControl(field, value string) error {
	if strings.ContainsFunc(value, unicode.IsControl) {
		return apierr.InvalidArgument(field, "%s must have no control characters, got %s", field, apierr.Quote(value))
	}
	return nil
}

func (s *sarifSource) groupOf(run *sarif.Run) ingest.Analysis {
	if s.category != "" {
		return ingest.Analysis{Tool: run.Tool.Slug, Category: s.category}
	}
	return ingest.Analysis{Tool: run.Tool.Slug, Category: cmp.Or(run.AutomationCategory, run.ImageCategory)}
}

// toResult converts a result to the neutral form.
func (s *sarifSource) toResult(r *sarif.Result) *ingest.Result {
	made := &struct { // one allocation instead of three
		result   ingest.Result
		content  storev1.FindingContent
		location findingsv1.FindingLocation
	}{}
	i, content, location := &made.result, &made.content, &made.location
	location.FilePath, location.Line, location.Column = r.Path, int32(r.Line), int32(r.Column)
	location.EndLine, location.EndColumn = int32(r.EndLine), int32(r.EndColumn)
	content.Location, content.Message, content.Snippet = location, r.Message, r.Snippet
	content.LogicalLocation = r.Logical
	content.MatchBasedId, content.ToolFingerprint = r.MatchBasedID, r.ToolFingerprint
	ingest.SetFingerprints(content, r.Fingerprints, r.LogicalKind)
	content.HistoricalCommit, content.SuppressionReason = r.HistoricalCommit, r.SuppressionReason
	i.Group, i.Product, i.Severity, i.Suppressed, i.Content = s.groupOf(s.report.Runs[r.Run]), r.Product, r.Severity, r.Suppressed, content
	i.Rule = s.rule(i.Group.Tool, r)
	if i.Group.Tool == scannerTool {
		i.PolicyMode = s.modes[r.RuleID]
	}
	addContext(content, r)
	switch r.Product {
	case vocabulary.SCA:
		i.Exposure = ingest.UnknownExposure
		addPackage(i, r)
	case vocabulary.Secrets:
		i.ValidationState, i.Historical = ingest.NoValidator, r.HistoricalCommit != ""
	}
	return i
}

// rule returns the rule of a result. All results of a rule share it.
func (s *sarifSource) rule(tool string, r *sarif.Result) *ingest.Rule {
	key := sarifRule{tool, r.RuleID}
	known := s.rules[key]
	if known == nil {
		known = &ingest.Rule{Name: r.RuleID, Stub: r.Rule.Stub, Text: &findingsv1.FindingRule{
			Name: r.RuleID, Message: r.Rule.Message, Category: r.Rule.Category,
			Subcategories: r.Rule.Subcategories, VulnerabilityClasses: r.Rule.VulnerabilityClasses,
			CweNames: r.Rule.CWENames, OwaspNames: r.Rule.OWASPNames, Help: r.Rule.Help, HelpUri: r.Rule.HelpURI, References: r.Rule.References,
		}}
		s.rules[key] = known
	}
	known.Text.Confidence = higherConfidence(known.Text.GetConfidence(), cmp.Or(r.Confidence, unknownConfidence))
	addWeaknesses(known.Text, r)
	return known
}

// higherConfidence is the higher of two confidences, where the first may be empty. Findings show the confidence of
// their rule, and a filter for sure findings must not miss one.
func higherConfidence(a, b string) string {
	order := []string{vocabulary.ConfidenceLow, vocabulary.ConfidenceMedium, vocabulary.ConfidenceHigh}
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}

// maxWeaknesses is how many CWEs and OWASP entries of results a rule gets. A rule whose results differ in more is about
// no weakness of its own.
const maxWeaknesses = 20

// addWeaknesses adds the CWEs and OWASP entries that only the result names to the text of its rule, because findings
// show those of their rule. What the rule says itself stays first. The ingest reads the text after all results.
func addWeaknesses(text *findingsv1.FindingRule, r *sarif.Result) {
	before := len(text.GetCweNames())
	text.CweNames = union(text.GetCweNames(), r.CWENames)
	text.OwaspNames = union(text.GetOwaspNames(), r.OWASPNames)
	if len(text.GetCweNames()) > before {
		text.VulnerabilityClasses = union(text.GetVulnerabilityClasses(), sarif.VulnerabilityClasses(r.CWENames))
	}
}

// union appends the texts that are missing from a list, in a copy: the lists of rules are shared. The part before a
// colon identifies a text: "CWE-79: Cross-site Scripting".
func union(list, more []string) []string {
	for _, text := range more {
		id, _, _ := strings.Cut(text, ": ")
		known := slices.ContainsFunc(list, func(other string) bool { return other == id || strings.HasPrefix(other, id+": ") })
		if !known && len(list) < maxWeaknesses {
			list = append(slices.Clip(list), text)
		}
	}
	return list
}

func addPackage(i *ingest.Result, r *sarif.Result) {
	found := &findingsv1.FoundDependency{Ecosystem: "no_package_manager", Transitivity: "unknown"}
	i.Content.FoundDependency, i.Content.VulnerabilityIdentifier = found, r.RuleID
	if p := r.Package; p != nil {
		found.Package, found.Version = p.Name, p.Version
		found.Ecosystem, found.Transitivity = cmp.Or(p.Ecosystem, found.Ecosystem), cmp.Or(p.Transitivity, found.Transitivity)
		i.Content.VulnerabilityIdentifier = cmp.Or(p.AdvisoryID, r.RuleID)
		for version := range strings.SplitSeq(p.FixedVersion, ",") { // several branches have a fix each
			if version = strings.TrimSpace(version); version != "" {
				i.Content.FixRecommendations = append(i.Content.FixRecommendations, &findingsv1.FixRecommendation{Package: p.Name, Version: version})
			}
		}
		addUse(i, p)
	}
	i.Transitivity, i.Package = found.GetTransitivity(), found.GetPackage()
	i.Advisory = strings.ToUpper(i.Content.GetVulnerabilityIdentifier())
}

// addUse adds how the project uses a dependency.
func addUse(i *ingest.Result, p *sarif.Package) {
	i.Exposure, i.Malicious = cmp.Or(p.Exposure, ingest.UnknownExposure), p.Malicious
	i.Content.ReachableCondition, i.Content.Manifest = p.ReachableIf, p.Manifest
	if p.Lockfile == "" {
		return
	}
	i.Content.Lockfile, i.Content.LockfileLine = p.Lockfile, int32(p.LockfileLine)
	if at := i.Content.GetLocation(); p.LockfileLine == 0 && at.GetFilePath() == p.Lockfile {
		i.Content.LockfileLine = at.GetLine()
	}
	addUsage(i.Content, i.Exposure)
}

// formerNames returns the former names that the report's rules declare. It omits names that two rules had, and names
// that a rule still has.
func (s *sarifSource) formerNames() map[string]map[string]string {
	byTool := map[string]map[string]string{}
	for _, run := range s.report.Runs {
		if run.Rejected != "" {
			continue
		}
		rules := run.Rules()
		present := map[string]bool{}
		for _, rule := range rules {
			present[rule.ID] = true
		}
		for _, rule := range rules {
			for _, former := range rule.FormerIDs {
				names := byTool[run.Tool.Slug]
				if names == nil {
					names = map[string]string{}
					byTool[run.Tool.Slug] = names
				}
				if other, declared := names[former]; present[former] || declared && other != rule.ID {
					names[former] = former
					continue
				}
				names[former] = rule.ID
			}
		}
	}
	return byTool
}

// groups returns the runs of each analysis.
func (s *sarifSource) groups() map[ingest.Analysis][]*sarif.Run {
	groups := map[ingest.Analysis][]*sarif.Run{}
	for _, run := range s.report.Runs {
		if run.Tool.Slug != "" && !s.factsOnly(run.Index) {
			groups[s.groupOf(run)] = append(groups[s.groupOf(run)], run)
		}
	}
	return groups
}

// incompleteReason returns the reason why results that are missing from the runs of an analysis may still be in the
// code; empty if they are fixed.
func (s *sarifSource) incompleteReason(analysis ingest.Analysis, runs []*sarif.Run) string {
	for _, run := range runs {
		switch {
		case run.Rejected != "":
			return fmt.Sprintf("run %d was rejected", run.Index)
		case !run.Succeeded:
			return fmt.Sprintf("run %d did not succeed", run.Index)
		case run.Partial() != "":
			return run.Partial()
		}
	}
	for _, run := range s.report.Runs {
		if run.Tool.Slug == "" {
			return fmt.Sprintf("the tool of run %d could not be read", run.Index)
		}
		if s.category == "" && run.CategoryUnknown && run.Tool.Slug == analysis.Tool {
			return fmt.Sprintf("the category of run %d could not be read", run.Index)
		}
	}
	return ""
}

// warningsOf adds the warnings of this service to the warnings of the parser.
func (s *sarifSource) warningsOf(run *sarif.Run) (list []string) {
	analysis := s.groupOf(run)
	blocker := s.incompleteReason(analysis, s.groups()[analysis])
	if blocker != "" && (run.Succeeded || run.Rejected != "") { // otherwise the parser has warned already
		list = append(list, "no finding was closed as fixed: "+blocker)
	}
	if id := run.Uncategorised; id != "" && s.category == "" {
		list = append(list, fmt.Sprintf("automationDetails.id %q names no category, which is the part before its last slash: "+
			"write %q, or pass category with the upload", id, strings.TrimLeft(id, "/")+"/"))
	}
	if n := len(s.seen[run.Index].having(seenInFile | seenWithoutFile)); n > 0 && blocker == "" {
		list = append(list, fmt.Sprintf("%d rules have some results without a file; no finding of these rules in a file was closed as fixed", n))
	}
	return list
}

// reportRun is a part of a report, usually the results of one tool.
type reportRun struct {
	*scansv1.UploadedRun
	analysis ingest.Analysis
}

// scanned returns the URI of the repository and the revision that the report names, and the time of its state; empty or
// zero if the report has none.
func (s *sarifSource) scanned() (repository, revision string, at time.Time) {
	for _, run := range s.report.Runs {
		repository, revision, at = cmp.Or(repository, run.RepositoryURI), cmp.Or(revision, run.Revision), cmp.Or(at, run.AsOf)
	}
	return repository, revision, at
}

// runs describes each part of the report for the answer, without the coverage. It is valid after the results have been
// read.
func (s *sarifSource) runs() (list []reportRun) {
	for n, run := range s.report.Runs {
		group, skipped := s.groupOf(run), s.skippedOf[n]+s.unreadable(n)
		list = append(list, reportRun{&scansv1.UploadedRun{
			Index:       int32(run.Index),
			Tool:        run.Tool.Name,
			ToolVersion: run.Tool.Version,
			Category:    group.Category,
			Product:     run.Product,
			Results:     int32(run.Results + s.unreadable(n)),
			Accepted:    int32(run.Results - s.skippedOf[n]),
			Skipped:     int32(skipped),
			Warnings:    slices.Concat(run.Warnings, s.warningsOf(run)),
			Rejected:    run.Rejected,
		}, group})
	}
	return list
}

// skipped returns the first results that made no finding, at most maxSkippedShown.
func (s *sarifSource) skipped() []*scansv1.SkippedResult {
	list := s.skippedItems()
	for _, skip := range s.skips {
		list = append(list, &scansv1.SkippedResult{
			Run: int32(skip.Run), Index: int32(skip.Index), RuleId: skip.RuleID, Path: skip.Path, Reason: skip.Reason,
		})
	}
	return list[:min(len(list), maxSkippedShown)]
}
