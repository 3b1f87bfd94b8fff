package blocking

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// maxSameCommit bounds the scans of one commit and ref that are read.
const maxSameCommit = 1000

// Comparison compares findings of a scan with its base.
type Comparison struct {
	DB      *ent.Client
	Project *ent.Project
	Scan    *ent.Scan
	// MergeBase is the commit that a diff scan compares with; empty if it is unknown.
	MergeBase string
	// Renamed has the former paths of files that a diff scan calls renamed.
	Renamed map[string]bool
}

// Primary is the primary branch of a project; may be empty.
func Primary(of *ent.Project) string { return cmp.Or(of.PrimaryBranch, of.DefaultBranch) }

// Base returns, in this order: the state of the merge base, if a full scan of that commit is known; the primary
// branch as it is now; for a scan of the primary branch, its state before this commit.
func (c *Comparison) Base(ctx context.Context) (*Base, error) {
	of, err := c.scanOfMergeBase(ctx)
	if err != nil {
		return nil, err
	}
	if of != nil {
		return &Base{Ref: of.Ref, ScanID: of.ID, At: *of.CompletedAt}, nil
	}
	primary := Primary(c.Project)
	if primary != c.Scan.Ref {
		return &Base{Ref: primary, At: math.MaxInt64}, nil
	}
	b := &Base{Ref: primary, At: c.Scan.StartedAt - 1, SameCommit: map[int64]bool{c.Scan.ID: true}}
	if c.Scan.Commit == "" {
		return b, nil
	}
	same, err := c.DB.Scan.Query().
		Where(scan.ProjectID(c.Project.ID), scan.Commit(c.Scan.Commit), scan.Ref(c.Scan.Ref)).
		Order(ent.Asc(scan.FieldID)).Limit(maxSameCommit).Select(scan.FieldID, scan.FieldStartedAt).All(ctx)
	for _, row := range same {
		b.SameCommit[row.ID], b.At = true, min(b.At, row.StartedAt-1)
	}
	return b, err
}

// scanOfMergeBase returns the scan that says what the merge base has; nil if there is none: a full and successful
// scan of that commit on another ref, by the same protocol, of all products of this scan. The primary branch comes
// first.
func (c *Comparison) scanOfMergeBase(ctx context.Context) (*ent.Scan, error) {
	if c.MergeBase == "" || c.MergeBase == c.Scan.Commit {
		return nil, nil
	}
	found, err := c.DB.Scan.Query().
		Where(scan.ProjectID(c.Project.ID), scan.Commit(c.MergeBase), scan.IsFullScan(true), scan.CompletedAtNotNil(), scan.ScannerNotNil(),
			scan.Status(scansv1.ScanStatus_SCAN_STATUS_COMPLETED.String()), scan.ExitCodeIn(0, 1), scan.RefNEQ(c.Scan.Ref)).
		Order(ent.Desc(scan.FieldID)).Limit(maxSameCommit).Select(scan.FieldID, scan.FieldRef, scan.FieldProducts, scan.FieldCompletedAt).All(ctx)
	return ScanOfMergeBase(found, c.Scan.Products, Primary(c.Project)), err
}

// Known returns the findings that were there in the base, by identity.
func (c *Comparison) Known(ctx context.Context, b *Base, found []*ent.Finding) (map[int64]bool, error) {
	known := make(map[int64]bool, len(found))
	if b.Ref == "" {
		return known, nil
	}
	if b.Ref == c.Scan.Ref {
		for _, f := range found {
			known[f.ID] = !b.SameCommit[f.FirstSeenScanID] && had(b, f)
		}
		return known, nil
	}
	there, err := c.inBase(ctx, b, store.OneOf(finding.FieldFingerprint, fingerprintsOf(found)))
	if err != nil {
		return nil, err
	}
	if !c.Scan.IsFullScan {
		return c.knownOccurrences(ctx, b, found, there)
	}
	had := make(map[string]bool, len(there))
	for _, f := range there {
		had[f.Fingerprint] = true
	}
	for _, f := range found {
		known[f.ID] = had[f.Fingerprint]
	}
	return known, nil
}

// inBase returns findings that were there in the base.
func (c *Comparison) inBase(ctx context.Context, b *Base, which predicate.Finding) ([]*ent.Finding, error) {
	rows, err := c.DB.Finding.Query().Where(finding.ProjectID(c.Project.ID), finding.Ref(b.Ref), which).
		Select(finding.FieldFingerprint, finding.FieldState, finding.FieldRelevantSince, finding.FieldStateUpdatedAt, finding.FieldFilePath, finding.FieldContent).
		All(ctx)
	return slices.DeleteFunc(rows, func(f *ent.Finding) bool { return !had(b, f) }), err
}

// knownOccurrences is Known for a diff scan: see Located.
func (c *Comparison) knownOccurrences(ctx context.Context, b *Base, found, there []*ent.Finding) (map[int64]bool, error) {
	equal, err := c.inBase(ctx, b, store.OneOf(finding.FieldMatchKey, matchKeysOf(found)))
	if err != nil {
		return nil, err
	}
	ids, byIdentity := map[Occurrence]bool{}, make(map[string][]Located, len(there))
	for _, f := range slices.Concat(equal, there) {
		o, err := located(f)
		if err != nil {
			return nil, err
		}
		ids[o.Occurrence], byIdentity[f.Fingerprint] = true, append(byIdentity[f.Fingerprint], o)
	}
	known := make(map[int64]bool, len(found))
	for _, f := range found {
		o, err := located(f)
		if err != nil {
			return nil, err
		}
		known[f.ID] = o.KnownTo(ids, byIdentity[f.Fingerprint], c.Renamed)
	}
	return known, nil
}

// Covered returns the findings that a person's decision about the same code covers, on any ref (see Code).
func (c *Comparison) Covered(ctx context.Context, found []*ent.Finding) (map[int64]bool, error) {
	rows, err := c.DB.Finding.Query().
		Where(finding.ProjectID(c.Project.ID), store.OneOf(finding.FieldFingerprint, fingerprintsOf(found)),
			finding.TriageState(lifecycle.Ignored), finding.TriageReasonNotNil(), finding.MergedIntoIsNil()).
		Select(finding.FieldFingerprint, finding.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	ignored := make(map[string][]Code, len(rows))
	for _, f := range rows {
		content, err := blob.Decode(f.Content)
		if err != nil {
			return nil, err
		}
		ignored[f.Fingerprint] = append(ignored[f.Fingerprint], CodeOf(content))
	}
	covered := map[int64]bool{}
	for _, f := range found {
		if len(ignored[f.Fingerprint]) == 0 {
			continue
		}
		content, err := blob.Decode(f.Content)
		if err != nil {
			return nil, err
		}
		covered[f.ID] = CodeOf(content).Ignored(ignored[f.Fingerprint], c.Renamed)
	}
	return covered, nil
}

func located(f *ent.Finding) (Located, error) {
	content, err := blob.Decode(f.Content)
	if err != nil {
		return Located{}, err
	}
	o := Located{Occurrence: CodeOf(content).Occurrence()}
	if f.FilePath != nil {
		o.Path = *f.FilePath
	}
	return o, nil
}

func fingerprintsOf(found []*ent.Finding) []string {
	list := make([]string, len(found))
	for i, f := range found {
		list[i] = f.Fingerprint
	}
	return list
}

func matchKeysOf(found []*ent.Finding) (keys []int64) {
	for _, f := range found {
		if f.MatchKey != nil {
			keys = append(keys, *f.MatchKey)
		}
	}
	return keys
}

// had reports whether a finding was present at the time of the base.
func had(b *Base, f *ent.Finding) bool { return b.Had(f.State, f.RelevantSince, f.StateUpdatedAt) }
