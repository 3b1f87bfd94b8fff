package findings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/triagechange"
	"github.com/palisade/palisade/ent/triagechangefinding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// bulkUpdate is a decision about the findings of a filter.
type bulkUpdate struct {
	store    *store.Store
	filter   *findingsv1.IssuesFilter
	types    []string
	decision triage.Decision
	// seen are decisions that must still be in effect.
	seen []*findingsv1.SeenDecision
}

// bulkNumbers are the counters of a bulk update.
type bulkNumbers struct {
	// Issues are the selected findings, Parents their identities, Updated the changed findings on all refs.
	Parents int64 `json:"p"`
	Issues  int64 `json:"i"`
	Updated int64 `json:"u"`
	// Ignored, Requested and Skipped split the selected findings of an ignore action. They are shown while developers
	// request exceptions.
	Ignored   int64 `json:"g"`
	Requested int64 `json:"e"`
	Skipped   int64 `json:"s"`
	Approval  bool  `json:"a"`
}

// exceptionCount returns a counter that is shown only for ignore actions while exception approval is on.
func (n bulkNumbers) exceptionCount(value int64) *int32 {
	if !n.Approval {
		return nil
	}
	count := int32(value)
	return &count
}

// BulkUpdateIssues decides about the findings of a filter in one transaction. With the token of a preview, it changes
// what the preview counted, or nothing.
func (s *Issues) BulkUpdateIssues(ctx context.Context, r *findingsv1.BulkUpdateIssuesRequest) (*findingsv1.BulkUpdateIssuesResponse, error) {
	request := &findingsv1.PreviewBulkUpdateRequest{
		DeploymentId: r.GetDeploymentId(), IssueType: r.GetIssueType(), Filter: r.GetFilter(), Params: r.GetParams(), IssueTypes: r.GetIssueTypes(),
	}
	b, err := newBulkUpdate(ctx, s.store, s.jobs, request)
	if err != nil {
		return nil, err
	}
	b.seen = r.GetSeen()
	var shown *previewed
	if token := r.GetPreviewToken(); token != "" {
		shown = &previewed{}
		if err := s.previews.open(ctx, request, token, time.Now(), shown); err != nil {
			return nil, err
		}
	}
	n, changeID, err := b.apply(ctx, shown)
	if err != nil {
		return nil, err
	}
	return &findingsv1.BulkUpdateIssuesResponse{
		IssueParentCount: int32(n.Parents), IssueCount: int32(n.Issues), UpdatedCount: int32(n.Updated), NumIgnored: n.exceptionCount(n.Ignored),
		NumExceptionsRequested: n.exceptionCount(n.Requested), NumSkipped: n.exceptionCount(n.Skipped), ChangeId: changeID,
	}, nameChange(ctx, changeID)
}

// newBulkUpdate checks the parameters of a bulk update. Updates and previews share the form.
func newBulkUpdate(ctx context.Context, st *store.Store, queue *jobs.Jobs, r *findingsv1.PreviewBulkUpdateRequest) (*bulkUpdate, error) {
	state := wordOf(r.GetParams().GetTriageState(), "FINDING_TRIAGE_STATE_")
	reason := wordOf(r.GetParams().GetTriageReason(), "FINDING_TRIAGE_REASON_")
	switch {
	case reason != "" && state != lifecycle.Ignored:
		return nil, apierr.InvalidArgument("params.triageReason", "params.triageReason is allowed only together with FINDING_TRIAGE_STATE_IGNORED")
	case state == "" && strings.TrimSpace(r.GetParams().GetNote()) == "":
		return nil, apierr.InvalidArgument("params", "one of params.triageState and params.note is required")
	}
	b := &bulkUpdate{store: st, filter: r.GetFilter(), decision: newDecision(ctx, queue, triage.KindBulkUpdate, state, reason, r.GetParams().GetNote())}
	for _, issueType := range append(slices.Clone(r.GetIssueTypes()), r.GetIssueType()) {
		if word := wordOf(issueType, "ISSUE_TYPE_"); word != "" && !slices.Contains(b.types, word) {
			b.types = append(b.types, word)
		}
	}
	if len(b.types) == 0 {
		b.types = vocabulary.Products
	}
	return b, nil
}

// wordOf is an enum value in the words of the tables; "" for the value that means absent.
func wordOf[E interface {
	~int32
	fmt.Stringer
}](value E, prefix string) string {
	if value == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}

// newDecision is a decision of the caller.
func newDecision(ctx context.Context, queue *jobs.Jobs, kind, state, reason, note string) triage.Decision {
	deploymentID, _ := tenant.FromContext(ctx)
	d := triage.New(deploymentID, kind, state, reason, note)
	d.Queue = queue
	if p, ok := access.FromContext(ctx); ok {
		d.ActorKind, d.ActorID = string(p.Kind), p.ID
	}
	return d
}

// where selects the findings that lists show. Relative times of the filter count from now.
func (b *bulkUpdate) where(ctx context.Context, now time.Time) ([]predicate.Finding, error) {
	where, err := issuefilter.Where(ctx, b.filter, now)
	if ids := b.filter.GetIds(); len(ids) > 0 { // also look the findings up by them
		where = append(where, store.FoundByIDs(ids))
	}
	return append(where, store.OneOf(finding.FieldIssueType, b.types)), err
}

// ofTypes narrows conditions to issue types.
func ofTypes(where []predicate.Finding, types []string) []predicate.Finding {
	return append(slices.Clip(where), store.OneOf(finding.FieldIssueType, types))
}

// permitted splits the issue types by what the caller may do about them.
type permitted struct {
	// decided may be decided about; for requested, the caller requests exceptions.
	decided, requested []string
	approval           bool
}

// permit returns what the caller may do about the selected findings. While exceptions are requested for some products,
// findings that the caller may not ignore are skipped. Otherwise the first one refuses the update.
func (b *bulkUpdate) permit(ctx context.Context, db *ent.Client, found *triage.Summary) (out permitted, err error) {
	if !triage.Ignores(b.decision.State) {
		return permitted{decided: b.types}, nil
	}
	permissions, err := triage.DeveloperPermissions(ctx, db)
	if err != nil {
		return permitted{}, err
	}
	out.approval = permissions.ApprovalIsOn()
	if !triage.ByDeveloper(ctx) {
		out.decided = b.types
		return out, nil
	}
	for _, issueType := range b.types {
		refusal := permissions.Refusal(issueType, b.decision.State)
		switch {
		case refusal == "":
			out.decided = append(out.decided, issueType)
		case permissions.MayRequest(issueType):
			out.requested = append(out.requested, issueType)
		case !out.approval && found.ByType[issueType] > 0:
			return permitted{}, status.Error(codes.PermissionDenied, refusal)
		}
	}
	return out, nil
}

// concerned selects the findings that are not skipped.
func (p permitted) concerned(deploymentID int64) predicate.Finding {
	return finding.Or(store.OneOf(finding.FieldIssueType, p.decided),
		finding.And(store.OneOf(finding.FieldIssueType, p.requested), triage.Requestable(deploymentID)))
}

// numbers starts the counters.
func (p permitted) numbers(found *triage.Summary, ignores bool) bulkNumbers {
	n := bulkNumbers{Parents: found.Identities, Issues: found.Findings, Approval: p.approval}
	if ignores {
		for _, issueType := range p.decided {
			n.Ignored += found.ByType[issueType]
		}
		n.Skipped = n.Issues - n.Ignored
	}
	return n
}

// apply makes the update in one transaction. With a preview, it changes what the preview showed, or nothing.
func (b *bulkUpdate) apply(ctx context.Context, shown *previewed) (out bulkNumbers, changeID int64, err error) {
	now := time.Now()
	if shown != nil {
		now = store.Time(shown.Now)
	}
	where, err := b.where(ctx, now)
	if err != nil {
		return bulkNumbers{}, 0, err
	}
	err = b.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		locked, err := triage.LockProjects(ctx, b.store, tx, where...)
		if err != nil {
			return err
		}
		out, changeID, err = b.write(ctx, tx, append(slices.Clip(where), locked), shown)
		return err
	})
	return out, changeID, err
}

// write makes the update after the projects are locked.
func (b *bulkUpdate) write(ctx context.Context, tx *ent.Tx, where []predicate.Finding, shown *previewed) (out bulkNumbers, changeID int64, err error) {
	found, err := triage.Summarise(ctx, b.store, tx, where...)
	if err != nil {
		return bulkNumbers{}, 0, err
	}
	if shown != nil && shown.Revision != found.Revision {
		return bulkNumbers{}, 0, apierr.Conflict("the findings have changed since the preview (%d were selected, now %d are, or somebody decided about some): "+
			"preview the update again", shown.Numbers.Issues, found.Findings)
	}
	if shown != nil {
		if err := b.refuseNoted(ctx, tx, where, shown.Change); err != nil {
			return bulkNumbers{}, 0, err
		}
	}
	if err := b.refuseOvertaken(ctx, tx); err != nil {
		return bulkNumbers{}, 0, err
	}
	may, err := b.permit(ctx, tx.Client(), found)
	if err != nil {
		return bulkNumbers{}, 0, err
	}
	out = may.numbers(found, triage.Ignores(b.decision.State))
	if len(may.requested) > 0 {
		if out.Requested, err = requestExceptions(ctx, b.store, tx, b.decision, ofTypes(where, may.requested)); err != nil {
			return bulkNumbers{}, 0, err
		}
		out.Skipped -= out.Requested
	}
	if len(may.decided) > 0 {
		if out.Updated, changeID, err = b.decide(ctx, tx, ofTypes(where, may.decided)); err != nil {
			return bulkNumbers{}, 0, err
		}
	}
	if shown != nil && shown.Numbers != out {
		return bulkNumbers{}, 0, apierr.Conflict("the update would change %d findings and request %d exceptions, but the preview said %d and %d, "+
			"because findings on other refs, requests or permissions have changed since: preview the update again",
			out.Updated, out.Requested, shown.Numbers.Updated, shown.Numbers.Requested)
	}
	return out, changeID, nil
}

// lastChange returns the id of the last triage change; 0 if the update writes no note.
func (b *bulkUpdate) lastChange(ctx context.Context, db *ent.Client) (int64, error) {
	if b.decision.Note == "" {
		return 0, nil
	}
	last, err := db.TriageChange.Query().Order(ent.Desc(triagechange.FieldID)).Limit(1).IDs(ctx)
	if err != nil || len(last) == 0 {
		return 0, err
	}
	return last[0], nil
}

// refuseNoted returns an error if an update with a note would replace a note that was written after the preview.
func (b *bulkUpdate) refuseNoted(ctx context.Context, tx *ent.Tx, where []predicate.Finding, change int64) error {
	if b.decision.Note == "" {
		return nil
	}
	later := func(s *entsql.Selector) {
		of := entsql.Table(triagechangefinding.Table)
		s.Where(entsql.In(s.C(finding.FieldID), entsql.Select(of.C(triagechangefinding.FieldFindingID)).From(of).Where(entsql.And(
			entsql.EQ(of.C(triagechangefinding.FieldDeploymentID), b.decision.DeploymentID), entsql.GT(of.C(triagechangefinding.FieldChangeID), change)))))
	}
	noted, err := tx.Finding.Query().Where(where...).Where(later).Exist(ctx)
	if err == nil && noted {
		err = apierr.Conflict("somebody decided about some of the findings, or wrote notes, since the preview: preview the update again")
	}
	return err
}

// decide stores the decision. It returns the number of changed findings and the id of the change; 0 if it changed none.
func (b *bulkUpdate) decide(ctx context.Context, tx *ent.Tx, where []predicate.Finding) (updated, changeID int64, err error) {
	change, err := b.decision.Begin(ctx, b.store, tx)
	if err != nil {
		return 0, 0, err
	}
	if err := change.Choose(ctx, where...); err != nil {
		return 0, 0, err
	}
	if change.Chosen == 0 {
		return 0, 0, change.Drop(ctx)
	}
	if err := change.Spread(ctx); err != nil {
		return 0, 0, err
	}
	if err := change.Finish(ctx); err != nil {
		return 0, 0, err
	}
	if change.ID != 0 {
		auditChange(ctx, change)
	}
	return change.Changed, change.ID, nil
}

// auditChange records a change in the audit trail. Each finding has a history of its own.
func auditChange(ctx context.Context, change *triage.Change) {
	audit.Change(ctx, "triage_change", change.ID, nil, describeChange(change))
}
