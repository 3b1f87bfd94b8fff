package findings

import (
	"context"
	"fmt"
	"strings"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apierr"
)

// MergeFindings makes one identity of two, on all refs of the project.
func (s *FindingIdentity) MergeFindings(ctx context.Context, r *findingsv1.MergeFindingsRequest) (*findingsv1.MergeFindingsResponse, error) {
	out := &findingsv1.MergeFindingsResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		projectID, err := projectOf(ctx, tx, r.GetFindingId())
		if err != nil {
			return err
		}
		other, err := projectOf(ctx, tx, r.GetInto())
		if err != nil {
			return err
		}
		if projectID != other {
			return apierr.InvalidArgument("into", "into must be a finding of the same project: finding %d is in project %d, finding %d in project %d",
				r.GetFindingId(), projectID, r.GetInto(), other)
		}
		e, err := s.begin(ctx, tx, projectID, r.GetNote())
		if err != nil {
			return err
		}
		from, err := e.one(ctx, r.GetFindingId())
		if err != nil {
			return err
		}
		into, err := e.one(ctx, r.GetInto())
		if err != nil {
			return err
		}
		if err := mayMerge(from, into); err != nil {
			return err
		}
		if err := e.merge(ctx, from, into); err != nil {
			return err
		}
		e.setStatuses()
		change, err := e.finish(ctx, changeMerge, into.ID, from.ID, nil)
		if err != nil {
			return err
		}
		if out.Findings, err = describeFindings(into.Finding, from.Finding); err != nil {
			return err
		}
		out.Change = convertChange(change)
		return e.record(ctx, "merged")
	})
	return out, err
}

// mayMerge refuses two findings that cannot be the same.
func mayMerge(from, into *editedFinding) error {
	if from.ID == into.ID {
		return apierr.InvalidArgument("into", "into must be another finding, got %d for both", into.ID)
	}
	for _, row := range []*editedFinding{from, into} {
		if row.MergedInto != nil {
			return apierr.FailedPrecondition("finding %d was merged into finding %d already: use that one", row.ID, *row.MergedInto)
		}
	}
	for _, part := range []struct{ name, from, into string }{
		{"tool", from.Tool, into.Tool}, {"analysis category", from.AnalysisCategory, into.AnalysisCategory}, {"issue type", from.IssueType, into.IssueType},
	} {
		if part.from != part.into {
			return apierr.InvalidArgument("into", "into must be a finding of the same %s: finding %d has %q, finding %d has %q",
				part.name, from.ID, part.from, into.ID, part.into)
		}
	}
	if from.Fingerprint == into.Fingerprint {
		return apierr.FailedPrecondition("findings %d and %d are the same already, on %s and %s", from.ID, into.ID, from.Ref, into.Ref)
	}
	return nil
}

// merge gives all findings of one identity the name of another one.
func (e *identityEdit) merge(ctx context.Context, from, into *editedFinding) error {
	stay, err := e.family(ctx, into, into.Fingerprint)
	if err != nil {
		return err
	}
	all, err := e.family(ctx, from, from.Fingerprint)
	if err != nil {
		return err
	}
	leave, byRef := []*editedFinding{}, map[string]*editedFinding{}
	for _, row := range all {
		if row.AnalysisCategory == from.AnalysisCategory && row.Tool == from.Tool {
			leave = append(leave, row)
		}
	}
	for _, row := range stay {
		if row.AnalysisCategory == into.AnalysisCategory && row.Tool == into.Tool {
			byRef[row.Ref] = row
		}
	}
	if err := mayMeet(leave, byRef); err != nil {
		return err
	}
	decided := decisionOn(stay)
	if decided == nil {
		if decided = decisionOn(leave); decided != nil {
			for _, row := range stay {
				decided.apply(row, fmt.Sprintf("the decision about finding %d", from.ID))
			}
		}
	}
	for _, row := range leave {
		twin := byRef[row.Ref]
		if twin == nil {
			row.reason = fmt.Sprintf("the same as finding %d", into.ID)
			row.Fingerprint = into.Fingerprint
			if decided != nil {
				decided.apply(row, row.reason)
			}
			continue
		}
		if err := row.dieInto(twin, e.gives(row, twin), decided == nil); err != nil {
			return err
		}
	}
	return nil
}

// mayMeet refuses to make one of two findings that are both in the code of a ref: the next scan would find two results
// for one finding, and make the other one anew.
func mayMeet(rows []*editedFinding, byRef map[string]*editedFinding) error {
	for _, row := range rows {
		twin := byRef[row.Ref]
		if twin == nil || !lifecycle.Seen(row.State) || !lifecycle.Seen(twin.State) {
			continue
		}
		return apierr.FailedPrecondition("findings %d (%s) and %d (%s) are both in the code of %s: only one of two findings that are the same may be "+
			"seen by the latest scan of a ref", row.ID, row.place(), twin.ID, twin.place(), row.Ref)
	}
	return nil
}

// place is the file and line in words.
func (f *editedFinding) place() string {
	content, err := blob.Decode(f.Content)
	if err != nil || content.GetLocation().GetFilePath() == "" {
		return "no file"
	}
	return fmt.Sprintf("%s:%d", content.GetLocation().GetFilePath(), content.GetLocation().GetLine())
}

// dieInto removes a finding in favour of another one on its ref. gives says that what scans say about it is true of the
// other one; provisional, that automation's decision about it goes along, where there is none about the other.
func (f *editedFinding) dieInto(twin *editedFinding, gives, provisional bool) error {
	if gives {
		if err := swapSight(twin, f); err != nil {
			return err
		}
	}
	if provisional && twin.TriageState == lifecycle.Untriaged && f.TriageState != lifecycle.Untriaged {
		twin.TriageState, twin.TriageReason, twin.TriagedAt = f.TriageState, f.TriageReason, f.TriagedAt
	}
	if twin.TriageComment == nil {
		twin.TriageComment = f.TriageComment
	}
	id := twin.ID
	f.MergedInto, f.State = &id, lifecycle.Removed // it keeps its name, so that nothing else gets it
	f.reason = fmt.Sprintf("the same as finding %d", id)
	twin.reason = strings.TrimPrefix(twin.reason+fmt.Sprintf("; finding %d was the same", f.ID), "; ")
	return nil
}

// gives says which of two findings of a ref is nearer to the code, and so gives evidence, content and state. When a
// split is undone it is the new one, unless a scan has found the old one again.
func (e *identityEdit) gives(from, into *editedFinding) bool {
	if e.undoesSplit {
		return !lifecycle.Seen(into.State)
	}
	return presence(from.State) > presence(into.State)
}

// presence orders states by how much of the finding there is.
func presence(state string) int {
	switch {
	case lifecycle.Seen(state):
		return 2
	case state == lifecycle.Fixed:
		return 1
	}
	return 0
}

// decisionAbout is what was decided about an identity.
type decisionAbout struct {
	state           string
	reason, comment *string
	at              *int64
}

// decisionOn is the latest decision that all refs share; nil when there is none.
func decisionOn(rows []*editedFinding) *decisionAbout {
	var last *editedFinding
	for _, row := range rows {
		if row.TriageState == lifecycle.Untriaged || !lifecycle.Spreads(row.TriageState) {
			continue
		}
		if last == nil || row.TriagedAt != nil && (last.TriagedAt == nil || *last.TriagedAt <= *row.TriagedAt) {
			last = row
		}
	}
	if last == nil {
		return nil
	}
	return &decisionAbout{last.TriageState, last.TriageReason, last.TriageComment, last.TriagedAt}
}

// apply decides about a finding as about the identity. A note of its own stays where the decision has none.
func (d *decisionAbout) apply(row *editedFinding, reason string) {
	row.TriageState, row.TriageReason, row.TriagedAt, row.reason = d.state, d.reason, d.at, reason
	if d.comment != nil {
		row.TriageComment = d.comment
	}
}
