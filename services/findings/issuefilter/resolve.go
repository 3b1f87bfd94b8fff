package issuefilter

import (
	"context"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// ProjectNames select projects. The values of a field are alternatives, and an empty field selects all.
type ProjectNames struct {
	Names        []string // case-insensitive
	Visibilities []string
	Tags         []string
	Teams        []string // and their descendants
	// SeenTeams are the teams that the caller may know of; nil means all. Other teams are like missing ones.
	SeenTeams []int64
}

// text is the condition on projects, after the condition on their deployment.
func (p ProjectNames) text(deploymentID int64) (rest []any) {
	if len(p.Names) > 0 {
		keys := make([]string, len(p.Names))
		for i, name := range p.Names {
			keys[i] = strings.ToLower(name)
		}
		rest = append(rest, " AND name_key IN ", anyOf(keys))
	}
	if len(p.Visibilities) > 0 {
		rest = append(rest, " AND visibility IN ", anyOf(p.Visibilities))
	}
	if len(p.Tags) > 0 {
		rest = append(rest, " AND id IN (SELECT l.project_id FROM project_tags l JOIN tags t ON t.id = l.tag_id WHERE l.deployment_id = ",
			arg{deploymentID}, " AND t.deployment_id = ", arg{deploymentID}, " AND t.name IN ", anyOf(p.Tags), ")")
	}
	if len(p.Teams) > 0 { // teams have at most three levels (contract facts 2.5)
		rest = append(rest, " AND id IN (SELECT l.project_id FROM team_projects l JOIN teams t ON t.id = l.team_id",
			" LEFT JOIN teams above ON above.id = t.parent_id LEFT JOIN teams top ON top.id = above.parent_id WHERE l.deployment_id = ",
			arg{deploymentID}, " AND t.deployment_id = ", arg{deploymentID}, " AND (", p.isNamed("t"), " OR ", p.isNamed("above"), " OR ", p.isNamed("top"), "))")
	}
	return rest
}

// isNamed is the condition that a team of a table is one of the named ones.
func (p ProjectNames) isNamed(table string) *entsql.Predicate {
	named := []any{table + ".name IN ", anyOf(p.Teams)}
	if p.SeenTeams != nil {
		named = append(append([]any{"("}, named...), " AND ", store.InIDs(table+".id", p.SeenTeams), ")")
	}
	return text(named...)
}

// RuleNames select rules. The values of a field are alternatives, and an empty field selects all.
type RuleNames struct {
	Names       []string
	Categories  []string
	Confidences []string
	SecretTypes []string // the type that a rule states, or its name
	Origins     []string
}

// text is the condition on rules, after the condition on their deployment.
func (r RuleNames) text() (rest []any) {
	for _, field := range []struct {
		column string
		values []string
	}{{"name", r.Names}, {"category", r.Categories}, {"confidence", r.Confidences}, {"origin", r.Origins}} {
		if len(field.values) > 0 {
			rest = append(rest, " AND "+field.column+" IN ", anyOf(field.values))
		}
	}
	if len(r.SecretTypes) > 0 {
		rest = append(rest, " AND (secret_type IN ", anyOf(r.SecretTypes), " OR name IN ", anyOf(r.SecretTypes), ")")
	}
	return rest
}

// condition is text as a condition of a query of the table itself.
func condition(rest []any) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		if len(rest) > 0 {
			s.Where(text(append([]any{strings.TrimPrefix(rest[0].(string), " AND ")}, rest[1:]...)...))
		}
	}
}

// InProjects is the condition on projects, with their ids looked up, so that the index by project applies. Without ids
// and names it has the projects that the caller sees, if they are few: the privacy policy alone hides their number
// from the planner, which would scan the findings of all projects until the page is full.
func InProjects(ctx context.Context, db *ent.ProjectClient, ids []int64, names ProjectNames) (list []Condition, err error) {
	if len(ids) > 0 {
		list = append(list, ofProjects(ids))
	}
	deploymentID, _ := tenant.FromContext(ctx)
	rest := names.text(deploymentID)
	if len(rest) == 0 {
		if len(ids) > 0 {
			return list, nil
		}
		return visibleProjects(ctx, db)
	}
	named, err := db.Query().Where(condition(rest)).IDs(ctx)
	if err != nil {
		return nil, err
	}
	return append(list, ofProjects(named)), nil
}

func visibleProjects(ctx context.Context, db *ent.ProjectClient) ([]Condition, error) {
	if _, limited := tenant.Teams(ctx); !limited {
		return nil, nil
	}
	const few = 50
	ids, err := db.Query().Limit(few + 1).IDs(ctx)
	if err != nil || len(ids) > few {
		return nil, err
	}
	return []Condition{ofProjects(ids)}, nil
}

// ofProjects limits findings to projects. Many ids become one parameter: databases cap the number of parameters.
func ofProjects(ids []int64) Condition {
	const few = 1000
	if len(ids) <= few {
		return hasID(finding.FieldProjectID, ids)
	}
	return Condition{Column: finding.FieldProjectID, Where: func(s *entsql.Selector) {
		s.Where(store.InIDs(s.C(finding.FieldProjectID), ids))
	}}
}

func hasID(column string, ids []int64) Condition {
	return Condition{Column: column, NumValues: len(ids), Values: ids, None: len(ids) == 0, Where: predicate.Finding(store.OneOf(column, ids))}
}

// OfRules is the condition on rules. A few rules are looked up and use the index by rule. Many rules match most of the
// list, so scanning it in its order until the page is full is cheaper.
func OfRules(ctx context.Context, db *ent.RuleClient, names RuleNames) ([]Condition, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	rest := names.text()
	if len(rest) == 0 {
		return nil, nil
	}
	const few = 50
	ids, err := db.Query().Where(rule.DeploymentID(deploymentID), condition(rest)).Limit(few + 1).IDs(ctx)
	if err != nil {
		return nil, err
	}
	if len(ids) <= few {
		return []Condition{hasID(finding.FieldRuleID, ids)}, nil
	}
	return []Condition{of(deploymentID, term{column: finding.FieldRuleID, rows: rest})}, nil
}
