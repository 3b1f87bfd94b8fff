package ai

import (
	"context"
	"errors"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/aitaskgroup"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
)

// latest is the number of tasks and of failures in the status.
const latest = 20

// GetCombinedTask returns the analyses of a task that are about findings that the caller may see. Callers who see no
// analysis do not see the task. Callers who see all projects see a task whose analyses are deleted.
func (s *Tasks) GetCombinedTask(ctx context.Context, r *aiv1.GetCombinedTaskRequest) (*aiv1.GetCombinedTaskResponse, error) {
	group, err := s.store.Reader.AiTaskGroup.Query().Where(aitaskgroup.ID(r.GetGroupId())).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("task %d not found", r.GetGroupId())
	}
	if err != nil {
		return nil, err
	}
	rows, err := s.store.Reader.AiAnalysis.Query().Where(aianalysis.GroupID(group.ID)).Order(ent.Asc(aianalysis.FieldID)).
		Select(shownColumns...).All(ctx)
	if err != nil {
		return nil, err
	}
	if _, limited := tenant.Teams(ctx); limited && len(rows) == 0 {
		return nil, apierr.NotFound("task %d not found", r.GetGroupId())
	}
	response := &aiv1.GetCombinedTaskResponse{Task: convertTask(group), Analyses: convertAnalyses(rows)}
	for _, row := range rows {
		addTo(response.GetTask().GetAnalyses(), row.Status, 1)
	}
	return response, nil
}

// GetAiStatus returns what an operator asks first: can the deployment use a model, and what has become of its orders?
func (s *Tasks) GetAiStatus(ctx context.Context, _ *aiv1.GetAiStatusRequest) (*aiv1.GetAiStatusResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	used, err := s.usage(ctx, s.store.Reader, deploymentID)
	if err != nil {
		return nil, err
	}
	response := &aiv1.GetAiStatusResponse{
		Model: s.models.Model(),
		Month: &aiv1.UsageInfo{Used: used.month, MaxAllowed: s.monthly}, Hour: &aiv1.UsageInfo{Used: used.hour, MaxAllowed: hourly},
	}
	if response.DisabledReason, err = s.whyDisabled(ctx); err != nil {
		return nil, err
	}
	if err := s.addCounts(ctx, response, store.Micros(used.monthStart())); err != nil {
		return nil, err
	}
	if response.Tasks, err = s.latestTasks(ctx); err != nil {
		return nil, err
	}
	return response, s.addFailures(ctx, response)
}

// whyDisabled returns why no analysis can run; empty if some can.
func (a *Assistant) whyDisabled(ctx context.Context) (string, error) {
	if !a.models.Configured() {
		return status.Convert(llm.ErrNotConfigured).Message(), nil
	}
	err := a.checkAllowed(ctx)
	if errors.Is(err, errOff) {
		return err.Error(), nil
	}
	return "", err
}

// addCounts counts the orders since a time by state.
func (s *Tasks) addCounts(ctx context.Context, to *aiv1.GetAiStatusResponse, since int64) error {
	var analyses, fixes []struct {
		Status string
		N      int64
		Cost   float64
	}
	count := ent.As(ent.Count(), "n")
	err := s.store.Reader.AiAnalysis.Query().Where(aianalysis.CreatedAtGTE(since)).GroupBy(aianalysis.FieldStatus).
		Aggregate(count, ent.As(ent.Sum(aianalysis.FieldCostUsd), "cost")).Scan(ctx, &analyses)
	if err != nil {
		return err
	}
	err = s.store.Reader.AiFix.Query().Where(aifix.StatusIn(fixRequested, fixOpened, fixFailed), aifix.RequestedAtGTE(since)).
		GroupBy(aifix.FieldStatus).Aggregate(count).Scan(ctx, &fixes)
	if err != nil {
		return err
	}
	to.Analyses, to.Fixes = &aiv1.AnalysisCounts{}, &aiv1.AnalysisCounts{}
	for _, row := range analyses {
		addTo(to.GetAnalyses(), row.Status, row.N)
		to.CostUsd = llm.Money(to.CostUsd + row.Cost)
	}
	for _, row := range fixes {
		addTo(to.GetFixes(), row.Status, row.N)
	}
	return nil
}

// addTo counts analyses or fixes in a state.
func addTo(counts *aiv1.AnalysisCounts, status string, n int64) {
	switch status {
	case pending, fixRequested:
		counts.Pending += n
	case done, fixOpened:
		counts.Done += n
	case failed: // of fixes, too
		counts.Failed += n
	}
}

// latestTasks returns the latest tasks with analyses that the caller may see.
func (s *Tasks) latestTasks(ctx context.Context) ([]*aiv1.CombinedTask, error) {
	var rows []struct {
		GroupID int64 `sql:"group_id"`
	}
	err := s.store.Reader.AiAnalysis.Query().Where(aianalysis.GroupIDGT(0)).Modify(func(q *entsql.Selector) {
		q.Select(q.C(aianalysis.FieldGroupID)).GroupBy(q.C(aianalysis.FieldGroupID)).OrderBy(entsql.Desc(q.C(aianalysis.FieldGroupID))).Limit(latest)
	}).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.GroupID
	}
	groups, err := s.store.Reader.AiTaskGroup.Query().Where(store.WithIDs[predicate.AiTaskGroup](ids)).Order(ent.Desc(aitaskgroup.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	return s.withCounts(ctx, groups, ids)
}

// withCounts converts tasks and counts their analyses.
func (s *Tasks) withCounts(ctx context.Context, groups []*ent.AiTaskGroup, ids []int64) ([]*aiv1.CombinedTask, error) {
	var states []struct {
		GroupID int64 `sql:"group_id"`
		Status  string
		N       int64
	}
	err := s.store.Reader.AiAnalysis.Query().Where(func(q *entsql.Selector) { q.Where(store.InIDs(q.C(aianalysis.FieldGroupID), ids)) }).
		GroupBy(aianalysis.FieldGroupID, aianalysis.FieldStatus).Aggregate(ent.As(ent.Count(), "n")).Scan(ctx, &states)
	if err != nil {
		return nil, err
	}
	tasks := make([]*aiv1.CombinedTask, len(groups))
	for i, group := range groups {
		tasks[i] = convertTask(group)
		for _, row := range states {
			if row.GroupID == group.ID {
				addTo(tasks[i].GetAnalyses(), row.Status, row.N)
			}
		}
	}
	return tasks, nil
}

// addFailures adds the latest failures with their reasons. Work that waits for a retry comes first.
func (s *Tasks) addFailures(ctx context.Context, to *aiv1.GetAiStatusResponse) error {
	for _, status := range []string{pending, failed} {
		rows, err := s.store.Reader.AiAnalysis.Query().Where(aianalysis.Status(status), aianalysis.ErrorNEQ("")).Order(ent.Desc(aianalysis.FieldID)).
			Limit(latest).Select(shownColumns...).All(ctx)
		if err != nil {
			return err
		}
		to.FailedAnalyses = append(to.FailedAnalyses, convertAnalyses(rows)...)
	}
	for _, status := range []string{fixRequested, fixFailed} {
		rows, err := s.store.Reader.AiFix.Query().Where(aifix.Status(status), aifix.ErrorNEQ("")).Order(ent.Desc(aifix.FieldRequestedAt)).
			Limit(latest).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			to.FailedFixes = append(to.FailedFixes, &aiv1.FailedFix{Id: row.ID, IssueId: row.FindingID, Error: row.Error, FinishedAt: store.Timestamp(row.FinishedAt)})
		}
	}
	return nil
}

// shownColumns are the columns of an analysis that the API shows.
var shownColumns = []string{
	aianalysis.FieldID, aianalysis.FieldFindingID, aianalysis.FieldStatus, aianalysis.FieldVerdict, aianalysis.FieldError,
	aianalysis.FieldFinishedAt, aianalysis.FieldModel, aianalysis.FieldInputTokens, aianalysis.FieldOutputTokens, aianalysis.FieldCostUsd,
}

var analysisStatuses = map[string]aiv1.AnalysisStatus{
	pending: aiv1.AnalysisStatus_ANALYSIS_STATUS_PENDING, done: aiv1.AnalysisStatus_ANALYSIS_STATUS_DONE,
	failed: aiv1.AnalysisStatus_ANALYSIS_STATUS_FAILED,
}

func convertAnalyses(rows []*ent.AiAnalysis) []*aiv1.Analysis {
	out := make([]*aiv1.Analysis, len(rows))
	for i, row := range rows {
		reason := row.Error
		if row.Status == done { // a node of an earlier version leaves the error of an attempt before
			reason = ""
		}
		out[i] = &aiv1.Analysis{
			Id: row.ID, IssueId: row.FindingID, Status: analysisStatuses[row.Status], Verdict: row.Verdict, Error: reason,
			FinishedAt: store.Timestamp(row.FinishedAt), Model: row.Model,
			InputTokens: row.InputTokens, OutputTokens: row.OutputTokens, CostUsd: llm.Money(row.CostUsd),
		}
	}
	return out
}

func convertTask(row *ent.AiTaskGroup) *aiv1.CombinedTask {
	task := &aiv1.CombinedTask{
		GroupId: row.ID, CreatedAt: timestamppb.New(store.Time(row.CreatedAt)), NumAnalyzed: int64(row.Issues), Analyses: &aiv1.AnalysisCounts{},
	}
	for _, word := range row.Chains {
		task.Chains = append(task.Chains, aiv1.Chain(aiv1.Chain_value[word]))
	}
	return task
}
