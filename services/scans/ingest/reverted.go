package ingest

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scancoverage"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/projects/gitref"
)

// diffsBack is how many other diff scans of a pull request are searched for one that looked at a file.
const diffsBack = 20

// RevertedReason is followed by the file.
const RevertedReason = "its file is no longer in the pull request: "

var fileReverted = decision{state: lifecycle.Removed, prefix: RevertedReason, about: true}

// pullRequestDiffs are the other diff scans of a pull request, newest first. They show which files are no longer in its
// diff: a diff scan looks at all changed files, so a file is reverted if a scan of an earlier commit looked at it and
// this scan does not.
//
// That is not true for scans of parts (one job scans a/, another job b/). They are recognised by their commit:
// another scan of that commit did not look at the file. Then only the source-code host knows (see package refs).
type pullRequestDiffs struct {
	scan  *ent.Scan
	diffs []otherDiff
	// cut says that there are older diff scans, which were not read.
	cut bool
}

// otherDiff is another diff scan of the same analysis and ref.
type otherDiff struct {
	scanID         int64
	commit         string
	files, skipped map[string]bool
}

func (o otherDiff) lookedAt(path string) bool { return o.files[path] || o.skipped[path] }

// lack reports whether a file, at which this scan did not look, was in the diff of an earlier commit.
func (p *pullRequestDiffs) lack(path string) bool {
	n := slices.IndexFunc(p.diffs, func(o otherDiff) bool { return o.lookedAt(path) })
	if n < 0 || p.cut && n == len(p.diffs)-1 {
		return false
	}
	last := p.diffs[n]
	return last.scanID < p.scan.ID && last.commit != p.scan.Commit &&
		!slices.ContainsFunc(p.diffs, func(o otherDiff) bool { return o.commit == last.commit && !o.lookedAt(path) })
}

// decideReverted decides about a finding that decide keeps. Such a decision does not rest on the silence of the report:
// the scanner would have looked at the file.
func (d *decider) decideReverted(p *pullRequestDiffs, product, rule, path string) decision {
	if path == "" || d.files[path] || !d.ran(rule) || d.blind(product, rule, path) || !p.lack(path) {
		return keepState
	}
	return fileReverted
}

// pullRequestDiffs reads the other diff scans of the pull request. There are none if this scan is no diff scan of a
// pull request, or does not compare with the target branch.
func (s *session) pullRequestDiffs(ctx context.Context, g *group) (*pullRequestDiffs, error) {
	out := &pullRequestDiffs{scan: s.scan}
	base, compares, err := s.pullRequestBase()
	if err != nil || !compares || !g.coverage.GetFilesKnown() {
		return out, err
	}
	rows, err := s.tx.ScanCoverage.Query().
		Where(s.ofAnalysis(g.Analysis, s.scan.Ref)...).Where(scancoverage.IsFullScan(false), scancoverage.ScanIDNEQ(s.scan.ID)).
		Order(ent.Desc(scancoverage.FieldScanID)).Limit(diffsBack).All(ctx)
	if err != nil || len(rows) == 0 {
		return out, err
	}
	commits, err := s.commits(ctx, rows)
	if err != nil {
		return out, err
	}
	for _, row := range rows {
		if commits[row.ScanID] == base {
			return &pullRequestDiffs{scan: s.scan}, nil // it compares with an earlier commit of the pull request
		}
		content, err := StoredCoverage(row)
		if err != nil {
			return out, err
		}
		if content.GetFailure() == "" && coversAny(splitList(content.GetProduct()), g.coverage.Products) {
			out.diffs = append(out.diffs, otherDiff{row.ScanID, commits[row.ScanID], set(content.GetFiles()), set(content.GetSkipped())})
		}
	}
	out.cut = len(rows) == diffsBack
	return out, nil
}

// pullRequestBase returns the base of a diff scan of a pull request, and whether this scan is one.
func (s *session) pullRequestBase() (base string, compares bool, err error) {
	if s.scan.IsFullScan || s.scan.Commit == "" || s.scan.Scanner == nil || s.comparesWithItself() {
		return "", false, nil
	}
	var meta scansv1.ScanMeta
	if err := proto.Unmarshal(s.scan.Meta, &meta); err != nil {
		return "", false, fmt.Errorf("facts of scan %d: %w", s.scan.ID, err)
	}
	base, err = s.mergeBase()
	return base, gitref.PullRequest(s.scan.Ref) != 0 || meta.GetPullRequestId() != "", err
}

// mergeBase returns the commit that a diff scan compares with; empty if it is unknown.
func (s *session) mergeBase() (string, error) {
	if s.scan.Scanner == nil {
		return "", nil
	}
	var kept storev1.ScannerScan
	if err := proto.Unmarshal(*s.scan.Scanner, &kept); err != nil {
		return "", fmt.Errorf("scanner of scan %d: %w", s.scan.ID, err)
	}
	return kept.GetMergeBase(), nil
}
