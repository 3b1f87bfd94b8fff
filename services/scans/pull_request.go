package scans

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scancoverage"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/rules/ruleset"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/ingest"
)

const (
	// maxPullRequestRefs is how many scans of a pull request are searched for its refs. Most have one ref.
	maxPullRequestRefs = 200
	// maxPullRequestScans is how many scans are compared: the latest of each tool and category.
	maxPullRequestScans = 10
	// maxPullRequestParts is how many parts of findings of one scan are compared (gatePart).
	maxPullRequestParts = 10
	// maxPullRequestFindings is how many findings are listed.
	maxPullRequestFindings = 1000
)

// bySeverity are the severities, the highest first.
var bySeverity = []string{vocabulary.SeverityCritical, vocabulary.SeverityHigh, vocabulary.SeverityMedium, vocabulary.SeverityLow}

// GetPullRequest returns what a pull request adds, and what blocks it.
func (s *PullRequests) GetPullRequest(ctx context.Context, r *scansv1.GetPullRequestRequest) (*scansv1.GetPullRequestResponse, error) {
	of, err := findProject(ctx, s.store.Reader, r.GetProject())
	if err != nil {
		return nil, err
	}
	refs, err := s.refsOf(ctx, of, r)
	if err != nil {
		return nil, err
	}
	newest, err := newestScan(ctx, s.store.Reader, of, refs)
	if err != nil {
		return nil, err
	}
	if newest == nil {
		return nil, apierr.NotFound("no scan of %s in project %q", named(r), of.Name)
	}
	v := &pullRequestView{db: s.store.Reader, project: of, out: &scansv1.GetPullRequestResponse{}}
	if v.out.PullRequest, err = convertPullRequest(newest, of); err != nil {
		return nil, err
	}
	if r.GetNumber() != 0 {
		v.out.PullRequest.Number = r.GetNumber()
	}
	if v.policies, err = remediation.Load(ctx, s.store.Reader); err != nil {
		return nil, err
	}
	scans, err := v.latestScans(ctx, refs)
	if err != nil {
		return nil, err
	}
	for _, one := range scans {
		if err := v.add(ctx, one); err != nil {
			return nil, err
		}
	}
	if v.out.Fixed, err = v.fixed(ctx, refs); err != nil {
		return nil, err
	}
	if v.out.Feedback, err = writtenFeedback(ctx, s.store.Reader, of.ID, v.out.GetPullRequest().GetNumber()); err != nil {
		return nil, err
	}
	return v.finish(), nil
}

// fixed counts the findings that the pull request had and has no more.
func (v *pullRequestView) fixed(ctx context.Context, refs []string) (int32, error) {
	n, err := v.db.Finding.Query().
		Where(finding.ProjectID(v.project.ID), store.OneOf(finding.FieldRef, refs), finding.State(lifecycle.Fixed), finding.MergedIntoIsNil()).Count(ctx)
	return int32(n), err
}

func named(r *scansv1.GetPullRequestRequest) string {
	if r.GetNumber() != 0 {
		return fmt.Sprintf("pull request %d", r.GetNumber())
	}
	return r.GetRef()
}

// refsOf returns the refs under which a pull request may have been scanned. CI systems name the ref of the pull request
// or its branch.
func (s *PullRequests) refsOf(ctx context.Context, of *ent.Project, r *scansv1.GetPullRequestRequest) ([]string, error) {
	if r.GetNumber() == 0 {
		return []string{gitref.Full(r.GetRef())}, nil
	}
	found, err := s.store.Reader.Scan.Query().Where(scan.ProjectID(of.ID), scan.PullRequest(r.GetNumber())).
		Order(ent.Desc(scan.FieldID)).Limit(maxPullRequestRefs).Select(scan.FieldRef).Strings(ctx)
	refs := append(gitref.PullRequestRefs(r.GetNumber()), found...)
	slices.Sort(refs)
	return slices.Compact(refs), err
}

// pullRequestView collects what the scans of a pull request say.
type pullRequestView struct {
	db       *ent.Client
	project  *ent.Project
	policies []remediation.Policy
	out      *scansv1.GetPullRequestResponse
	findings []*scansv1.PullRequestFinding
	total    int
}

// analysedScan is a scan, and its analyses that no later scan has.
type analysedScan struct {
	*ent.Scan
	analyses []*ent.ScanCoverage
}

// latestScans returns the latest scan of each tool and category, the newest first.
func (v *pullRequestView) latestScans(ctx context.Context, refs []string) ([]*analysedScan, error) {
	latest, err := v.latestAnalyses(ctx, refs)
	if err != nil {
		return nil, err
	}
	ids := slices.Sorted(maps.Values(latest))
	ids = slices.Compact(ids)
	ids = ids[max(0, len(ids)-maxPullRequestScans):]
	found, err := v.db.Scan.Query().Where(store.OneOf(scan.FieldID, ids)).All(ctx)
	if err != nil {
		return nil, err
	}
	covered, err := v.db.ScanCoverage.Query().Where(store.OneOf(scancoverage.FieldScanID, ids)).All(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b *ent.Scan) int { return cmp.Compare(b.ID, a.ID) })
	slices.SortFunc(covered, byAnalysis)
	scans := make([]*analysedScan, len(found))
	for i, row := range found {
		scans[i] = &analysedScan{Scan: row}
		for _, c := range covered {
			if c.ScanID == row.ID && latest[ingest.Analysis{Tool: c.Tool, Category: c.AnalysisCategory}] == row.ID {
				scans[i].analyses = append(scans[i].analyses, c)
			}
		}
	}
	return scans, nil
}

// latestAnalyses returns the id of the latest scan of each tool and category.
func (v *pullRequestView) latestAnalyses(ctx context.Context, refs []string) (map[ingest.Analysis]int64, error) {
	var rows []struct {
		Ref      string
		Tool     string
		Category string `sql:"analysis_category"`
		Max      int64
	}
	err := v.db.ScanCoverage.Query().Where(scancoverage.ProjectID(v.project.ID), store.OneOf(scancoverage.FieldRef, refs)).
		GroupBy(scancoverage.FieldRef, scancoverage.FieldTool, scancoverage.FieldAnalysisCategory).Aggregate(ent.Max(scancoverage.FieldScanID)).Scan(ctx, &rows)
	latest := make(map[ingest.Analysis]int64, len(rows))
	for _, row := range rows {
		a := ingest.Analysis{Tool: row.Tool, Category: row.Category}
		latest[a] = max(latest[a], row.Max)
	}
	return latest, err
}

// newestScan returns the newest scan of some refs; nil if there is none.
func newestScan(ctx context.Context, db *ent.Client, of *ent.Project, refs []string) (*ent.Scan, error) {
	var newest []struct{ Max *int64 }
	err := db.Scan.Query().Where(scan.ProjectID(of.ID), store.OneOf(scan.FieldRef, refs)).Aggregate(ent.Max(scan.FieldID)).Scan(ctx, &newest)
	if err != nil || len(newest) == 0 || newest[0].Max == nil {
		return nil, err
	}
	return db.Scan.Get(ctx, *newest[0].Max)
}

// add compares the findings of a scan with its base, and evaluates the policies.
func (v *pullRequestView) add(ctx context.Context, of *analysedScan) error {
	kept, err := scannerOf(of.Scan)
	if err != nil {
		return err
	}
	g := &gate{policies: v.policies, Comparison: blocking.Comparison{
		DB: v.db, Project: v.project, Scan: of.Scan, MergeBase: kept.GetMergeBase(), Renamed: map[string]bool{},
	}}
	var sameAnalysis []predicate.Finding
	for _, row := range of.analyses {
		about, err := ingest.StoredCoverage(row)
		if err != nil {
			return err
		}
		for _, path := range about.GetRenamed() {
			g.Renamed[path] = true
		}
		sameAnalysis = append(sameAnalysis, finding.And(finding.Tool(row.Tool), finding.AnalysisCategory(row.AnalysisCategory)))
	}
	// A finding without a last scan was reported by the latest one.
	g.findings = []predicate.Finding{finding.Or(sameAnalysis...), finding.LastSeenScanIDIsNil()}
	g.reported = func(f *ent.Finding, content *storev1.FindingContent) (sighting, bool) {
		return sighting{content.GetMatchBasedId(), text(f.PolicyMode) == blockPolicy}, true
	}
	if isUpload(of.Scan) {
		if g.modes, err = ruleset.PolicyModes(ctx, v.db, v.project.Name); err != nil {
			return fmt.Errorf("read the modes of rules: %w", err)
		}
	}
	before, err := g.Base(ctx)
	if err != nil {
		return fmt.Errorf("find the base of scan %d: %w", of.ID, err)
	}
	if err := v.addScan(ctx, of, kept, before); err != nil {
		return err
	}
	parts := 0
	return g.each(ctx, before, func(found []reportedFinding, facts []remediation.Facts) bool {
		v.compare(found, facts)
		parts++
		v.out.Partial = v.out.GetPartial() || parts == maxPullRequestParts && len(found) > 0
		return parts < maxPullRequestParts
	})
}

// addScan adds the scan itself, once for each of its tools and categories.
func (v *pullRequestView) addScan(ctx context.Context, of *analysedScan, kept *storev1.ScannerScan, before *blocking.Base) error {
	blocked, reason := kept.GetBlock() || !isUpload(of.Scan) && of.ExitCode == 1, kept.GetBlockReason()
	if isUpload(of.Scan) {
		answer, err := answerOf(ctx, v.db, of.Scan)
		if err != nil {
			return err
		}
		blocked, reason = answer.GetBlocked(), answer.GetBlockReason()
	}
	meta, err := metaOf(of.Scan)
	if err != nil {
		return err
	}
	for _, row := range of.analyses {
		about, err := ingest.StoredCoverage(row)
		if err != nil {
			return err
		}
		v.out.Scans = append(v.out.Scans, &scansv1.PullRequestScan{
			Id: of.ID, Tool: row.Tool, Category: row.AnalysisCategory, ToolVersion: about.GetToolVersion(), At: timestamp(of.StartedAt), Status: scanStatus(of.Scan),
			IsFullScan: of.IsFullScan, Commit: of.Commit, CiJobUrl: meta.GetCiJobUrl(), Blocked: blocked, BlockReason: reason, BaseRef: before.Ref, BaseScanId: before.ScanID,
		})
	}
	return nil
}

// compare adds the findings of a part. Findings of monitored rules never block.
func (v *pullRequestView) compare(found []reportedFinding, facts []remediation.Facts) {
	counted, positions := make([]remediation.Facts, 0, len(facts)), make([]int, 0, len(facts))
	for i, f := range found {
		if f.counts {
			counted, positions = append(counted, facts[i]), append(positions, i)
		}
	}
	blockedBy := map[int][]string{}
	for _, b := range remediation.Block(v.policies, counted).Blockers {
		v.addBlocker(b)
		for _, at := range b.Findings {
			blockedBy[positions[at]] = append(blockedBy[positions[at]], b.Name)
		}
	}
	for i, f := range found {
		switch ignored := facts[i].Status == lifecycle.Ignored; {
		case facts[i].New && ignored:
			v.out.Ignored++
		case facts[i].New:
			v.out.Added++
		case len(blockedBy[i]) == 0:
			continue
		}
		v.total++
		v.findings = append(v.findings, &scansv1.PullRequestFinding{
			Id: f.ID, Added: facts[i].New, BlockedBy: blockedBy[i], RuleName: facts[i].RuleName, IssueType: f.IssueType, Severity: f.Severity,
			Status: facts[i].Status, Path: text(f.FilePath), Line: f.content.GetLocation().GetLine(), Tool: f.Tool,
			Monitored: f.monitored,
		})
	}
	if len(v.findings) > 2*maxPullRequestFindings {
		v.cut()
	}
}

func (v *pullRequestView) addBlocker(b remediation.Blocker) {
	at := slices.IndexFunc(v.out.Blockers, func(known *scansv1.PullRequestBlocker) bool {
		return known.GetPolicySlug() == b.Slug && known.GetName() == b.Name
	})
	if at < 0 {
		at = len(v.out.Blockers)
		v.out.Blockers = append(v.out.Blockers, &scansv1.PullRequestBlocker{PolicySlug: b.Slug, Name: b.Name, Reason: b.Reason})
	}
	v.out.Blockers[at].Findings += int32(len(b.Findings))
}

// cut keeps the first findings: blocking ones, then those that nobody ignored, then the highest severity.
func (v *pullRequestView) cut() {
	ignored := func(f *scansv1.PullRequestFinding) int {
		if f.GetStatus() == lifecycle.Ignored {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(v.findings, func(a, b *scansv1.PullRequestFinding) int {
		return cmp.Or(
			cmp.Compare(min(len(b.GetBlockedBy()), 1), min(len(a.GetBlockedBy()), 1)), cmp.Compare(ignored(a), ignored(b)),
			cmp.Compare(slices.Index(bySeverity, a.GetSeverity()), slices.Index(bySeverity, b.GetSeverity())), cmp.Compare(a.GetId(), b.GetId()),
		)
	})
	v.findings = v.findings[:min(len(v.findings), maxPullRequestFindings)]
}

func (v *pullRequestView) finish() *scansv1.GetPullRequestResponse {
	v.cut()
	v.out.Findings, v.out.FindingsOmitted = v.findings, int32(v.total-len(v.findings))
	v.out.Blocked = len(v.out.Blockers) > 0
	return v.out
}
