package dbcopy

import (
	"fmt"
	"strings"
	"sync"

	"entgo.io/ent/dialect"
	"entgo.io/ent/schema/field"

	"github.com/palisade/palisade/ent/migrate"
)

// kind is the type of a column, independent of the database.
type kind uint8

const (
	kindInt kind = iota
	kindInt32
	kindBool
	kindFloat
	kindText
	kindBytes
	// kindJSON is jsonb in PostgreSQL, which keeps the value but not the bytes.
	kindJSON
	// kindRawJSON is json in PostgreSQL, which keeps the bytes, because hashes cover them.
	kindRawJSON
	// kindTime is a time with milliseconds, as River stores it in SQLite. Palisade's own tables store times as kindInt.
	kindTime
)

// column is a column of a copied table.
type column struct {
	name string
	kind kind
	// pgRead and pgWrite convert a PostgreSQL column of another type: SQL after or around the column, and around the
	// placeholder (%s). Empty means no conversion.
	pgRead, pgWrite string
	// text: JSON is stored as TEXT in SQLite. ent stores it as BLOB.
	text bool
}

// table is a copied table.
type table struct {
	name    string
	key     string // the primary key, which orders the rows
	columns []column
	// sequence: ids of deleted rows are never reused.
	sequence bool
}

func (t *table) keyIsText() bool { return t.columns[t.keyIndex()].kind == kindText }

func (t *table) keyIndex() int {
	for i, c := range t.columns {
		if c.name == t.key {
			return i
		}
	}
	panic("dbcopy: no key column " + t.key + " in " + t.name) // a mistake in this file, which every test detects
}

// needsInsert reports whether a column needs pgWrite, which COPY does not support.
func (t *table) needsInsert() bool {
	for _, c := range t.columns {
		if c.pgWrite != "" {
			return true
		}
	}
	return false
}

// notCopied has the tables that are not copied, with the reason. A test compares it with a database.
var notCopied = map[string]string{
	"goose_db_version":   "the migrations of the target itself",
	"river_migration":    "the migrations of the target itself",
	"river_leader":       "a new leader is elected within seconds",
	"river_client":       "unused by this version of the job queue",
	"river_client_queue": "unused by this version of the job queue",
	journalTable:         "the marks of a copy",
}

// allTables lists the copied tables: Palisade's tables, then the job queue's.
var allTables = sync.OnceValue(func() []*table {
	var list []*table
	for _, t := range migrate.Tables {
		list = append(list, entTable(t))
	}
	return append(list, queueTables()...)
})

func entTable(t *migrate.Table) *table {
	if len(t.PrimaryKey) != 1 {
		panic("dbcopy: table " + t.Name + " has no primary key of one column") // every test detects it
	}
	out := &table{name: t.Name, key: t.PrimaryKey[0].Name, sequence: t.PrimaryKey[0].Increment}
	for _, c := range t.Columns {
		out.columns = append(out.columns, entColumn(t.Name, c))
	}
	return out
}

func entColumn(table string, c *migrate.Column) column {
	out := column{name: c.Name}
	switch c.Type {
	case field.TypeInt64, field.TypeInt, field.TypeUint32:
		out.kind = kindInt
	case field.TypeInt32, field.TypeInt16, field.TypeInt8:
		out.kind = kindInt32
	case field.TypeBool:
		out.kind = kindBool
	case field.TypeFloat64:
		out.kind = kindFloat
	case field.TypeString, field.TypeEnum:
		out.kind = kindText
	case field.TypeBytes:
		out.kind = kindBytes
	case field.TypeJSON:
		out.kind, out.pgRead = kindJSON, "::text"
		if c.SchemaType[dialect.Postgres] == "json" {
			out.kind = kindRawJSON
		}
	default:
		// every test detects it
		panic(fmt.Sprintf("dbcopy: column %s.%s has type %s, which is not known here", table, c.Name, c.Type))
	}
	return out
}

// queueTables lists River's tables. Their types differ: arrays and an enum on PostgreSQL, JSON and text on SQLite.
func queueTables() []*table {
	const (
		jsonElements = "CASE WHEN %[1]s::text IS NULL THEN NULL ELSE ARRAY(SELECT jsonb_array_elements(%[1]s::text::jsonb)) END"
		textElements = "CASE WHEN %[1]s::text IS NULL THEN NULL ELSE ARRAY(SELECT jsonb_array_elements_text(%[1]s::text::jsonb)) END"
		jsonValue    = "%s::text::jsonb"
	)
	job := &table{name: "river_job", key: "id", sequence: true, columns: []column{
		{name: "id", kind: kindInt},
		{name: "args", kind: kindJSON, pgRead: "::text", pgWrite: jsonValue},
		{name: "attempt", kind: kindInt32},
		{name: "attempted_at", kind: kindTime},
		{name: "attempted_by", kind: kindJSON, pgRead: "to_json(%s)::text", pgWrite: textElements, text: true},
		{name: "created_at", kind: kindTime},
		{name: "errors", kind: kindJSON, pgRead: "to_json(%s)::text", pgWrite: jsonElements, text: true},
		{name: "finalized_at", kind: kindTime},
		{name: "kind", kind: kindText},
		{name: "max_attempts", kind: kindInt32},
		{name: "metadata", kind: kindJSON, pgRead: "::text", pgWrite: jsonValue, text: true},
		{name: "priority", kind: kindInt32},
		{name: "queue", kind: kindText},
		{name: "scheduled_at", kind: kindTime},
		{name: "state", kind: kindText, pgRead: "::text", pgWrite: "%s::text::river_job_state"},
		{name: "tags", kind: kindJSON, pgRead: "to_json(%s)::text", pgWrite: textElements, text: true},
		{name: "unique_key", kind: kindBytes},
		{name: "unique_states", kind: kindInt, pgRead: "::int::bigint", pgWrite: "%s::int::bit(8)"},
	}}
	queue := &table{name: "river_queue", key: "name", columns: []column{
		{name: "name", kind: kindText},
		{name: "created_at", kind: kindTime},
		{name: "metadata", kind: kindJSON, pgRead: "::text", pgWrite: jsonValue, text: true},
		{name: "paused_at", kind: kindTime},
		{name: "updated_at", kind: kindTime},
	}}
	return []*table{job, queue}
}

// selectList returns the columns of a SELECT.
func (t *table) selectList(postgres bool) string {
	parts := make([]string, len(t.columns))
	for i, c := range t.columns {
		name := quote(c.name)
		switch {
		case !postgres && (c.kind == kindTime || c.text):
			name = "CAST(" + name + " AS TEXT)" // the driver would parse times, and JSON may be TEXT or BLOB
		case postgres && strings.HasPrefix(c.pgRead, "::"):
			name += c.pgRead
		case postgres && c.pgRead != "":
			name = fmt.Sprintf(c.pgRead, name)
		}
		parts[i] = name
	}
	return strings.Join(parts, ", ")
}

func (t *table) columnNames() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// quote quotes the name of a table or column. Names contain no quotes.
func quote(name string) string { return `"` + name + `"` }

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	return strings.Join(quoted, ", ")
}
