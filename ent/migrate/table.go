package migrate

import (
	"slices"

	"entgo.io/ent/schema/field"
)

// Table describes a table of ent/schema.
type Table struct {
	Name       string
	Columns    []*Column
	PrimaryKey []*Column
	Indexes    []Index
}

// Column describes a column.
type Column struct {
	Name string
	Type field.Type
	// Increment: the database gives out the values, and gives none out twice.
	Increment, Nullable bool
	// SchemaType is the type in a database, by its dialect, if it is not the usual one of Type.
	SchemaType map[string]string
}

// Index describes an index.
type Index struct {
	Name   string
	Unique bool
	// Where is the condition of a partial index; empty for the others.
	Where   string
	Columns []string
}

func newTable(name string, columns []*Column, key []string, indexes ...Index) *Table {
	t := &Table{Name: name, Columns: columns, Indexes: indexes}
	for _, c := range columns {
		if slices.Contains(key, c.Name) {
			t.PrimaryKey = append(t.PrimaryKey, c)
		}
	}
	return t
}
