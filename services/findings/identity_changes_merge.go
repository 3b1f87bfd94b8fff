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

// MergeFindings merges two identities on all refs of the project.
func (s *FindingIdentity) MergeFindings(ctx context.Context, r *findingsv1.MergeFindingsRequest) (*findingsv1.MergeFindingsResponse, error) {
	out := &findingsv1.MergeFindingsResponse{}
	err := s.write(ctx, r.GetValidateOnly(), func(ctx context.Context, tx *ent.Tx) error {
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
		from, err := e.loadByID(ctx, r.GetFindingId())
		if err != nil {
			return err
		}
		into, err := e.loadByID(ctx, r.GetInto())
		if err != nil {
			return err
		}
		if err := validateMerge(from, into); err != nil {
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
		if r.GetValidateOnly() {
			out.ChangedCount = int32(len(e.touched()))
			return nil
		}
		out.Change = convertChange(change)
		return e.record(ctx, "merged")
	})
	return out, err
}

// validateMerge refuses two findings that cannot have the same identity.
func validateMerge(from, into *editedFinding) error {
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

// merge moves all findings of one identity to another identity.
func (e *identityEdit) merge(ctx context.Context, from, into *editedFinding) error {
	staying, err := e.loadIdentity(ctx, into, into.Fingerprint)
	if err != nil {
		return err
	}
	all, err := e.loadIdentity(ctx, from, from.Fingerprint)
	if err != nil {
		return err
	}
	leaving, byRef := []*editedFinding{}, map[string]*editedFinding{}
	for _, row := range all {
		if row.AnalysisCategory == from.AnalysisCategory && row.Tool == from.Tool {
			leaving = append(leaving, row)
		}
	}
	for _, row := range staying {
		if row.AnalysisCategory == into.AnalysisCategory && row.Tool == into.Tool {
			byRef[row.Ref] = row
		}
	}
	if err := refuseBothSeen(leaving, byRef); err != nil {
		return err
	}
	decided := latestDecision(staying)
	if decided == nil {
		if decided = latestDecision(leaving); decided != nil {
			for _, row := range staying {
				decided.apply(row, fmt.Sprintf("the decision about finding %d", from.ID))
			}
		}
	}
	for _, row := range leaving {
		sibling := byRef[row.Ref]
		if sibling == nil {
			row.reason = fmt.Sprintf("the same as finding %d", into.ID)
			row.Fingerprint = into.Fingerprint
			if decided != nil {
				decided.apply(row, row.reason)
			}
			continue
		}
		if err := row.mergeInto(sibling, e.suppliesScanData(row, sibling), decided == nil); err != nil {
			return err
		}
	}
	return nil
}

// refuseBothSeen refuses to merge two findings of a ref if its latest scan reported both. The next scan would have two
// results for one finding, and would create the second finding again.
func refuseBothSeen(rows []*editedFinding, byRef map[string]*editedFinding) error {
	for _, row := range rows {
		sibling := byRef[row.Ref]
		if sibling == nil || !lifecycle.Seen(row.State) || !lifecycle.Seen(sibling.State) {
			continue
		}
		return apierr.FailedPrecondition("findings %d (%s) and %d (%s) cannot be merged: the latest scan of %s reported both",
			row.ID, row.location(), sibling.ID, sibling.location(), row.Ref)
	}
	return nil
}

// location returns the file and the line as a text.
func (f *editedFinding) location() string {
	content, err := blob.Decode(f.Content)
	if err != nil || content.GetLocation().GetFilePath() == "" {
		return "no file"
	}
	return fmt.Sprintf("%s:%d", content.GetLocation().GetFilePath(), content.GetLocation().GetLine())
}

// mergeInto removes a finding in favour of its sibling on the same ref. With supplies, the sibling takes over its scan
// data. With provisional, the sibling takes over a decision of automation, if it has no decision itself.
func (f *editedFinding) mergeInto(sibling *editedFinding, supplies, provisional bool) error {
	if supplies {
		if err := swapScanData(sibling, f); err != nil {
			return err
		}
	}
	if provisional && sibling.TriageState == lifecycle.Untriaged && f.TriageState != lifecycle.Untriaged {
		sibling.TriageState, sibling.TriageReason, sibling.TriagedAt = f.TriageState, f.TriageReason, f.TriagedAt
	}
	if sibling.TriageComment == nil {
		sibling.TriageComment = f.TriageComment
	}
	id := sibling.ID
	f.MergedInto, f.State = &id, lifecycle.Removed // it keeps its identity, so that no other finding gets it
	f.reason = fmt.Sprintf("the same as finding %d", id)
	sibling.reason = strings.TrimPrefix(sibling.reason+fmt.Sprintf("; finding %d was the same", f.ID), "; ")
	return nil
}

// suppliesScanData reports whether from supplies the scan data (evidence, content, state) of a merge: its state is
// closer to the code. When a split is undone, from is the new finding and supplies it, unless a scan reported the old
// finding again.
func (e *identityEdit) suppliesScanData(from, into *editedFinding) bool {
	if e.undoesSplit {
		return !lifecycle.Seen(into.State)
	}
	return presence(from.State) > presence(into.State)
}

// presence orders states: seen by the latest scan, fixed, removed.
func presence(state string) int {
	switch {
	case lifecycle.Seen(state):
		return 2
	case state == lifecycle.Fixed:
		return 1
	}
	return 0
}

// decision is the triage of an identity.
type decision struct {
	state           string
	reason, comment *string
	at              *int64
}

// latestDecision returns the latest decision that applies to all refs, or nil.
func latestDecision(rows []*editedFinding) *decision {
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
	return &decision{last.TriageState, last.TriageReason, last.TriageComment, last.TriagedAt}
}

// apply copies the decision to a finding. The finding keeps its comment if the decision has none.
func (d *decision) apply(row *editedFinding, reason string) {
	row.TriageState, row.TriageReason, row.TriagedAt, row.reason = d.state, d.reason, d.at, reason
	if d.comment != nil {
		row.TriageComment = d.comment
	}
}
