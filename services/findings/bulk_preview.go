package findings

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// previewExamples is the number of findings that a preview shows.
const previewExamples = 10

// TriageChanges is the service group "triage changes".
type TriageChanges struct {
	findingsv1.UnimplementedTriageChangesServiceServer
	store  *store.Store
	jobs   *jobs.Jobs
	tokens previewTokens
}

// NewTriageChanges serves previews and undos from the store. The keyring seals preview tokens.
func NewTriageChanges(st *store.Store, queue *jobs.Jobs, keyring *secret.Keyring) *TriageChanges {
	return &TriageChanges{store: st, jobs: queue, tokens: previewTokens{keyring}}
}

// PreviewBulkUpdate counts what an update would change, in one snapshot, with the conditions of the update.
func (s *TriageChanges) PreviewBulkUpdate(ctx context.Context, r *findingsv1.PreviewBulkUpdateRequest) (*findingsv1.PreviewBulkUpdateResponse, error) {
	b, err := newBulkUpdate(ctx, s.store, s.jobs, r)
	if err != nil {
		return nil, err
	}
	now := store.Time(store.Now())
	where, err := b.where(ctx, now)
	if err != nil {
		return nil, err
	}
	out := &findingsv1.PreviewBulkUpdateResponse{ExpiresAt: timestamppb.New(now.Add(previewLife))}
	shown := previewed{previewTime: previewTime{store.Micros(now)}}
	err = s.store.ReadWithFreshPlans(ctx, func(db *ent.Client) error {
		found, err := triage.Summarise(ctx, s.store, db, where...)
		if err != nil {
			return err
		}
		shown.Revision = found.Revision
		if shown.Change, err = b.lastChange(ctx, db); err != nil {
			return err
		}
		may, err := b.permit(ctx, db, found)
		if err != nil {
			return err
		}
		if shown.Numbers, err = b.count(ctx, db, where, found, may); err != nil {
			return err
		}
		for _, word := range found.Statuses() {
			out.Statuses = append(out.Statuses, &findingsv1.PreviewStatus{Status: word, Count: int32(found.ByStatus[word])})
		}
		out.Examples, err = exampleFindings(ctx, db, append(where, may.concerned(b.decision.DeploymentID)))
		return err
	})
	if err != nil {
		return nil, err
	}
	n := shown.Numbers
	out.IssueCount, out.IssueParentCount, out.UpdatedCount = int32(n.Issues), int32(n.Parents), int32(n.Updated)
	out.NumIgnored, out.NumExceptionsRequested, out.NumSkipped = n.exceptionCount(n.Ignored), n.exceptionCount(n.Requested), n.exceptionCount(n.Skipped)
	out.PreviewToken, err = s.tokens.seal(ctx, r, shown)
	return out, err
}

// count returns the counters that apply would return.
func (b *bulkUpdate) count(ctx context.Context, db *ent.Client, where []predicate.Finding, found *triage.Summary, may permitted) (out bulkNumbers, err error) {
	out = may.numbers(found, triage.Ignores(b.decision.State))
	if len(may.requested) > 0 {
		if out.Requested, err = triage.CountRequests(ctx, b.store, db, b.decision.DeploymentID, ofTypes(where, may.requested)...); err != nil {
			return bulkNumbers{}, err
		}
		out.Skipped -= out.Requested
	}
	if len(may.decided) > 0 {
		out.Updated, err = b.decision.CountChanges(ctx, b.store, db, ofTypes(where, may.decided)...)
	}
	return out, err
}

// exampleFindings returns the first findings by id.
func exampleFindings(ctx context.Context, db *ent.Client, where []predicate.Finding) ([]*findingsv1.PreviewExample, error) {
	rows, err := db.Finding.Query().Where(where...).Order(ent.Asc(finding.FieldID)).Limit(previewExamples).All(ctx)
	if err != nil {
		return nil, err
	}
	projects, rules := make([]int64, len(rows)), make([]int64, len(rows))
	for i, row := range rows {
		projects[i], rules[i] = row.ProjectID, row.RuleID
	}
	names, err := namesOf(ctx, db, projects, rules)
	if err != nil {
		return nil, err
	}
	out := make([]*findingsv1.PreviewExample, len(rows))
	for i, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, err
		}
		out[i] = &findingsv1.PreviewExample{
			FindingId: row.ID, Project: names.projects[row.ProjectID], Ref: row.Ref, RuleName: names.rules[row.RuleID], Severity: row.Severity,
			Status: row.Status, FilePath: content.GetLocation().GetFilePath(), Line: content.GetLocation().GetLine(),
		}
	}
	return out, nil
}

// foundNames are the names of projects and rules by id.
type foundNames struct{ projects, rules map[int64]string }

func namesOf(ctx context.Context, db *ent.Client, projects, rules []int64) (foundNames, error) {
	out := foundNames{map[int64]string{}, map[int64]string{}}
	for _, ids := range []*[]int64{&projects, &rules} {
		slices.Sort(*ids)
		*ids = slices.Compact(*ids)
	}
	named, err := db.Project.Query().Where(store.WithIDs[predicate.Project](projects)).Select(project.FieldID, project.FieldName).All(ctx)
	if err != nil {
		return out, err
	}
	for _, row := range named {
		out.projects[row.ID] = row.Name
	}
	ruled, err := db.Rule.Query().Where(store.WithIDs[predicate.Rule](rules)).Select(rule.FieldID, rule.FieldName).All(ctx)
	for _, row := range ruled {
		out.rules[row.ID] = row.Name
	}
	return out, err
}
