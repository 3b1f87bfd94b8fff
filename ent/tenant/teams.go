package tenant

import (
	"context"
	"slices"
	"strconv"

	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/teamproject"
)

type teamsKey struct{}

// WithTeams limits database calls, within their deployment, to the projects of some teams and the data of these
// projects. No team means no project. The limit survives NewContext and is removed by System.
func WithTeams(ctx context.Context, ids []int64) context.Context {
	return context.WithValue(ctx, teamsKey{}, slices.Sorted(slices.Values(ids)))
}

// Teams returns the ids of the teams that limit the context. limited is false when the context sees all projects.
func Teams(ctx context.Context) (ids []int64, limited bool) {
	if IsSystem(ctx) {
		return nil, false
	}
	ids, limited = ctx.Value(teamsKey{}).([]int64)
	return ids, limited
}

// Visibility identifies what a context may see: contexts of one deployment with the same teams have the same value, and
// "" means all projects. It is part of the key of everything that is cached about a list.
func Visibility(ctx context.Context) string {
	ids, limited := Teams(ctx)
	if !limited {
		return ""
	}
	return "teams" + string(idList(ids, '[', ']'))
}

// InVisibleProjects returns the condition that a column has the id of a visible project; nil when all projects are
// visible.
func InVisibleProjects(ctx context.Context, s *sql.Selector, column string) *sql.Predicate {
	ids, limited := Teams(ctx)
	if !limited {
		return nil
	}
	deploymentID, _ := FromContext(ctx)
	links := sql.Table(teamproject.Table).As("visible")
	projects := sql.Dialect(s.Dialect()).Select(links.C(teamproject.FieldProjectID)).From(links)
	projects.Where(sql.And(
		sql.EQ(links.C(teamproject.FieldDeploymentID), deploymentID),
		inTeams(links.C(teamproject.FieldTeamID), ids),
	))
	return sql.In(column, projects)
}

// OfVisibleRule returns the condition that a column has the id of a rule with a finding in a visible project; nil when
// all projects are visible. Rules belong to the deployment, but the name of a rule can reveal what hidden projects are
// about.
func OfVisibleRule(ctx context.Context, s *sql.Selector, column string) *sql.Predicate {
	found := sql.Table(finding.Table).As("found")
	visible := InVisibleProjects(ctx, s, found.C(finding.FieldProjectID))
	if visible == nil {
		return nil
	}
	deploymentID, _ := FromContext(ctx)
	return sql.Exists(sql.Dialect(s.Dialect()).Select(found.C(finding.FieldID)).From(found).Where(sql.And(
		sql.EQ(found.C(finding.FieldDeploymentID), deploymentID),
		sql.ColumnsEQ(found.C(finding.FieldRuleID), column),
		visible,
	)))
}

// inTeams passes all ids as one parameter: the SQL is the same for all callers, so its prepared statement is reused.
func inTeams(column string, ids []int64) *sql.Predicate {
	return sql.P(func(b *sql.Builder) {
		b.WriteString(column)
		if b.Dialect() == dialect.Postgres {
			b.WriteString(" = ANY(CAST(").Arg(string(idList(ids, '{', '}'))).WriteString(" AS bigint[]))")
			return
		}
		b.WriteString(" IN (SELECT value FROM json_each(").Arg(string(idList(ids, '[', ']'))).WriteString("))")
	})
}

func idList(ids []int64, first, last byte) []byte {
	text := make([]byte, 1, 2+8*len(ids))
	text[0] = first
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, id, 10)
	}
	return append(text, last)
}
