package issue

import (
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/findingevent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// Parts are the optional parts of the issues of a list.
type Parts struct {
	Remediation, ActivityHistory, IsArchived, FirstDetectedAt bool
}

// Summaries converts whole rows to the entries of a list, in their order. It sends a fixed number of queries for any
// number of rows.
func Summaries(ctx context.Context, db *ent.Client, rows []*ent.Finding, parts Parts) ([]*findingsv1.IssueSummary, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	a, err := read(ctx, db, rows)
	if err != nil {
		return nil, err
	}
	decisions, err := a.countDecisions(ctx, db)
	if err != nil {
		return nil, err
	}
	if parts.ActivityHistory {
		if err := a.readHistory(ctx, db, listedHistory); err != nil {
			return nil, err
		}
	}
	list := make([]*findingsv1.IssueSummary, len(rows))
	for i, row := range rows {
		if list[i], err = a.summary(row, parts); err != nil {
			return nil, err
		}
		list[i].TriageCount = decisions[identityOf(row)]
	}
	return list, nil
}

func (a *relatedRows) summary(row *ent.Finding, parts Parts) (*findingsv1.IssueSummary, error) {
	shown, err := a.issue(row)
	if err != nil {
		return nil, err
	}
	if !parts.Remediation {
		shown.Remediation = nil
	}
	if !parts.IsArchived {
		shown.IsArchived = nil
	}
	if !parts.FirstDetectedAt {
		shown.FirstDetectedAt = nil
	}
	out := &findingsv1.IssueSummary{Issue: shown}
	if err := addReviews(out, row); err != nil {
		return nil, err
	}
	for _, sibling := range a.siblings[identityOf(row)] {
		if sibling.State == lifecycle.Removed && sibling.ID != row.ID {
			continue
		}
		if !slices.Contains(out.GetAllRefs(), sibling.Ref) { // an analysis of another category may report it, too
			out.AllRefs = append(out.AllRefs, sibling.Ref)
		}
		if sibling.Status == lifecycle.ProvisionallyIgnored {
			out.AiSilencedCount++
		}
	}
	return out, nil
}

// addReviews adds the review comments about the finding of this ref.
func addReviews(out *findingsv1.IssueSummary, row *ent.Finding) error {
	content, err := blob.Decode(row.Content)
	for _, comment := range content.GetReviewComments() {
		out.ReviewCount++
		out.AllReviewThreadIds = append(out.AllReviewThreadIds, comment.GetExternalDiscussionId())
		out.AllReviewComments = append(out.AllReviewComments, &findingsv1.IssueReviewComment{IsInline: true, ThreadId: comment.GetExternalDiscussionId()})
	}
	return err
}

// countDecisions counts the decisions about each identity. A decision that spread to other refs counts once.
func (a *relatedRows) countDecisions(ctx context.Context, db *ent.Client) (map[identity]int64, error) {
	var counted []struct {
		FindingID int64 `sql:"finding_id"`
		Count     int64 `sql:"count"`
	}
	err := db.FindingEvent.Query().Where(findingevent.Kind("triaged"), func(s *entsql.Selector) {
		s.Where(store.InIDs(s.C(findingevent.FieldFindingID), keys(a.identities)))
	}).GroupBy(findingevent.FieldFindingID).Aggregate(ent.Count()).Scan(ctx, &counted)
	decisions := map[identity]int64{}
	for _, row := range counted {
		decisions[a.identities[row.FindingID]] += row.Count
	}
	return decisions, err
}

func identityOf(row *ent.Finding) identity { return identity{row.ProjectID, row.Fingerprint} }
