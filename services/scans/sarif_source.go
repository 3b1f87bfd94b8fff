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

// unknownConfidence is the confidence of a rule that says nothing: the API has no word for "unknown".
const unknownConfidence = vocabulary.ConfidenceMedium

// sarifFormat is SARIF, which takes whatever is said to be a report.
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

// sarifSource are the results of a SARIF report.
type sarifSource struct {
	report   *sarif.Report
	category string // of the upload; empty: the report's own

	rules map[sarifRule]*ingest.Rule
	seen  []seenInRun  // by run
	skips []sarif.Skip // at most maxSkippedShown
	// skippedOf counts them by run.
	skippedOf []int
}

type sarifRule struct{ tool, id string }

// seenInRun is what the results of a run show of its coverage.
type seenInRun struct {
	rules, files map[string]bool
	// unnamed: there are results whose rule, or file, is not known, so that it cannot be said which ones have none.
	unnamedRules, unnamedFiles bool
	// listsFiles: the run has a table of files; without one nobody asks which of them have results.
	listsFiles bool
}

func newSARIFSource(report *sarif.Report, category string) *sarifSource {
	return &sarifSource{report: report, category: category, rules: map[sarifRule]*ingest.Rule{}}
}

// each passes the results of all runs in file order, and notes what is skipped, and what has results.
func (s *sarifSource) Each(ctx context.Context, yield func(*ingest.Result) error) error {
	s.seen, s.skips, s.skippedOf = make([]seenInRun, len(s.report.Runs)), nil, make([]int, len(s.report.Runs))
	for n, run := range s.report.Runs {
		artifacts, _ := run.Artifacts()
		s.seen[n] = seenInRun{rules: map[string]bool{}, files: map[string]bool{}, listsFiles: len(artifacts) > 0}
	}
	return s.report.Results(ctx, func(r *sarif.Result) error {
		s.seen[r.Run].note(r)
		return yield(s.incoming(r))
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

// incoming turns a result into its neutral form.
func (s *sarifSource) incoming(r *sarif.Result) *ingest.Result {
	made := &struct { // one piece of memory instead of three
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

// rule is made once for all results of a rule.
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

// formerNames are the former names that the report's rules declare. A name that two rules had, or that a rule still
// has, says nothing.
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

// groups are the runs of each analysis.
func (s *sarifSource) groups() map[ingest.Analysis][]*sarif.Run {
	groups := map[ingest.Analysis][]*sarif.Run{}
	for _, run := range s.report.Runs {
		if run.Tool.Slug != "" {
			groups[s.groupOf(run)] = append(groups[s.groupOf(run)], run)
		}
	}
	return groups
}

// whyNotComplete says why what is missing from the runs need not be gone from the code; "" when it must be.
func whyNotComplete(runs []*sarif.Run) string {
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

// warningsOf adds what this service has to say about a run to what the reader found.
func (s *sarifSource) warningsOf(run *sarif.Run) []string {
	blocker := whyNotComplete(s.groups()[s.groupOf(run)])
	if blocker == "" || run.Rejected != "" || !run.Succeeded { // the reader has said so already
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
