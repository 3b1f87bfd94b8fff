package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"entgo.io/ent/schema/field"
	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/services/internal/audit"
)

// edits returns statements that change a column of acme's rows: to another value, and to NULL where the column may be
// NULL.
func edits(table *migrate.Table, column *migrate.Column, which string) []string {
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

// sameMeaning returns statements after which a column of acme's rows still reads as before, or as nothing, or not at
// all. Entry 2 has no changes.
func sameMeaning(n *node, table *migrate.Table, column *migrate.Column, which string) (list []string) {
	name := column.Name
	text := func(expression string) string { return fmt.Sprintf("CAST(CAST(%s AS TEXT) AS BLOB)", expression) }
	changes := "CAST(changes AS TEXT)"
	if n.store.Postgres() {
		text = func(expression string) string { return fmt.Sprintf("CAST(%s AS JSON)", expression) }
	}
	switch {
	case column.Type == field.TypeJSON && which == " AND sequence = 2":
		list = append(list, text("'[]'"), text("'null'"))
		if !n.store.Postgres() {
			list = append(list, text("''"))
		}
	case column.Type == field.TypeJSON:
		for _, edit := range []string{
			`'"kind"', '"more":1,"kind"'`, `'"kind"', '"kind":"x","kind"'`, `'"kind"', '"Kind":"tag","kind"'`, `',', ', '`, `'"tag"', '"\u0074ag"'`,
		} {
			list = append(list, text("replace("+changes+", "+edit+")"))
		}
		list = append(list, text(changes+" || '\n'"))
	case name == "previous_hash" && which == " AND sequence = 1":
		list = append(list, "''")
		if !n.store.Postgres() {
			list = append(list, "x''")
		}
	}
	if !n.store.Postgres() && name != "id" { // the id of a row takes only numbers
		switch column.Type {
		case field.TypeInt64:
			list = append(list, "CAST("+name+" AS BLOB)", name+" + 0.5", name+" || 'x'")
		case field.TypeString:
			list = append(list, "CAST("+name+" AS BLOB)")
		default:
			list = append(list, "CAST("+name+" AS TEXT)")
		}
	}
	for i, value := range list {
		list[i] = fmt.Sprintf("UPDATE %s SET %s = %s WHERE deployment_id = 1%s", table.Name, name, value, which)
	}
	return list
}

// changesNothing reports whether an edit leaves the row as it is.
func changesNothing(edit, place string) bool {
	return strings.HasSuffix(place, "= 1") && (strings.Contains(edit, "previous_hash = NULL") || strings.Contains(edit, "previous_hash = CAST")) ||
		strings.HasSuffix(place, "= 2") && strings.Contains(edit, "changes = CAST(changes")
}

// TestEveryColumnIsSealed edits every column of the trail in the first, a middle and the last entry, and in the head.
func TestEveryColumnIsSealed(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		walked := 0
		for _, table := range migrate.Tables {
			places := []string{" AND sequence = 1", " AND sequence = 2", " AND sequence = 3", " AND sequence = 5"}
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
						if changesNothing(edit, place) || strings.Contains(edit, "changes = NULL") && strings.HasSuffix(place, "= 2") {
							continue
						}
						t.Run(edit, func(t *testing.T) {
							n := n.fresh(t)
							n.five()
							n.sql(edit)
							n.wantBroken(acme)
							n.wantBroken(acme) // and again, as it reads only
							n.tags(acme, "f")
							n.wantBroken(acme)
							n.reopen()
							n.wantBroken(acme)
						})
					}
					for _, edit := range sameMeaning(n, table, column, place) {
						if changesNothing(edit, place) {
							continue
						}
						t.Run(edit, func(t *testing.T) {
							n := n.fresh(t)
							n.five()
							n.sql(edit)
							n.wantBroken(acme)
							if n.wantIntact(globex, 2); column.Name == "deployment_id" {
								n.wantStrays(1)
							}
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

// five gives acme five entries, the second one without changes, and globex two.
func (n *node) five() {
	n.t.Helper()
	n.tags(acme, "a")
	must(n.t, n.trail.Append(n.t.Context(), ada(acme), acme, codes.PermissionDenied))
	n.tags(acme, "c", "d", "e")
	n.tags(globex, "a", "b")
	n.wantIntact(acme, 5)
}

// wantStrays requires a number of rows whose deployment is unknown.
func (n *node) wantStrays(want int) {
	n.t.Helper()
	owners, strays, err := audit.Owners(n.t.Context(), n.store)
	if err != nil || strays != want || !slices.Contains(owners, globex) {
		n.t.Errorf("owners %v, %d strays, %v", owners, strays, err)
	}
}

// TestEmptyHeadIsSealed: servers store NULL in the head of a trail without entries.
func TestEmptyHeadIsSealed(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		for _, column := range []string{"hash", "ids"} {
			t.Run(column, func(t *testing.T) {
				n := n.fresh(t)
				n.wantIntact(acme, 0)
				n.sql("UPDATE audit_heads SET " + column + " = '' WHERE deployment_id = 1")
				n.wantBroken(acme, "the head of the trail was edited")
			})
		}
	})
}

// TestEntriesBeforeTheChainAreSealed: no edit of an entry from before the chain reads like the entry.
func TestEntriesBeforeTheChainAreSealed(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.sql(oldEntry)
		n.asBefore()
		n.reopen()
		n.tags(acme, "a")
		n.wantIntact(acme, 1)
		edits := []string{"previous_hash = ''"}
		if !n.store.Postgres() {
			edits = append(edits, "changes = x''", "method = CAST(method AS BLOB)", "at = 1.5", "sequence = -0.5")
		}
		n.sql("CREATE TABLE before AS SELECT * FROM audit_entries WHERE sequence = 0")
		for _, edit := range edits {
			n.sql("UPDATE audit_entries SET " + edit + " WHERE sequence = 0")
			n.wantBroken(acme)
			n.sql("DELETE FROM audit_entries WHERE sequence <= 0")
			n.sql("INSERT INTO audit_entries SELECT * FROM before")
			n.wantIntact(acme, 1)
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
