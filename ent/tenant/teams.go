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

// WithTeams limits database calls, inside their deployment, to the projects of some teams and to what belongs to these
// projects; no team means no project. The limit outlives NewContext, and ends with System.
func WithTeams(ctx context.Context, ids []int64) context.Context {
	return context.WithValue(ctx, teamsKey{}, slices.Sorted(slices.Values(ids)))
}

// Teams returns the teams, by id, whose projects the context is limited to; limited is false when it sees all projects.
func Teams(ctx context.Context) (ids []int64, limited bool) {
	if IsSystem(ctx) {
		return nil, false
	}
	ids, limited = ctx.Value(teamsKey{}).([]int64)
	return ids, limited
}

// Visibility is equal for contexts of one deployment that see the same projects by the same teams. It is part of the
// key of whatever is remembered about a list: "" when the context sees all projects.
func Visibility(ctx context.Context) string {
	ids, limited := Teams(ctx)
	if !limited {
		return ""
	}
	return "teams" + string(idList(ids, '[', ']'))
}

// InVisibleProjects is the condition that a column is the id of a project which the context sees; nil when it sees all.
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

// OfVisibleRule is the condition that a column is the id of a rule of which a visible project has a finding; nil when
// the context sees all projects. Rules are the deployment's, but the name of one that only hidden projects use says
// what they are.
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

// inTeams passes all ids as one parameter: the text of a statement is the same for all callers, and prepared already.
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
