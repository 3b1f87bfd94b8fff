package scans

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scancoverage"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/scanstats"
)

const (
	// maxNamesShown is how many names of rules and files a coverage shows.
	maxNamesShown = 200
	// maxAnalysesShown is how many analyses of one scan are shown. A report has at most 256 runs.
	maxAnalysesShown = 256
)

// ScanDetails is the service group "scan details".
type ScanDetails struct {
	scansv1.UnimplementedScanDetailsServiceServer
	store *store.Store
}

// NewScanDetails serves scans from the store.
func NewScanDetails(st *store.Store) *ScanDetails { return &ScanDetails{store: st} }

// GetScanDetails returns one scan with its coverage and the answer to its upload.
func (s *ScanDetails) GetScanDetails(ctx context.Context, r *scansv1.GetScanDetailsRequest) (*scansv1.GetScanDetailsResponse, error) {
	row, err := findScan(ctx, s.store.Reader, r.GetScanId())
	if err != nil {
		return nil, err
	}
	names, err := projectNames(ctx, s.store.Reader, []int64{row.ProjectID})
	if err != nil {
		return nil, err
	}
	meta, err := metaOf(row)
	if err != nil {
		return nil, err
	}
	opened, err := scannerOf(row)
	if err != nil {
		return nil, err
	}
	out := &scansv1.GetScanDetailsResponse{
		Id: row.ID, ProjectId: row.ProjectID, Project: names[row.ProjectID], Ref: row.Ref, Commit: row.Commit, Status: scanStatus(row),
		IsFullScan: row.IsFullScan, IsUpload: isUpload(row), PullRequest: pullRequestOf(row), EnabledProducts: productWords(row.Products),
		StartedAt: timestamp(row.StartedAt), CompletedAt: store.Timestamp(row.CompletedAt), TotalTime: seconds(row), ExitCode: row.ExitCode,
		Meta: meta, Effects: effectsOf(row), Blocked: opened.GetBlock(), BlockReason: opened.GetBlockReason(), Errors: opened.GetErrors(),
	}
	if out.Answer, err = answerOf(ctx, s.store.Reader, row); err != nil {
		return nil, err
	}
	if out.IsUpload {
		out.Blocked, out.BlockReason = out.GetAnswer().GetBlocked(), out.GetAnswer().GetBlockReason()
	}
	out.Analyses, err = analysesOf(ctx, s.store.Reader, row)
	return out, err
}

// effectsOf reads the numbers in the statistics of a scan.
func effectsOf(row *ent.Scan) *scansv1.ScanEffects {
	number := func(name string) int64 {
		n, _ := row.Stats[name].(float64)
		return int64(n)
	}
	return &scansv1.ScanEffects{
		Created: int32(number("created")), Updated: int32(number("updated")), Unchanged: int32(number("unchanged")),
		Reopened: int32(number("reopened")), Fixed: int32(number("fixed")), Removed: int32(number("removed")),
		Skipped: int32(number("skipped")), HeldCloses: int32(number(heldStats)), NewerScanId: number(scanstats.Older),
	}
}

// analysesOf returns the coverages of a scan by tool and category.
func analysesOf(ctx context.Context, db *ent.Client, row *ent.Scan) (list []*scansv1.ScanAnalysis, err error) {
	rows, err := db.ScanCoverage.Query().Where(scancoverage.ScanID(row.ID)).Limit(maxAnalysesShown).All(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, byAnalysis)
	for _, covered := range rows {
		about, err := ingest.StoredCoverage(covered)
		if err != nil {
			return nil, err
		}
		list = append(list, convertCoverage(covered, about))
	}
	return list, nil
}

func byAnalysis(a, b *ent.ScanCoverage) int {
	return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.AnalysisCategory, b.AnalysisCategory))
}

func convertCoverage(row *ent.ScanCoverage, about *storev1.ScanCoverage) *scansv1.ScanAnalysis {
	out := &scansv1.ScanAnalysis{
		Tool: row.Tool, Category: row.AnalysisCategory, ToolVersion: about.GetToolVersion(), Product: about.GetProduct(),
		Failure: about.GetFailure(), FailedRules: shownNames(about.GetFailedRules()), SkippedFiles: shownNames(about.GetSkipped()),
		UnsearchedFiles: shownNames(slices.Sorted(maps.Keys(about.GetUnsearched()))), UnresolvedFiles: shownNames(about.GetUnresolved()),
	}
	if about.GetRulesKnown() {
		out.Rules = new(int64(len(about.GetRules())))
	}
	if about.GetFilesKnown() {
		out.Files = new(int64(len(about.GetFiles())))
	}
	for _, language := range about.GetPartlyParsed() {
		out.PartlyParsed = append(out.PartlyParsed, &scansv1.PartlyParsedLanguage{Language: language.GetLanguage(), Files: language.GetFiles()})
	}
	return out
}

func shownNames(names []string) *scansv1.ScanNames {
	return &scansv1.ScanNames{Total: int32(len(names)), Names: names[:min(len(names), maxNamesShown)]}
}

// isUpload reports whether a scan is an uploaded report. Scans by the scanner protocol have a unique id.
func isUpload(row *ent.Scan) bool { return row.UniqueID == nil }
