package scans

import (
	"context"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/pullrequestfeedback"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// auditFeedback is the object kind of the settings in the audit trail; the id is the deployment's.
const auditFeedback = "pull_request_feedback"

// GetPullRequestFeedback returns what is written about pull requests.
func (s *PullRequests) GetPullRequestFeedback(ctx context.Context, _ *scansv1.GetPullRequestFeedbackRequest) (*scansv1.GetPullRequestFeedbackResponse, error) {
	owner, err := s.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	return &scansv1.GetPullRequestFeedbackResponse{Settings: feedbackSettings(owner)}, nil
}

// UpdatePullRequestFeedback changes what is written about pull requests.
func (s *PullRequests) UpdatePullRequestFeedback(ctx context.Context, r *scansv1.UpdatePullRequestFeedbackRequest) (*scansv1.UpdatePullRequestFeedbackResponse, error) {
	wanted, out := r.GetSettings(), &scansv1.UpdatePullRequestFeedbackResponse{}
	if wanted.Statuses == nil && wanted.Comments == nil && wanted.LineComments == nil {
		return nil, apierr.InvalidArgument("settings", "settings must have at least one of statuses, comments and line_comments")
	}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		query := tx.Deployment.Query()
		if s.store.Postgres() {
			query.ForUpdate()
		}
		before, err := query.Only(ctx)
		if err != nil {
			return err
		}
		after, err := before.Update().SetNillablePullRequestStatuses(wanted.Statuses).SetNillablePullRequestComments(wanted.Comments).
			SetNillablePullRequestLineComments(wanted.LineComments).Save(ctx)
		if err != nil {
			return err
		}
		out.Settings = feedbackSettings(after)
		audit.Change(ctx, auditFeedback, after.ID, feedbackSettings(before), out.GetSettings())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func feedbackSettings(owner *ent.Deployment) *scansv1.PullRequestFeedbackSettings {
	return &scansv1.PullRequestFeedbackSettings{
		Statuses: &owner.PullRequestStatuses, Comments: &owner.PullRequestComments, LineComments: &owner.PullRequestLineComments,
	}
}

// writtenFeedback returns what was written about a pull request; nil if nothing was.
func writtenFeedback(ctx context.Context, db *ent.Client, projectID, number int64) (*scansv1.PullRequestFeedback, error) {
	row, err := db.PullRequestFeedback.Query().Where(pullrequestfeedback.ProjectID(projectID), pullrequestfeedback.Number(number)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines, err := countLines(row.LineComments)
	if err != nil {
		return nil, err
	}
	return &scansv1.PullRequestFeedback{
		LineComments: lines, Commit: row.Commit, Statuses: slices.Sorted(maps.Keys(row.Statuses)), CommentId: row.CommentID, At: store.Timestamp(&row.UpdatedAt), Problem: row.Problem,
	}, nil
}
