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

// Amend changes the content of a finding under the lock that imports and triage also take, so that no write is lost. It
// returns ent's not-found error if the finding is gone.
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

// lock locks the project, so that imports, triage and this run one after the other, and reads the finding. SQLite has
// only one writer.
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

// Keep copies from stored to fresh content what does not come from scans: the assistant's verdict, pull requests,
// review comments and the ticket.
func Keep(stored, fresh *storev1.FindingContent) {
	fresh.Assistant = stored.GetAssistant()
	fresh.ClickToFixPrs, fresh.ClickToFixFailures = stored.GetClickToFixPrs(), stored.GetClickToFixFailures()
	fresh.ReviewComments, fresh.ExternalTicket = stored.GetReviewComments(), stored.GetExternalTicket()
	fresh.AiImpact = stored.GetAiImpact()
}
