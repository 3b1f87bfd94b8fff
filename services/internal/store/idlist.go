package store

import (
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// fewIDs is how many ids get one parameter each. PostgreSQL does not know the length of an array parameter, so it
// would plan such a statement each time, which costs more than looking up a few ids.
const fewIDs = 4

// InIDs is the condition that a column has one of the ids. More than fewIDs are passed as one parameter, because
// databases limit the number of parameters.
func InIDs(column string, ids []int64) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		b.WriteString(column)
		if 0 < len(ids) && len(ids) <= fewIDs {
			b.WriteString(" IN (").Args(Parameters(ids)...).WriteByte(')')
			return
		}
		list, before, after := idList(b.Dialect(), ids)
		b.WriteString(before).Arg(list).WriteString(after)
	})
}

// WithIDs selects the rows of an ent table by id.
func WithIDs[P ~func(*entsql.Selector)](ids []int64) P {
	return func(s *entsql.Selector) { s.Where(InIDs(s.C("id"), ids)) }
}

// InIDs returns the condition for handwritten SQL: the text after the column, with placeholders, and the
// parameters.
func (s *Store) InIDs(ids []int64) (condition string, parameters []any) {
	if 0 < len(ids) && len(ids) <= fewIDs {
		return " IN (?" + strings.Repeat(", ?", len(ids)-1) + ")", Parameters(ids)
	}
	list, before, after := idList(s.dialect, ids)
	return before + "?" + after, []any{list}
}

// IDRows writes a table of ids for a FROM clause. Its only column is id.
func IDRows(b *entsql.Builder, name string, ids []int64) {
	list, _, _ := idList(b.Dialect(), ids)
	if b.Dialect() == dialect.Postgres {
		b.WriteString("(SELECT unnest(CAST(").Arg(list).WriteString(" AS bigint[])) AS id) AS " + name)
		return
	}
	b.WriteString("(SELECT value AS id FROM json_each(").Arg(list).WriteString(")) AS " + name)
}

// Parameters returns one parameter for each value.
func Parameters[T any](list []T) []any {
	parameters := make([]any, len(list))
	for i, value := range list {
		parameters[i] = value
	}
	return parameters
}

func idList(dialectName string, ids []int64) (list, before, after string) {
	text := make([]byte, 1, 2+8*len(ids))
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, id, 10)
	}
	if dialectName == dialect.Postgres {
		text[0] = '{'
		return string(append(text, '}')), " = ANY(CAST(", " AS bigint[]))"
	}
	text[0] = '['
	return string(append(text, ']')), " IN (SELECT value FROM json_each(", "))"
}
