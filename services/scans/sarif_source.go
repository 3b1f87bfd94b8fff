package scans

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/sarif"
)

// unknownConfidence is the confidence of a rule that does not declare one. The API has no value for "unknown".
const unknownConfidence = vocabulary.ConfidenceMedium

// sarifFormat is SARIF. It is the fallback for all reports.
var sarifFormat = format{recognises: func([]byte) bool { return true }, open: openSARIF}

func openSARIF(ctx context.Context, file io.ReadSeeker, target *scansv1.UploadReportTarget, o UploadOptions) (report, error) {
	limits := sarif.DefaultLimits()
	limits.MaxBytes = o.MaxBytes
	opened, err := sarif.Open(ctx, file, limits, sarif.WithProduct(target.GetProduct()), sarif.WithRedactionKey(o.RedactionKey))
	if err != nil {
		return nil, (*sarifSource)(nil).refusal(err)
	}
	return newSARIFSource(opened, target.GetCategory()), nil
}

// sarifSource provides the results of a SARIF report.
type sarifSource struct {
	report   *sarif.Report
	category string // of the upload; empty: the report's own

	rules map[sarifRule]*ingest.Rule
	seen  []seenInRun  // by run
	skips []sarif.Skip // at most maxSkippedShown
	// skippedOf counts skipped results by run.
	skippedOf []int
}

type sarifRule struct{ tool, id string }

// seenInRun collects what the results of a run show about its coverage.
type seenInRun struct {
	rules, files map[string]bool
	// unnamedRules and unnamedFiles say that some results have an unknown rule or file. Then it is unknown which rules
	// or files have no results.
	unnamedRules, unnamedFiles bool
	// listsFiles says that the run has a table of files. Otherwise files are not collected.
	listsFiles bool
}

func newSARIFSource(report *sarif.Report, category string) *sarifSource {
	return &sarifSource{report: report, category: category, rules: map[sarifRule]*ingest.Rule{}}
}

// Each yields the results of all runs in file order. It records skipped results, and the rules and files with results.
func (s *sarifSource) Each(ctx context.Context, yield func(*ingest.Result) error) error {
	s.seen, s.skips, s.skippedOf = make([]seenInRun, len(s.report.Runs)), nil, make([]int, len(s.report.Runs))
	for n, run := range s.report.Runs {
		artifacts, _ := run.Artifacts()
		s.seen[n] = seenInRun{rules: map[string]bool{}, files: map[string]bool{}, listsFiles: len(artifacts) > 0}
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
	if !r.rules[result.Rule.ID] {
		r.rules[result.Rule.ID] = true
	}
	r.unnamedRules = r.unnamedRules || result.Rule.Stub // the run does not list all of its rules
	if r.listsFiles && result.Path != "" && !r.files[result.Path] {
		r.files[result.Path] = true
	}
}

func (r *seenInRun) skip(skipped sarif.Skip) {
	for name := skipped.RuleID; name != ""; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		r.rules[name] = true
	}
	r.unnamedRules = r.unnamedRules || skipped.RuleID == ""
	if r.listsFiles && skipped.Path != "" {
		r.files[skipped.Path] = true
	}
	r.unnamedFiles = r.unnamedFiles || skipped.Path == ""
}

func (s *sarifSource) groupOf(run *sarif.Run) ingest.Analysis {
	if s.category != "" {
		return ingest.Analysis{Tool: run.Tool.Slug, Category: s.category}
	}
	return ingest.Analysis{Tool: run.Tool.Slug, Category: run.AutomationCategory}
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
	content.MatchBasedId, content.ToolFingerprint = r.MatchBasedID, r.ToolFingerprint
	content.HistoricalCommit, content.SuppressionReason = r.HistoricalCommit, r.SuppressionReason
	i.Group, i.Product, i.Severity, i.Suppressed, i.Content = s.groupOf(s.report.Runs[r.Run]), r.Product, r.Severity, r.Suppressed, content
	i.Rule = s.rule(i.Group.Tool, r)
	switch r.Product {
	case vocabulary.SCA:
		i.Exposure, i.EPSSProbability = ingest.UnknownExposure, ingest.NoProbability
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
			Name: r.RuleID, Message: r.Rule.Message, Confidence: r.Rule.Confidence, Category: r.Rule.Category,
			Subcategories: r.Rule.Subcategories, VulnerabilityClasses: r.Rule.VulnerabilityClasses,
			CweNames: r.Rule.CWENames, OwaspNames: r.Rule.OWASPNames,
		}}
		if known.Text.Confidence == "" {
			known.Text.Confidence = unknownConfidence
		}
		s.rules[key] = known
	}
	return known
}

func addPackage(i *ingest.Result, r *sarif.Result) {
	found := &findingsv1.FoundDependency{Ecosystem: "no_package_manager", Transitivity: "unknown"}
	i.Content.FoundDependency, i.Content.VulnerabilityIdentifier = found, r.RuleID
	if p := r.Package; p != nil {
		found.Package, found.Version = p.Name, p.Version
		if p.Ecosystem != "" {
			found.Ecosystem = p.Ecosystem
		}
		if p.AdvisoryID != "" {
			i.Content.VulnerabilityIdentifier = p.AdvisoryID
		}
		for version := range strings.SplitSeq(p.FixedVersion, ",") {
			if version = strings.TrimSpace(version); version != "" {
				i.Content.FixRecommendations = append(i.Content.FixRecommendations, &findingsv1.FixRecommendation{Package: p.Name, Version: version})
			}
		}
	}
	i.Transitivity, i.Package = found.GetTransitivity(), found.GetPackage()
	i.Advisory = strings.ToUpper(i.Content.GetVulnerabilityIdentifier())
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
		if run.Tool.Slug != "" {
			groups[s.groupOf(run)] = append(groups[s.groupOf(run)], run)
		}
	}
	return groups
}

// incompleteReason returns the reason why results that are missing from the runs may still be in the code; empty if
// they are fixed.
func incompleteReason(runs []*sarif.Run) string {
	for _, run := range runs {
		if run.Rejected != "" {
			return fmt.Sprintf("run %d was rejected", run.Index)
		}
		if !run.Succeeded {
			return fmt.Sprintf("run %d did not succeed", run.Index)
		}
	}
	return ""
}

// warningsOf adds the warnings of this service to the warnings of the parser.
func (s *sarifSource) warningsOf(run *sarif.Run) []string {
	blocker := incompleteReason(s.groups()[s.groupOf(run)])
	if blocker == "" || run.Rejected != "" || !run.Succeeded { // the parser has warned already
		return nil
	}
	return []string{"no finding was closed as fixed: " + blocker}
}

// runs implements report.
func (s *sarifSource) runs() (list []reportRun) {
	for n, run := range s.report.Runs {
		group, skipped := s.groupOf(run), s.skippedOf[n]
		list = append(list, reportRun{&scansv1.UploadedRun{
			Index:       int32(run.Index),
			Tool:        run.Tool.Name,
			ToolVersion: run.Tool.Version,
			Category:    group.Category,
			Product:     run.Product,
			Results:     int32(run.Results),
			Accepted:    int32(run.Results - skipped),
			Skipped:     int32(skipped),
			Warnings:    slices.Concat(run.Warnings, s.warningsOf(run)),
			Rejected:    run.Rejected,
		}, group})
	}
	return list
}

// skipped implements report.
func (s *sarifSource) skipped() (list []*scansv1.SkippedResult) {
	for _, skip := range s.skips {
		list = append(list, &scansv1.SkippedResult{
			Run: int32(skip.Run), Index: int32(skip.Index), RuleId: skip.RuleID, Path: skip.Path, Reason: skip.Reason,
		})
	}
	return list
}

// refusal implements report.
func (*sarifSource) refusal(err error) error {
	var syntax *sarif.SyntaxError
	var format *sarif.FormatError
	var limit *sarif.LimitError
	switch {
	case errors.As(err, &syntax), errors.As(err, &format):
		return apierr.MalformedReport("%v", err)
	case errors.As(err, &limit):
		return apierr.TooLarge("%v", err)
	}
	return err
}
