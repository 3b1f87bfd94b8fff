package ai

import (
	"context"
	"fmt"
	"strconv"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aimemoryuse"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/ai/memory"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/store"
)

// convertMemories converts memories, with four queries for any number of them.
func convertMemories(ctx context.Context, db *ent.Client, rows ...*ent.AiMemory) ([]*aiv1.Memory, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	rules, projects, ids := map[int64]string{}, map[int64]string{}, make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
		if row.RuleID != nil {
			rules[*row.RuleID] = ""
		}
		if row.ProjectID != nil {
			projects[*row.ProjectID] = ""
		}
	}
	if err := readNames(ctx, db, rules, projects); err != nil {
		return nil, err
	}
	counts, err := preanalysis(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	list := make([]*aiv1.Memory, len(rows))
	for i, row := range rows {
		details := &storev1.AiMemoryDetails{}
		if err := proto.Unmarshal(row.Details, details); err != nil {
			return nil, fmt.Errorf("details of memory %d: %w", row.ID, err)
		}
		list[i] = convertMemory(row, details)
		if row.RuleID != nil {
			list[i].RuleId, list[i].RuleName = strconv.FormatInt(*row.RuleID, 10), rules[*row.RuleID]
		}
		if row.ProjectID != nil {
			list[i].RepositoryId, list[i].RepositoryName = strconv.FormatInt(*row.ProjectID, 10), projects[*row.ProjectID]
		}
		if list[i].PreanalysisCounts = counts[row.ID]; counts[row.ID] == nil {
			list[i].PreanalysisCounts = &aiv1.MemoryPreanalysisCounts{}
		}
	}
	return list, nil
}

func convertMemory(row *ent.AiMemory, details *storev1.AiMemoryDetails) *aiv1.Memory {
	out := &aiv1.Memory{
		Id: strconv.FormatInt(row.ID, 10), Content: row.Content, CreatedAt: timestamppb.New(store.Time(row.CreatedAt)), CreatedBy: row.CreatedBy,
		Context: row.Context, PathPrefixes: row.PathPrefixes, VulnerabilityClass: row.VulnerabilityClass,
		SuggestionSources: &aiv1.AiMemorySuggestionSources{},
	}
	switch row.Stage {
	case memory.Live:
		out.Stage = aiv1.AiMemoryStage_AI_MEMORY_STAGE_LIVE
	case memory.Suggested:
		out.Stage = aiv1.AiMemoryStage_AI_MEMORY_STAGE_SUGGESTED
	case memory.Deleted:
		out.Stage = aiv1.AiMemoryStage_AI_MEMORY_STAGE_DELETED
	}
	if row.ProjectTagID != nil {
		out.ProjectTagId = *row.ProjectTagID
	}
	for _, source := range details.GetSources() {
		out.SuggestionSources.Sources = append(out.SuggestionSources.Sources, &aiv1.AiMemorySource{
			Note: source.GetNote(), CreatedBy: source.GetCreatedBy(), CreatedAt: source.GetCreatedAt(),
			SampleIssueId: source.GetSampleIssueId(), PrCommentUrl: source.GetPrCommentUrl(), ReviewCommentId: source.GetReviewCommentId(),
		})
	}
	return out
}

// readNames adds the names of rules and projects. Deleted ones have none.
func readNames(ctx context.Context, db *ent.Client, rules, projects map[int64]string) error {
	ruleIDs, projectIDs := make([]int64, 0, len(rules)), make([]int64, 0, len(projects))
	for id := range rules {
		ruleIDs = append(ruleIDs, id)
	}
	for id := range projects {
		projectIDs = append(projectIDs, id)
	}
	checks, err := db.Rule.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(rule.FieldID), ruleIDs)) }).
		Select(rule.FieldID, rule.FieldName).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range checks {
		rules[row.ID] = row.Name
	}
	owners, err := db.Project.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(project.FieldID), projectIDs)) }).
		Select(project.FieldID, project.FieldName).All(ctx)
	for _, row := range owners {
		projects[row.ID] = row.Name
	}
	return err
}

// preanalysis counts verdicts for each memory: the verdict of each finding's last analysis with the memory in its
// prompt, grouped by the verdict of the last earlier analysis without it.
func preanalysis(ctx context.Context, db *ent.Client, memories []int64) (map[int64]*aiv1.MemoryPreanalysisCounts, error) {
	uses, err := db.AiMemoryUse.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(aimemoryuse.FieldMemoryID), memories)) }).
		Select(aimemoryuse.FieldID, aimemoryuse.FieldMemoryID, aimemoryuse.FieldAnalysisID, aimemoryuse.FieldFindingID).All(ctx)
	if err != nil || len(uses) == 0 {
		return nil, err
	}
	type pair struct{ memory, other int64 }
	findings, with, asked := map[int64]struct{}{}, map[pair]bool{}, map[pair]struct{}{}
	for _, u := range uses {
		findings[u.FindingID] = struct{}{}
		with[pair{u.MemoryID, u.AnalysisID}] = true
		asked[pair{u.MemoryID, u.FindingID}] = struct{}{}
	}
	ids := make([]int64, 0, len(findings))
	for id := range findings {
		ids = append(ids, id)
	}
	analyses, err := db.AiAnalysis.Query().Where(aianalysis.Status("done"), aianalysis.VerdictNEQ(""), func(s *entsql.Selector) {
		s.Where(store.InIDs(s.C(aianalysis.FieldFindingID), ids))
	}).Order(ent.Asc(aianalysis.FieldID)).Select(aianalysis.FieldID, aianalysis.FieldFindingID, aianalysis.FieldVerdict).All(ctx)
	if err != nil {
		return nil, err
	}
	of := map[int64][]*ent.AiAnalysis{}
	for _, a := range analyses {
		of[a.FindingID] = append(of[a.FindingID], a)
	}
	counts := map[int64]*aiv1.MemoryPreanalysisCounts{}
	for key := range asked {
		before, after, latest := "", "", ""
		for _, a := range of[key.other] {
			if with[pair{key.memory, a.ID}] {
				before, after = latest, a.Verdict
			} else {
				latest = a.Verdict
			}
		}
		if counts[key.memory] == nil {
			counts[key.memory] = &aiv1.MemoryPreanalysisCounts{}
		}
		countVerdict(counts[key.memory], before, after)
	}
	return counts, nil
}

func countVerdict(c *aiv1.MemoryPreanalysisCounts, before, after string) {
	switch {
	case after == verdict.TruePositive && before == after:
		c.RemainsTruePositive++
	case after == verdict.TruePositive:
		c.NewlyTruePositive++
	case after == verdict.FalsePositive && before == after:
		c.RemainsFalsePositive++
	case after == verdict.FalsePositive:
		c.NewlyFalsePositive++
	}
}
