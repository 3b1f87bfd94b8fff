package ai

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/ai/memory"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// stages maps the API's stages to stored words.
var stages = map[aiv1.AiMemoryStage]string{
	aiv1.AiMemoryStage_AI_MEMORY_STAGE_UNSPECIFIED: memory.Live,
	aiv1.AiMemoryStage_AI_MEMORY_STAGE_LIVE:        memory.Live,
	aiv1.AiMemoryStage_AI_MEMORY_STAGE_SUGGESTED:   memory.Suggested,
	aiv1.AiMemoryStage_AI_MEMORY_STAGE_DELETED:     memory.Deleted,
}

// memoryOf converts a memory of a request, and checks that the objects it names exist.
func (s *Memories) memoryOf(ctx context.Context, db *ent.Client, m *aiv1.Memory) (*ent.AiMemory, error) {
	wanted := &ent.AiMemory{
		Content: strings.TrimSpace(m.GetContent()), RuleID: memoryID(m.GetRuleId()), ProjectID: memoryID(m.GetRepositoryId()),
		VulnerabilityClass: strings.TrimSpace(m.GetVulnerabilityClass()), Context: contextOf(m.GetContext()), Stage: stages[m.GetStage()], PathPrefixes: []string{},
	}
	if m.GetProjectTagId() != 0 {
		wanted.ProjectTagID = &m.ProjectTagId
	}
	for _, prefix := range m.GetPathPrefixes() {
		cleaned := memory.CleanPrefix(prefix)
		if cleaned == "" || cleaned == "." {
			return nil, apierr.InvalidArgument("memory.pathPrefixes",
				"memory.pathPrefixes: got %q, want a file or directory below the root of the repository; without any the memory is for all files", prefix)
		}
		wanted.PathPrefixes = append(wanted.PathPrefixes, cleaned)
	}
	slices.Sort(wanted.PathPrefixes)
	wanted.PathPrefixes = slices.Compact(wanted.PathPrefixes)
	return wanted, s.checkScope(ctx, db, "memory.", wanted)
}

// contextOf sorts contexts as the contract names them. The default is both.
func contextOf(words []string) []string {
	list := []string{}
	for _, word := range []string{memory.Triage, memory.Guidance} {
		if len(words) == 0 || slices.Contains(words, word) {
			list = append(list, word)
		}
	}
	return list
}

// checkScope rejects objects that the deployment does not have or the caller cannot see. It rejects memories for all
// projects from callers who see only some. field is the path of the message in the request.
func (s *Memories) checkScope(ctx context.Context, db *ent.Client, field string, m *ent.AiMemory) error {
	if m.RuleID != nil {
		visible := func(s *sql.Selector) { // the answer contains the rule's name
			if seen := tenant.OfVisibleRule(ctx, s, s.C(rule.FieldID)); seen != nil {
				s.Where(seen)
			}
		}
		if ok, err := db.Rule.Query().Where(rule.ID(*m.RuleID), visible).Exist(ctx); err != nil || !ok {
			return orUnknown(err, field+"ruleId", "rule", *m.RuleID)
		}
	}
	if m.ProjectID != nil {
		if ok, err := db.Project.Query().Where(project.ID(*m.ProjectID)).Exist(ctx); err != nil || !ok {
			return orUnknown(err, field+"repositoryId", "project", *m.ProjectID)
		}
	}
	if m.ProjectTagID != nil {
		if ok, err := db.Tag.Query().Where(tag.ID(*m.ProjectTagID)).Exist(ctx); err != nil || !ok {
			return orUnknown(err, field+"projectTagId", "tag", *m.ProjectTagID)
		}
	}
	return nil
}

// checkMemoryScope rejects memories for more than one project from callers who see only their teams' projects.
func checkMemoryScope(ctx context.Context, m *ent.AiMemory) error {
	if _, limited := tenant.Teams(ctx); limited && m.ProjectID == nil {
		return apierr.PermissionDenied("a memory for all projects needs access to all projects: you see only the projects of your teams, so name one as repositoryId")
	}
	return nil
}

func orUnknown(err error, field, what string, id int64) error {
	if err != nil {
		return err
	}
	return apierr.InvalidArgument(field, "%s: this deployment has no %s %d", field, what, id)
}

// storeMemory inserts a row.
func storeMemory(ctx context.Context, tx *ent.Tx, m *ent.AiMemory, details *storev1.AiMemoryDetails, createdBy string) (*ent.AiMemory, error) {
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(details)
	if err != nil {
		return nil, err
	}
	deploymentID, _ := tenant.FromContext(ctx)
	now := store.Now()
	return tx.AiMemory.Create().SetDeploymentID(deploymentID).SetContent(m.Content).SetNillableRuleID(m.RuleID).
		SetNillableProjectID(m.ProjectID).SetNillableProjectTagID(m.ProjectTagID).SetVulnerabilityClass(m.VulnerabilityClass).
		SetContext(m.Context).SetPathPrefixes(m.PathPrefixes).SetStage(m.Stage).SetDetails(encoded).SetCreatedBy(createdBy).
		SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
}

// replaceMemory updates a row to the wanted state.
func replaceMemory(row, m *ent.AiMemory) *ent.AiMemoryUpdateOne {
	update := row.Update().SetContent(m.Content).SetNillableRuleID(m.RuleID).SetNillableProjectID(m.ProjectID).
		SetNillableProjectTagID(m.ProjectTagID).SetVulnerabilityClass(m.VulnerabilityClass).SetContext(m.Context).
		SetPathPrefixes(m.PathPrefixes).SetStage(m.Stage).SetUpdatedAt(store.Now())
	if m.RuleID == nil {
		update.ClearRuleID()
	}
	if m.ProjectID == nil {
		update.ClearProjectID()
	}
	if m.ProjectTagID == nil {
		update.ClearProjectTagID()
	}
	return update
}
