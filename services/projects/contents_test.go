package projects

import (
	"slices"
	"testing"

	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/digestpart"
	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/workflowrun"
)

// TestContentsAreWhole: a table with rows of projects is emptied when one of them is deleted, or a reason says why not.
func TestContentsAreWhole(t *testing.T) {
	t.Parallel()
	kept := map[string]string{
		digestpart.Table:  "until the next digest, which says that its findings are gone",
		delivery.Table:    "log of notifications, deleted by retention",
		workflowrun.Table: "log of workflows, deleted by retention",
		token.Table:       "revoked, so that the audit trail can name them",
	}
	for _, table := range migrate.Tables {
		owned := slices.ContainsFunc(table.Columns, func(c *migrate.Column) bool { return c.Name == "project_id" })
		if _, stays := kept[table.Name]; owned && !stays && !slices.Contains(contents, table.Name) {
			t.Errorf("%s keeps the rows of a deleted project: list it in contents, or here with a reason", table.Name)
		}
	}
}
