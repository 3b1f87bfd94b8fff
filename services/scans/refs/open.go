package refs

import (
	"cmp"
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

// openRef is a ref with open findings that is neither the primary nor the default branch of its project.
type openRef struct {
	project *ent.Project
	ref     string
	// lastScan is the newest scan of the ref, and scannedAt when it began.
	lastScan, scannedAt int64
}

func (r openRef) pullRequest() int64 { return gitref.PullRequest(r.ref) }

// openRefs returns the refs of consecutive projects that may lose their findings, in a fixed order.
func (t *Tidier) openRefs(ctx context.Context, projects []*ent.Project) ([]openRef, error) {
	var rows []struct {
		ProjectID int64  `sql:"project_id"`
		Ref       string `sql:"ref"`
	}
	err := t.store.Reader.Finding.Query().
		Where(finding.ProjectIDGTE(projects[0].ID), finding.ProjectIDLTE(projects[len(projects)-1].ID), finding.StateIn(lifecycle.Unresolved, lifecycle.Muted)).
		GroupBy(finding.FieldProjectID, finding.FieldRef).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	named := map[int64][]string{}
	for _, row := range rows {
		named[row.ProjectID] = append(named[row.ProjectID], row.Ref)
	}
	var open []openRef
	for _, of := range projects {
		refs := slices.DeleteFunc(named[of.ID], func(ref string) bool { return ref == of.PrimaryBranch || ref == of.DefaultBranch })
		if len(refs) == 0 {
			continue
		}
		found, err := t.lastScans(ctx, of, refs)
		if err != nil {
			return nil, err
		}
		open = append(open, found...)
	}
	return open, nil
}

// lastScans finds the newest scan of each ref of a project. Scans are numbered in the order in which they begin.
func (t *Tidier) lastScans(ctx context.Context, of *ent.Project, refs []string) (open []openRef, err error) {
	var last []struct {
		Ref string `sql:"ref"`
		Max int64  `sql:"max"`
	}
	err = t.store.Reader.Scan.Query().Where(scan.ProjectID(of.ID), store.OneOf(scan.FieldRef, refs)).
		GroupBy(scan.FieldRef).Aggregate(ent.Max(scan.FieldID)).Scan(ctx, &last)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(last))
	for i, row := range last {
		ids[i] = row.Max
	}
	rows, err := t.store.Reader.Scan.Query().Where(store.WithIDs[predicate.Scan](ids)).
		Select(scan.FieldID, scan.FieldRef, scan.FieldStartedAt).All(ctx)
	for _, row := range rows {
		open = append(open, openRef{of, row.Ref, row.ID, row.StartedAt})
	}
	slices.SortFunc(open, func(a, b openRef) int { return cmp.Compare(a.ref, b.ref) })
	return open, err
}
