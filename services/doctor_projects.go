package services

import (
	"context"
	"strings"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// pairsShown is how many projects with equal names are listed.
const pairsShown = 20

// checkProjectNames lists projects whose names differ only in letter case. Earlier versions created them. They stay
// apart, and each has the scans that come under exactly its name.
func checkProjectNames(ctx context.Context, st *store.Store) Check {
	const name = "project names"
	rows, err := st.Reader.Project.Query().Where(func(s *sql.Selector) {
		other := sql.Dialect(s.Dialect()).Table(project.Table).As("other")
		s.Where(sql.Exists(sql.Dialect(s.Dialect()).Select(other.C(project.FieldID)).From(other).Where(sql.And(
			sql.ColumnsEQ(other.C(project.FieldDeploymentID), s.C(project.FieldDeploymentID)),
			sql.ColumnsEQ(other.C(project.FieldNameKey), s.C(project.FieldNameKey)),
			sql.ColumnsNEQ(other.C(project.FieldID), s.C(project.FieldID)),
		))))
	}).Order(ent.Asc(project.FieldDeploymentID, project.FieldNameKey, project.FieldID)).Limit(pairsShown + 1).
		Select(project.FieldName).Strings(tenant.System(ctx))
	switch {
	case err != nil:
		return failed(name, err.Error(), "check the database's log")
	case len(rows) == 0:
		return passed(name, "no two differ only in letter case")
	}
	list := strings.Join(rows[:min(len(rows), pairsShown)], ", ")
	if len(rows) > pairsShown {
		list += " and more"
	}
	return failed(name, "differ only in letter case: "+list, "let all scans use one of the names, then delete or rename the other project")
}
