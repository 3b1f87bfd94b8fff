package scans

import (
	"cmp"
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/freshness"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/scans/watch/judge"
)

// maxVersionsShown is how many tools and versions a summary lists.
const maxVersionsShown = 1000

// GetFreshnessSummary counts analyses by state, and by tool and version.
func (s *Freshness) GetFreshnessSummary(ctx context.Context, r *scansv1.GetFreshnessSummaryRequest) (*scansv1.GetFreshnessSummaryResponse, error) {
	query := s.store.Reader.Freshness.Query().Where(freshness.StateGT(int32(judge.Unwatched)), inUse)
	if r.GetProject() != "" {
		of, err := findProject(ctx, s.store.Reader, r.GetProject())
		if err != nil {
			return nil, err
		}
		query.Where(freshness.ProjectID(of.ID))
	}
	var states []struct{ State, Count int32 }
	if err := query.Clone().GroupBy(freshness.FieldState).Aggregate(ent.Count()).Scan(ctx, &states); err != nil {
		return nil, err
	}
	slices.SortFunc(states, func(a, b struct{ State, Count int32 }) int { return cmp.Compare(b.State, a.State) })
	out := &scansv1.GetFreshnessSummaryResponse{}
	for _, one := range states {
		out.States = append(out.States, &scansv1.FreshnessStateCount{State: judge.State(one.State).String(), Analyses: one.Count})
	}
	var versions []struct {
		Tool    string
		Version string `sql:"scanner_version"`
		Count   int32
	}
	err := query.GroupBy(freshness.FieldTool, freshness.FieldScannerVersion).Aggregate(ent.Count()).Scan(ctx, &versions)
	for _, one := range versions {
		out.Versions = append(out.Versions, &scansv1.ScannerVersionCount{Tool: one.Tool, Version: one.Version, Analyses: one.Count})
	}
	slices.SortFunc(out.Versions, func(a, b *scansv1.ScannerVersionCount) int {
		return cmp.Or(cmp.Compare(a.GetTool(), b.GetTool()), cmp.Compare(b.GetAnalyses(), a.GetAnalyses()), cmp.Compare(a.GetVersion(), b.GetVersion()))
	})
	out.Versions = out.Versions[:min(len(out.Versions), maxVersionsShown)]
	return out, err
}
