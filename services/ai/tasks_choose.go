package ai

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aimemory"
	"github.com/palisade/palisade/ent/aitaskgroup"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/ai/memory"
	"github.com/palisade/palisade/services/ai/prompt"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// maxIssues is the maximum number of findings in one task: the hourly quota.
const maxIssues = hourly

// choice is a finding that can be analysed.
type choice struct{ id, contentHash int64 }

// order reads the request. A trial memory that replaces a stored one needs the stored one to exist.
func (s *Tasks) order(ctx context.Context, r *aiv1.CreateCombinedTaskRequest) (order, error) {
	o := order{deploymentID: r.GetDeploymentId(), regenerate: r.GetTask().GetRegenerate()}
	o.parts, o.chains = partsOf(r.GetTask().GetChains())
	given := r.GetTask().GetMemory()
	if given == nil {
		return o, nil
	}
	o.trial, o.memory.Content = true, given.GetContent()
	if given.GetId() == "" || given.GetId() == "0" {
		return o, nil
	}
	id, err := strconv.ParseInt(given.GetId(), 10, 64)
	if err != nil || id < 0 {
		return o, apierr.InvalidArgument("task.memory.id", "task.memory.id must be the number of a memory, or left out; got %q", given.GetId())
	}
	there, err := s.store.Reader.AiMemory.Query().Where(aimemory.ID(id), aimemory.StageNEQ(memory.Deleted)).Exist(ctx)
	if err == nil && !there {
		err = apierr.NotFound("memory %d not found", id)
	}
	o.memory.ID = id
	return o, err
}

// choose selects the findings of a request and reports the findings that cannot be analysed.
func (s *Tasks) choose(ctx context.Context, r *aiv1.CreateCombinedTaskRequest) ([]choice, []*aiv1.AnalysisFailure, error) {
	rows, err := s.findingsNamed(ctx, r)
	if err != nil || len(rows) == 0 {
		return nil, nil, err
	}
	projects, err := s.projectsOf(ctx, rows)
	if err != nil {
		return nil, nil, err
	}
	configs, err := s.connections(ctx)
	if err != nil {
		return nil, nil, err
	}
	var chosen []choice
	var failures []*aiv1.AnalysisFailure
	for _, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
		why := accessError{}
		if needsHost(row.IssueType, content) {
			why = s.whyUnreadable(configs, projects[row.ProjectID], content)
		}
		if why.reason != aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_UNSPECIFIED {
			failures = append(failures, &aiv1.AnalysisFailure{IssueParentId: row.ID, Reason: why.reason, Message: why.text})
			continue
		}
		chosen = append(chosen, choice{row.ID, row.ContentHash})
	}
	return chosen, failures, nil
}

// findingsNamed reads the findings that a request names.
func (s *Tasks) findingsNamed(ctx context.Context, r *aiv1.CreateCombinedTaskRequest) ([]*ent.Finding, error) {
	ids := r.GetTask().GetIssueIds()
	if len(ids) == 0 && r.GetFilter() == nil {
		return nil, apierr.InvalidArgument("task.issueIds", "task.issueIds or filter must say which findings to analyse")
	}
	if err := s.requireFindings(ctx, ids); err != nil {
		return nil, err
	}
	var where []predicate.Finding
	if r.GetFilter() != nil {
		filter, err := issuefilter.Where(ctx, r.GetFilter(), time.Now())
		if err != nil {
			return nil, err
		}
		where = filter
	}
	if len(ids) > 0 {
		where = append(where, store.WithIDs[predicate.Finding](ids))
	} else {
		where = append(where, finding.StateIn(lifecycle.Unresolved, lifecycle.Muted))
	}
	rows, err := s.store.Reader.Finding.Query().Where(where...).Order(ent.Asc(finding.FieldID)).Limit(maxIssues+1).
		Select(finding.FieldID, finding.FieldProjectID, finding.FieldIssueType, finding.FieldContentHash, finding.FieldContent).All(ctx)
	if err == nil && len(rows) > maxIssues {
		return nil, apierr.InvalidArgument("filter", "filter selects more than %d findings, the maximum of one task: narrow it", maxIssues)
	}
	return rows, err
}

// requireFindings rejects ids of missing findings.
func (s *Tasks) requireFindings(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	found, err := s.store.Reader.Finding.Query().Where(store.WithIDs[predicate.Finding](ids), finding.StatusNEQ(lifecycle.Removed)).IDs(ctx)
	if err != nil {
		return err
	}
	there := make(map[int64]bool, len(found))
	for _, id := range found {
		there[id] = true
	}
	for _, id := range ids {
		if !there[id] {
			return apierr.NotFound("finding %d not found", id)
		}
	}
	return nil
}

func (s *Tasks) projectsOf(ctx context.Context, rows []*ent.Finding) (map[int64]*ent.Project, error) {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ProjectID
	}
	found, err := s.store.Reader.Project.Query().Where(func(q *entsql.Selector) { q.Where(store.InIDs(q.C(project.FieldID), ids)) }).All(ctx)
	projects := make(map[int64]*ent.Project, len(found))
	for _, row := range found {
		projects[row.ID] = row
	}
	return projects, err
}

// needsHost reports whether a finding cannot be analysed without code from the host. A dependency finding does not need
// code, and the file of a secret is never sent to a model.
func needsHost(issueType string, content *storev1.FindingContent) bool {
	return aboutCode(issueType) && strings.TrimSpace(content.GetSnippet()) == ""
}

// aboutCode reports whether a finding is about lines of code.
func aboutCode(issueType string) bool { return issueType == "sast" || issueType == "ai_sast" }

// whyUnreadable returns why a finding's code cannot be read from its host.
func (a *Assistant) whyUnreadable(configs []*ent.ScmConfig, row *ent.Project, content *storev1.FindingContent) accessError {
	if row == nil || row.URL == "" || content.GetCommit() == "" || content.GetLocation().GetFilePath() == "" {
		return accessError{aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_LOCAL_SCAN,
			"no code is stored, and the scan named no repository and commit to read it at: scan with the URL and the commit of the repository"}
	}
	_, _, why := a.connectionFor(configs, row)
	return why
}

// partsOfGroups returns the parts that tasks requested.
func partsOfGroups(ctx context.Context, tx *ent.Tx, ids []int64) (map[int64]prompt.Parts, error) {
	rows, err := tx.AiTaskGroup.Query().Where(func(q *entsql.Selector) { q.Where(store.InIDs(q.C(aitaskgroup.FieldID), ids)) }).All(ctx)
	parts := make(map[int64]prompt.Parts, len(rows))
	for _, row := range rows {
		chains := make([]aiv1.Chain, len(row.Chains))
		for i, word := range row.Chains {
			chains[i] = aiv1.Chain(aiv1.Chain_value[word])
		}
		parts[row.ID], _ = partsOf(chains)
	}
	return parts, err
}

func covers(made, wanted prompt.Parts) bool {
	return (made.Verdict || !wanted.Verdict) && (made.Guidance || !wanted.Guidance) && (made.Tags || !wanted.Tags)
}

// withoutAnalysed removes findings that already have all requested parts, and findings with an analysis in progress.
func (s *Tasks) withoutAnalysed(ctx context.Context, tx *ent.Tx, o order, chosen []choice, response *aiv1.CreateCombinedTaskResponse) ([]choice, error) {
	ids := make([]int64, len(chosen))
	for i, c := range chosen {
		ids[i] = c.id
	}
	var rows []struct {
		FindingID int64  `sql:"finding_id"`
		GroupID   int64  `sql:"group_id"`
		Status    string `sql:"status"`
	}
	err := tx.AiAnalysis.Query().Where(func(q *entsql.Selector) { q.Where(store.InIDs(q.C(aianalysis.FieldFindingID), ids)) },
		aianalysis.Or(
			aianalysis.And(aianalysis.Status(pending), aianalysis.CreatedAtGT(store.Micros(time.Now().Add(-staleAfter)))),
			aianalysis.And(aianalysis.Status(done), aianalysis.Trial(false)),
		)).Select(aianalysis.FieldFindingID, aianalysis.FieldGroupID, aianalysis.FieldStatus).Scan(ctx, &rows)
	if err != nil {
		return nil, err
	}
	groups := make([]int64, len(rows))
	for i, row := range rows {
		groups[i] = row.GroupID
	}
	parts, err := partsOfGroups(ctx, tx, groups)
	if err != nil {
		return nil, err
	}
	said, made := map[int64]string{}, map[int64]prompt.Parts{}
	for _, row := range rows {
		if row.Status == pending {
			said[row.FindingID] = "an analysis of it is under way"
			continue
		}
		of, all := parts[row.GroupID], made[row.FindingID]
		all = prompt.Parts{Verdict: all.Verdict || of.Verdict, Guidance: all.Guidance || of.Guidance, Tags: all.Tags || of.Tags}
		made[row.FindingID] = all
		if said[row.FindingID] == "" && !o.regenerate && !o.trial && covers(all, o.parts) {
			said[row.FindingID] = "it was analysed already: set regenerate to have it analysed again"
		}
	}
	var todo []choice
	for _, c := range chosen {
		if text, there := said[c.id]; there {
			response.Failures = append(response.Failures, &aiv1.AnalysisFailure{
				IssueParentId: c.id, Reason: aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_ALREADY_ANALYZED, Message: text,
			})
			continue
		}
		todo = append(todo, c)
	}
	return todo, nil
}
