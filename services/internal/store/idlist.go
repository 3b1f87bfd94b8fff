package store

import (
	"strconv"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// InIDs is the condition that a column is one of many ids. They are one parameter, however many they are: databases cap
// the number of parameters.
func InIDs(column string, ids []int64) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		list, before, after := idList(b.Dialect(), ids)
		b.WriteString(column).WriteString(before).Arg(list).WriteString(after)
	})
}

// InIDs is the same condition for statements written by hand: the SQL behind the column, with one placeholder, and the
// parameter.
func (s *Store) InIDs(ids []int64) (condition, parameter string) {
	list, before, after := idList(s.dialect, ids)
	return before + "?" + after, list
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
