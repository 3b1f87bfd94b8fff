// Package byname finds projects by name. Source-code hosts ignore the case of letters in names, so a name means the
// project with exactly this name or, if there is none, the oldest one with the name in other letter case.
package byname

import (
	"context"
	"slices"
	"strings"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/projectname"
)

// Is selects the project that a name means in the deployment of ctx.
func Is(ctx context.Context, name string) predicate.Project {
	return func(s *sql.Selector) { s.Where(sql.In(s.C(project.FieldID), IDs(ctx, s, name))) }
}

// IDs selects the id of that project, or NULL, for a condition in the query s. Each of its two queries reads one index;
// with OR, SQLite reads all projects of a deployment as long as it has no statistics.
func IDs(ctx context.Context, s *sql.Selector, name string) *sql.Selector {
	deploymentID, _ := tenant.FromContext(ctx) // the tenant policy does not cover subqueries
	dialect := sql.Dialect(s.Dialect())
	p := dialect.Table(project.Table).As("named")
	keys := make([]any, 0, 2)
	for _, key := range keysOf(name) {
		keys = append(keys, key)
	}
	inDeployment := sql.EQ(p.C(project.FieldDeploymentID), deploymentID)
	exact := dialect.Select(p.C(project.FieldID)).From(p).Where(sql.And(inDeployment, sql.EQ(p.C(project.FieldName), name)))
	oldest := dialect.Select(sql.Min(p.C(project.FieldID))).From(p).Where(sql.And(inDeployment, sql.In(p.C(project.FieldNameKey), keys...)))
	return dialect.SelectExpr(sql.ExprFunc(func(b *sql.Builder) {
		b.WriteString("COALESCE((").Join(exact).WriteString("), (").Join(oldest).WriteString("))")
	}))
}

// keysOf are the keys under which a project with a name can be stored. Projects of earlier versions have names that are
// not in normal form.
func keysOf(name string) []string {
	return slices.Compact([]string{strings.ToLower(name), strings.ToLower(projectname.Normal(name))})
}

// All returns the projects that names mean, by the given spelling, without the names that mean none.
func All(ctx context.Context, db *ent.Client, names []string) (map[string]*ent.Project, error) {
	var keys []string
	for _, name := range names {
		keys = append(keys, keysOf(name)...)
	}
	rows, err := db.Project.Query().Where(project.Or(store.OneOf(project.FieldName, names), store.OneOf(project.FieldNameKey, keys))).Order(ent.Asc(project.FieldID)).
		Select(project.FieldID, project.FieldName, project.FieldNameKey).All(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*ent.Project, len(names))
	for _, name := range names {
		if row := Choose(rows, name); row != nil {
			found[name] = row
		}
	}
	return found, nil
}

// Choose returns the project of a list, ordered by id, that a name means; nil if there is none.
func Choose(rows []*ent.Project, name string) *ent.Project {
	var chosen *ent.Project
	for _, row := range rows {
		switch {
		case row.Name == name:
			return row
		case chosen == nil && slices.Contains(keysOf(name), row.NameKey):
			chosen = row
		}
	}
	return chosen
}
