// Package existing says which names of projects, tags, teams and rules exist in the deployment of a context, also if
// the caller may not see them: it tells about names that are stored already.
package existing

import (
	"context"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// Projects returns the names that a project has in any letter case, with its own name.
func Projects(ctx context.Context, db *ent.Client, names []string) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = strings.ToLower(name)
	}
	deploymentID, _ := tenant.FromContext(ctx)
	rows, err := db.Project.Query().Where(project.DeploymentID(deploymentID), store.OneOf(project.FieldNameKey, keys)).
		Select(project.FieldID, project.FieldName, project.FieldNameKey).All(tenant.System(ctx))
	if err != nil {
		return nil, err
	}
	own := map[string]string{}
	for i, name := range names {
		for _, row := range rows {
			if row.NameKey == keys[i] && own[name] != name {
				own[name] = row.Name
			}
		}
	}
	return own, nil
}

// ProjectIDs returns the ids that a project has.
func ProjectIDs(ctx context.Context, db *ent.Client, ids []int64) (map[int64]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	found, err := db.Project.Query().Where(project.DeploymentID(deploymentID), store.OneOf(project.FieldID, ids)).IDs(tenant.System(ctx))
	return set(found), err
}

// Tags returns the names that a tag of projects has.
func Tags(ctx context.Context, db *ent.Client, names []string) (map[string]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	found, err := db.Tag.Query().Where(tag.DeploymentID(deploymentID), store.OneOf(tag.FieldName, names)).
		Select(tag.FieldName).Strings(tenant.System(ctx))
	return set(found), err
}

// Teams returns the names and ids that a team has.
func Teams(ctx context.Context, db *ent.Client, names []string) (map[string]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	rows, err := db.Team.Query().Where(team.DeploymentID(deploymentID),
		team.Or(store.OneOf(team.FieldName, names), store.OneOf(team.FieldID, numbers(names)))).
		Select(team.FieldID, team.FieldName).All(tenant.System(ctx))
	found := map[string]bool{}
	for _, row := range rows {
		found[row.Name], found[strconv.FormatInt(row.ID, 10)] = true, true
	}
	return found, err
}

// Rules returns the names and ids that a rule has: one that had a finding, or one that scanners get.
func Rules(ctx context.Context, db *ent.Client, names []string) (map[string]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	rows, err := db.Rule.Query().Where(rule.DeploymentID(deploymentID),
		rule.Or(store.OneOf(rule.FieldName, names), store.OneOf(rule.FieldID, numbers(names)))).
		Select(rule.FieldID, rule.FieldName).All(tenant.System(ctx))
	if err != nil {
		return nil, err
	}
	documents, err := db.RuleDocument.Query().Where(ruledocument.DeploymentID(deploymentID), store.OneOf(ruledocument.FieldName, names)).
		Select(ruledocument.FieldName).Strings(tenant.System(ctx))
	found := set(documents)
	for _, row := range rows {
		found[row.Name], found[strconv.FormatInt(row.ID, 10)] = true, true
	}
	return found, err
}

// numbers returns the names that may be ids.
func numbers(names []string) []int64 {
	ids := []int64{}
	for _, name := range names {
		if id, err := strconv.ParseInt(name, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func set[T comparable](list []T) map[T]bool {
	found := make(map[T]bool, len(list))
	for _, one := range list {
		found[one] = true
	}
	return found
}
