package verdict

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/store"
)

// Amend changes the content of a finding under the lock that imports and triage take too, so that neither loses what
// the other writes. The finding may be gone: then it is ent's not-found error.
func Amend(ctx context.Context, st *store.Store, tx *ent.Tx, id int64, change func(*storev1.FindingContent, *ent.FindingUpdate)) error {
	row, err := lock(ctx, st, tx, id)
	if err != nil {
		return err
	}
	content, err := blob.Decode(row.Content)
	if err != nil {
		return fmt.Errorf("content of finding %d: %w", id, err)
	}
	update := tx.Finding.Update().Where(finding.ID(id))
	change(content, update)
	encoded, err := blob.Encode(content)
	if err != nil {
		return err
	}
	return update.SetContent(encoded).Exec(ctx)
}

// lock makes imports, triage and this take turns, and reads the finding. SQLite has one writer anyway.
func lock(ctx context.Context, st *store.Store, tx *ent.Tx, id int64) (*ent.Finding, error) {
	if st.Postgres() {
		_, err := tx.Project.Query().Where(func(s *entsql.Selector) {
			owner := entsql.Dialect(s.Dialect()).Select(finding.FieldProjectID).From(entsql.Table(finding.Table))
			owner.Where(entsql.EQ(finding.FieldID, id))
			s.Where(entsql.In(s.C(project.FieldID), owner))
		}).ForUpdate().OnlyID(ctx)
		if err != nil {
			return nil, err
		}
	}
	return tx.Finding.Query().Where(finding.ID(id)).
		Select(finding.FieldID, finding.FieldDeploymentID, finding.FieldIssueType, finding.FieldState, finding.FieldTriageState,
			finding.FieldStatus, finding.FieldAutotriageVerdict, finding.FieldContentHash, finding.FieldContent).Only(ctx)
}

// Keep moves what did not come from a scan out of the content that is stored into the one that a scan brings: what the
// assistant said, pull requests, review comments and the ticket survive a change of the finding's text.
func Keep(stored, fresh *storev1.FindingContent) {
	fresh.Assistant = stored.GetAssistant()
	fresh.ClickToFixPrs, fresh.ClickToFixFailures = stored.GetClickToFixPrs(), stored.GetClickToFixFailures()
	fresh.ReviewComments, fresh.ExternalTicket = stored.GetReviewComments(), stored.GetExternalTicket()
	fresh.AiImpact = stored.GetAiImpact()
}
