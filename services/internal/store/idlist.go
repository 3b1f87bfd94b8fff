package store

import (
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// fewIDs is how many ids are a parameter each: PostgreSQL plans such a statement once, as it does not know how many ids
// a list will have, and making the plan costs more than looking them up.
const fewIDs = 4

// InIDs is the condition that a column is one of many ids. More than a few are one parameter, however many they are:
// databases cap the number of parameters.
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

// WithIDs chooses the rows of an ent table that have one of many ids.
func WithIDs[P ~func(*entsql.Selector)](ids []int64) P {
	return func(s *entsql.Selector) { s.Where(InIDs(s.C("id"), ids)) }
}

// InIDs is the same condition for statements written by hand: the SQL behind the column, with its placeholders, and the
// parameters.
func (s *Store) InIDs(ids []int64) (condition string, parameters []any) {
	if 0 < len(ids) && len(ids) <= fewIDs {
		return " IN (?" + strings.Repeat(", ?", len(ids)-1) + ")", Parameters(ids)
	}
	list, before, after := idList(s.dialect, ids)
	return before + "?" + after, []any{list}
}

// IDRows writes a table of ids for a FROM clause; id is its only column.
func IDRows(b *entsql.Builder, name string, ids []int64) {
	list, _, _ := idList(b.Dialect(), ids)
	if b.Dialect() == dialect.Postgres {
		b.WriteString("(SELECT unnest(CAST(").Arg(list).WriteString(" AS bigint[])) AS id) AS " + name)
		return
	}
	b.WriteString("(SELECT value AS id FROM json_each(").Arg(list).WriteString(")) AS " + name)
}

// Parameters makes each value of a list a parameter of its own.
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
