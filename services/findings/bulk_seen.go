package findings

import (
	"context"
	"fmt"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// namedOvertaken is how many findings the text of a refusal names.
const namedOvertaken = 5

// refuseOvertaken refuses an update if a finding has another decision than the caller saw. The projects are locked, so
// that the decisions stay until the update is committed.
func (b *bulkUpdate) refuseOvertaken(ctx context.Context, tx *ent.Tx) error {
	if len(b.seen) == 0 {
		return nil
	}
	ids := make([]int64, len(b.seen))
	for i, one := range b.seen {
		ids[i] = one.GetIssueId()
	}
	rows, err := tx.Finding.Query().Where(store.WithIDs[predicate.Finding](ids)).
		Select(finding.FieldID, finding.FieldTriageState, finding.FieldTriageReason, finding.FieldTriageComment).All(ctx)
	if err != nil {
		return err
	}
	present := make(map[int64]*ent.Finding, len(rows))
	for _, row := range rows {
		present[row.ID] = row
	}
	var overtaken []string
	for _, one := range b.seen {
		if text := b.overtakes(present[one.GetIssueId()], one); text != "" {
			overtaken = append(overtaken, text)
		}
	}
	if len(overtaken) == 0 {
		return nil
	}
	named := strings.Join(overtaken[:min(len(overtaken), namedOvertaken)], ", ")
	return apierr.Conflict("somebody else decided about %d of the findings since you saw them (%s): look at them again", len(overtaken), named)
}

// overtakes describes the decision about a finding if it is not the one that was seen.
func (b *bulkUpdate) overtakes(now *ent.Finding, seen *findingsv1.SeenDecision) string {
	if now == nil {
		return fmt.Sprintf("finding %d does not exist any more", seen.GetIssueId())
	}
	reason := value(now.TriageReason)
	sameState := now.TriageState == wordOf(seen.GetTriageState(), "FINDING_TRIAGE_STATE_")
	sameReason := reason == wordOf(seen.GetTriageReason(), "FINDING_TRIAGE_REASON_")
	keepsNote := b.decision.Note == "" || seen.GetNote() == value(now.TriageComment)
	switch {
	case sameState && sameReason && keepsNote:
		return ""
	case reason == "":
		return fmt.Sprintf("finding %d is %s", now.ID, now.TriageState)
	}
	return fmt.Sprintf("finding %d is %s, %s", now.ID, now.TriageState, reason)
}
