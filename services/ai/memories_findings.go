package ai

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/ai/memory"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/apierr"
)

// relevantLimit is the maximum number of findings that FindRelevantIssues returns.
const relevantLimit = 1000

// CreateMemoryFromTriage creates a memory from a triage note.
func (s *Memories) CreateMemoryFromTriage(ctx context.Context, r *aiv1.CreateMemoryFromTriageRequest) (*aiv1.CreateMemoryFromTriageResponse, error) {
	where, err := triaged(ctx, r)
	if err != nil {
		return nil, err
	}
	response := &aiv1.CreateMemoryFromTriageResponse{}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		wanted, sample, err := scopeOf(ctx, tx.Client(), where)
		if err != nil {
			return err
		}
		if err := checkMemoryScope(ctx, wanted); err != nil {
			return err
		}
		wanted.Content = strings.TrimSpace(r.GetNote())
		source := &storev1.AiMemorySource{Note: wanted.Content, CreatedBy: callerName(ctx), CreatedAt: timestamppb.Now(), SampleIssueId: strconv.FormatInt(sample, 10)}
		response.Memory, err = s.addMemory(ctx, tx, wanted, &storev1.AiMemoryDetails{Sources: []*storev1.AiMemorySource{source}}, callerName(ctx))
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// triaged returns the conditions for the findings of a triage decision.
func triaged(ctx context.Context, r *aiv1.CreateMemoryFromTriageRequest) ([]predicate.Finding, error) {
	if proto.Size(r.GetFilter()) == 0 && proto.Size(r.GetIdentifierFilter()) == 0 {
		return nil, apierr.InvalidArgument("filter", "filter and identifierFilter are both empty: at least one must say which findings the note is about")
	}
	now := time.Now()
	where, err := issuefilter.Where(ctx, r.GetFilter(), now)
	if err != nil {
		return nil, err
	}
	if r.GetIssueType() != findingsv1.IssueType_ISSUE_TYPE_UNSPECIFIED {
		where = append(where, finding.IssueType(strings.ToLower(strings.TrimPrefix(r.GetIssueType().String(), "ISSUE_TYPE_"))))
	}
	var options []predicate.Finding
	by, archived := r.GetIdentifierFilter(), r.GetFilter().GetIncludeArchived()
	for _, f := range []*findingsv1.IssuesFilter{
		{Ids: by.GetIds(), IncludeArchived: archived},
		{IssueParentIds: by.GetIssueParentIds(), IncludeArchived: archived},
		{RuleIds: by.GetRuleIds(), IncludeArchived: archived},
	} {
		if len(f.GetIds())+len(f.GetIssueParentIds())+len(f.GetRuleIds()) == 0 {
			continue
		}
		option, err := issuefilter.Where(ctx, f, now)
		if err != nil {
			return nil, err
		}
		options = append(options, finding.And(option...))
	}
	if len(options) > 0 {
		where = append(where, finding.Or(options...))
	}
	return where, nil
}

// scopeOf builds a live memory for the rule and the project that all findings share, and returns the id of one finding.
func scopeOf(ctx context.Context, db *ent.Client, where []predicate.Finding) (wanted *ent.AiMemory, sample int64, err error) {
	var shared []struct {
		FirstRule    sql.NullInt64 `sql:"first_rule"`
		LastRule     sql.NullInt64 `sql:"last_rule"`
		FirstProject sql.NullInt64 `sql:"first_project"`
		LastProject  sql.NullInt64 `sql:"last_project"`
		Sample       sql.NullInt64 `sql:"sample"`
	}
	err = db.Finding.Query().Where(where...).Aggregate(
		ent.As(ent.Min(finding.FieldRuleID), "first_rule"), ent.As(ent.Max(finding.FieldRuleID), "last_rule"),
		ent.As(ent.Min(finding.FieldProjectID), "first_project"), ent.As(ent.Max(finding.FieldProjectID), "last_project"),
		ent.As(ent.Max(finding.FieldID), "sample")).Scan(ctx, &shared)
	if err != nil {
		return nil, 0, err
	}
	if len(shared) == 0 || !shared[0].Sample.Valid {
		return nil, 0, apierr.InvalidArgument("filter", "filter and identifierFilter choose no finding: a note must be about some")
	}
	wanted = &ent.AiMemory{Stage: memory.Live, Context: contextOf(nil), PathPrefixes: []string{}}
	if s := shared[0]; s.FirstRule == s.LastRule {
		wanted.RuleID = &s.FirstRule.Int64
	}
	if s := shared[0]; s.FirstProject == s.LastProject {
		wanted.ProjectID = &s.FirstProject.Int64
	}
	return wanted, shared[0].Sample.Int64, nil
}

// FindRelevantIssues lists the open findings in the scope of a memory for a rule and a project.
func (s *Memories) FindRelevantIssues(ctx context.Context, r *aiv1.FindRelevantIssuesRequest) (*aiv1.FindRelevantIssuesResponse, error) {
	scope := &ent.AiMemory{RuleID: memoryID(r.GetRuleId()), ProjectID: memoryID(r.GetRepositoryId())}
	if err := s.checkScope(ctx, s.store.Reader, "", scope); err != nil {
		return nil, err
	}
	query := s.store.Reader.Finding.Query()
	if scope.RuleID != nil {
		query.Where(finding.RuleID(*scope.RuleID))
	}
	if scope.ProjectID != nil {
		query.Where(finding.ProjectID(*scope.ProjectID))
	}
	ids, err := latestOpen(ctx, query)
	if err != nil {
		return nil, err
	}
	return &aiv1.FindRelevantIssuesResponse{IssueIds: ids}, nil
}

// latestOpen returns the newest open findings of a query, up to the answer's limit. It queries each kind and status
// separately, because each is a contiguous range of an index in list order. A combined query would sort, which takes a
// second for a million findings.
func latestOpen(ctx context.Context, query *ent.FindingQuery) ([]int64, error) {
	var rows []*ent.Finding
	for _, kind := range []string{"sast", "sca", "secrets", "ai_sast"} {
		for _, status := range []string{lifecycle.Open, lifecycle.ProvisionallyIgnored} {
			some, err := query.Clone().Where(finding.IssueType(kind), finding.Status(status)).
				Order(ent.Desc(finding.FieldRelevantSince, finding.FieldID)).Limit(relevantLimit).
				Select(finding.FieldID, finding.FieldRelevantSince).All(ctx)
			if err != nil {
				return nil, err
			}
			rows = append(rows, some...)
		}
	}
	slices.SortFunc(rows, func(a, b *ent.Finding) int {
		return cmp.Or(cmp.Compare(b.RelevantSince, a.RelevantSince), cmp.Compare(b.ID, a.ID))
	})
	ids := make([]int64, min(len(rows), relevantLimit))
	for i := range ids {
		ids[i] = rows[i].ID
	}
	return ids, nil
}

// pullRequestRefs are the ref prefixes of pull requests at all hosts.
var pullRequestRefs = []string{"refs/pull/", "refs/pull-requests/", "refs/merge-requests/"}

// GetMemoriesStats returns statistics of analyses with memories.
func (s *Memories) GetMemoriesStats(ctx context.Context, _ *aiv1.GetMemoriesStatsRequest) (*aiv1.GetMemoriesStatsResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	var onPullRequests []predicate.Finding
	for _, prefix := range pullRequestRefs {
		onPullRequests = append(onPullRequests, finding.RefHasPrefix(prefix))
	}
	analyzed := analysedWithMemory(deploymentID, " AND a.status = 'done'")
	silenced := analysedWithMemory(deploymentID, " AND a.status = 'done' AND a.applied = ", true, " AND a.verdict = ", verdict.FalsePositive)
	response := &aiv1.GetMemoriesStatsResponse{}
	for _, count := range []struct {
		where []predicate.Finding
		into  *int64
	}{
		{[]predicate.Finding{analyzed}, &response.FindingsAnalyzed},
		{[]predicate.Finding{analyzed, finding.AutotriageVerdict(verdict.FalsePositive)}, &response.LikelyFalsePositives},
		{[]predicate.Finding{silenced, finding.Or(onPullRequests...)}, &response.CommentsPrevented},
	} {
		n, err := s.store.Reader.Finding.Query().Where(count.where...).Count(ctx)
		if err != nil {
			return nil, err
		}
		*count.into = int64(n)
	}
	return response, nil
}

// analysedWithMemory selects findings with an analysis that had a memory in its prompt. more is a condition on that
// analysis a, as alternating SQL texts and parameters.
func analysedWithMemory(deploymentID int64, more ...any) predicate.Finding {
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(s.C(finding.FieldID)).WriteString(" IN (SELECT u.finding_id FROM ai_memory_uses u JOIN ai_analyses a ON a.id = u.analysis_id WHERE u.deployment_id = ").
				Arg(deploymentID).WriteString(" AND a.deployment_id = ").Arg(deploymentID)
			for part := range slices.Chunk(more, 2) {
				b.WriteString(part[0].(string))
				if len(part) == 2 {
					b.Arg(part[1])
				}
			}
			b.WriteString(")")
		}))
	}
}
