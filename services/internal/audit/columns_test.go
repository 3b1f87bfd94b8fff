package audit_test

import (
	"fmt"
	"strings"
	"testing"

	"entgo.io/ent/dialect/sql/schema"
	"entgo.io/ent/schema/field"

	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services/internal/audit"
)

// edits returns statements that change a column of acme's rows: to another value, and to NULL where the column may be
// NULL.
func edits(table *schema.Table, column *schema.Column, which string) []string {
	var value string
	switch column.Type {
	case field.TypeInt64:
		value = column.Name + " + 1000"
	case field.TypeBytes:
		value = "previous_hash" // of the same type on both databases
		if column.Name == "previous_hash" {
			value = "hash"
		}
		if table.Name == "audit_heads" {
			value = "(SELECT hash FROM audit_entries WHERE deployment_id = 2 AND sequence = 1)"
		}
	case field.TypeJSON:
		value = `'[{"kind":"tag","id":"9"}]'`
	default:
		value = "'x'"
	}
	list := []string{value}
	if column.Nullable {
		list = append(list, "NULL")
	}
	for i, value := range list {
		list[i] = fmt.Sprintf("UPDATE %s SET %s = %s WHERE deployment_id = 1%s", table.Name, column.Name, value, which)
	}
	return list
}

// TestEveryColumnIsSealed edits every column of the trail in the first, a middle and the last entry, and in the head.
func TestEveryColumnIsSealed(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		walked := 0
		for _, table := range migrate.Tables {
			places := []string{" AND sequence = 1", " AND sequence = 3", " AND sequence = 5"}
			switch table.Name {
			case "audit_entries":
			case "audit_heads":
				places = []string{""}
			default:
				continue
			}
			for _, column := range table.Columns {
				walked++
				for _, place := range places {
					for _, edit := range edits(table, column, place) {
						if strings.Contains(edit, "previous_hash = NULL") && strings.HasSuffix(place, "= 1") {
							continue // it is NULL
						}
						t.Run(edit, func(t *testing.T) {
							n := n.fresh(t)
							n.tags(acme, "a", "b", "c", "d", "e")
							n.tags(globex, "a", "b")
							n.wantIntact(acme, 5)
							n.sql(edit)
							n.wantBroken(acme)
							n.wantBroken(acme) // and again, as it reads only
							n.tags(acme, "f")
							n.wantBroken(acme)
							n.reopen()
							n.wantBroken(acme)
						})
					}
				}
			}
		}
		if walked < 20 {
			t.Errorf("only %d columns", walked)
		}
	})
}

// TestIDsOfAnOldStore: a chain from before the seal of ids verifies as before. The next start seals the ids, and so
// does the next entry after one of a server of that version.
func TestIDsOfAnOldStore(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		edit := func(sequence int) (undo func()) {
			n.sql(fmt.Sprintf("UPDATE audit_entries SET id = id + 1000 WHERE deployment_id = 1 AND sequence = %d", sequence))
			return func() {
				n.sql(fmt.Sprintf("UPDATE audit_entries SET id = id - 1000 WHERE deployment_id = 1 AND sequence = %d", sequence))
			}
		}
		n.tags(acme, "a", "b", "c")
		n.trail.ForgetIDs(t)
		n.wantIntact(acme, 3)
		n.wantIntact(globex, 0)
		n.reopen()
		n.wantIntact(acme, 3)
		undo := edit(2)
		n.wantBroken(acme, "the id of an entry")
		undo()
		n.wantIntact(acme, 3)
		n.sql("UPDATE audit_heads SET ids = NULL WHERE deployment_id = 1")
		n.wantBroken(acme, "the seal of the entries' ids was removed")

		n.tags(globex, "a")
		old := n.copyOf("audit_heads")
		n.tags(globex, "b")
		n.sql("UPDATE audit_heads SET ids = (SELECT ids FROM " + old + " WHERE deployment_id = 2) WHERE deployment_id = 2") // as an older server leaves it
		if found := n.verify(globex); len(found.Broken) > 0 || found.UnsealedIDs != 1 {
			t.Errorf("got %+v", found)
		}
		n.tags(globex, "c")
		if found := n.verify(globex); len(found.Broken) > 0 || found.UnsealedIDs != 0 {
			t.Errorf("got %+v", found)
		}
		n.sql("DROP TABLE " + old)
		n.sql("UPDATE audit_entries SET id = id + 1000 WHERE deployment_id = 2 AND sequence = 2")
		n.wantBroken(globex, "the id of an entry")
	})
}

// TestOriginsOfBothVersions: an origin without the mark of sealed ids is read, and keeps what it says.
func TestOriginsOfBothVersions(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.tags(acme, "a")
		n.trail.ForgetIDs(t)
		n.reopen()
		for _, deployment := range []int64{acme, globex} {
			found := n.verify(deployment)
			if found.Origin == nil || !found.Origin.IDs || found.Origin.How != audit.OriginCreated || found.Origin.Since == 0 {
				t.Errorf("got %+v", found.Origin)
			}
		}
	})
}
