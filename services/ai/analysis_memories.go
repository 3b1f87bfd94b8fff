package ai

import (
	"context"
	"slices"
	"strconv"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aimemory"
	"github.com/palisade/palisade/ent/projecttag"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/ai/memory"
	"github.com/palisade/palisade/services/ai/prompt"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// maxMemories is the maximum number of memories considered, newest first.
	maxMemories = 5000
	// memoryBytes is the maximum size of memories in one prompt.
	memoryBytes = 16 << 10
)

// memories returns the memories for the prompt about a finding: for the verdict and, if guidance is set, for advice and
// fixes.
func (a *Assistant) memories(ctx context.Context, s *subject, guidance bool) ([]prompt.Memory, error) {
	rows, err := a.store.Reader.AiMemory.Query().Where(aimemory.Stage(memory.Live)).Order(ent.Desc(aimemory.FieldID)).Limit(maxMemories).All(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	var tags []struct {
		TagID int64 `sql:"tag_id"`
	}
	err = a.store.Reader.ProjectTag.Query().Where(projecttag.ProjectID(s.ProjectID)).Select(projecttag.FieldTagID).Scan(ctx, &tags)
	if err != nil {
		return nil, err
	}
	facts := memory.Facts{
		RuleID: s.RuleID, ProjectID: s.ProjectID, Path: s.content.GetLocation().GetFilePath(), VulnerabilityClasses: s.rule.GetVulnerabilityClasses(),
	}
	for _, tag := range tags {
		facts.ProjectTagIDs = append(facts.ProjectTagIDs, tag.TagID)
	}
	chosen := memory.Choose(rows, facts, memory.Triage, memoryBytes)
	if guidance {
		for _, row := range memory.Choose(rows, facts, memory.Guidance, memoryBytes) {
			if !slices.ContainsFunc(chosen, func(other *ent.AiMemory) bool { return other.ID == row.ID }) {
				chosen = append(chosen, row)
			}
		}
	}
	out := make([]prompt.Memory, len(chosen))
	for i, row := range chosen {
		out[i] = prompt.Memory{ID: row.ID, Content: row.Content}
	}
	return out, nil
}

// addUses records the memories in the prompt. A memory that is not stored has no id.
func addUses(ctx context.Context, tx *ent.Tx, row *ent.AiAnalysis, result *storev1.AiResult) error {
	var uses []*ent.AiMemoryUseCreate
	for _, text := range result.GetMemoryIdsRendered() {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id == 0 {
			continue
		}
		uses = append(uses, tx.AiMemoryUse.Create().SetDeploymentID(row.DeploymentID).SetMemoryID(id).SetAnalysisID(row.ID).
			SetFindingID(row.FindingID).SetReferenced(slices.Contains(result.GetMemoryIdsReferenced(), text)))
	}
	for part := range slices.Chunk(uses, store.RowsAtOnce) {
		if err := tx.AiMemoryUse.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// promptFinding builds the model's input about the finding, without code.
func (s *subject) promptFinding() prompt.Finding {
	at, dependency := s.content.GetLocation(), s.content.GetFoundDependency()
	f := prompt.Finding{
		Type: s.IssueType, Severity: s.Severity, Confidence: s.rule.GetConfidence(),
		Rule: s.rule.GetName(), RuleText: s.rule.GetMessage(), HasHelp: s.rule.GetHelp() != "", Message: s.content.GetMessage(),
		Classes: slices.Concat(s.rule.GetCweNames(), s.rule.GetOwaspNames(), s.rule.GetVulnerabilityClasses()),
		Project: s.project.Name, Path: at.GetFilePath(), Line: at.GetLine(),
		Package: dependency.GetPackage(), Version: dependency.GetVersion(), Advisory: s.content.GetVulnerabilityIdentifier(),
	}
	for _, fix := range s.content.GetFixRecommendations() {
		f.FixedIn = append(f.FixedIn, fix.GetPackage()+" "+fix.GetVersion())
	}
	return f
}
