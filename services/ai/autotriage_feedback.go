package ai

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aifeedback"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// Feedback is the service group "autotriage feedback".
type Feedback struct {
	aiv1.UnimplementedAutotriageFeedbackServiceServer
	store *store.Store
}

// NewFeedback serves autotriage feedback on the store.
func NewFeedback(st *store.Store) *Feedback { return &Feedback{store: st} }

// PostAutotriageFeedback stores the caller's feedback and replaces the previous one.
func (s *Feedback) PostAutotriageFeedback(ctx context.Context, r *aiv1.PostAutotriageFeedbackRequest) (*aiv1.PostAutotriageFeedbackResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	caller, ok := access.FromContext(ctx)
	if !ok {
		return nil, apierr.Unauthenticated("feedback is a user's")
	}
	said := r.GetFeedback()
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := requireVerdict(ctx, tx, said.GetAutotriageId()); err != nil {
			return err
		}
		before, err := previousFeedback(ctx, tx, said.GetAutotriageId(), caller.UserID)
		if err != nil {
			return err
		}
		err = tx.AiFeedback.Create().SetDeploymentID(deploymentID).SetAnalysisID(said.GetAutotriageId()).SetUserID(caller.UserID).
			SetRating(said.GetRating().String()).SetNote(said.GetNote()).SetAt(store.Now()).
			OnConflictColumns(aifeedback.FieldDeploymentID, aifeedback.FieldAnalysisID, aifeedback.FieldUserID).
			Update(func(u *ent.AiFeedbackUpsert) { u.UpdateRating().UpdateNote().UpdateAt() }).Exec(ctx)
		if err == nil {
			audit.Change(ctx, "autotriage_feedback", said.GetAutotriageId(), before, said)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &aiv1.PostAutotriageFeedbackResponse{NewFeedback: said}, nil
}

// requireVerdict returns NOT_FOUND for a missing verdict or a finding that the caller cannot see.
func requireVerdict(ctx context.Context, tx *ent.Tx, id int64) error {
	row, err := tx.AiAnalysis.Query().Where(aianalysis.ID(id), aianalysis.VerdictNEQ("")).Only(ctx)
	if err == nil {
		var seen bool
		if seen, err = tx.Finding.Query().Where(finding.ID(row.FindingID)).Exist(ctx); err == nil && seen {
			return nil
		}
	}
	if err != nil && !ent.IsNotFound(err) {
		return err
	}
	return apierr.NotFound("autotriage %d not found", id)
}

// previousFeedback is a user's previous feedback; nil if there is none.
func previousFeedback(ctx context.Context, tx *ent.Tx, analysisID, userID int64) (*aiv1.AutotriageFeedback, error) {
	row, err := tx.AiFeedback.Query().Where(aifeedback.AnalysisID(analysisID), aifeedback.UserID(userID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rating := findingsv1.Rating(findingsv1.Rating_value[row.Rating])
	return &aiv1.AutotriageFeedback{AutotriageId: analysisID, Rating: rating, Note: row.Note}, nil
}
