package store

import (
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// Parted writes the condition of ent's predicates on the rows of a selector, alone.
func Parted[P ~func(*entsql.Selector)](s *entsql.Selector, table *entsql.SelectTable, where ...P) *entsql.Predicate {
	part := entsql.Dialect(s.Dialect()).Select().From(table)
	for _, p := range where {
		p(part)
	}
	return part.P()
}

// Unindexed keeps SQLite from finding rows by an index of the conditions: a plus in front of them is all that takes.
func Unindexed[P ~func(*entsql.Selector)](where ...P) P { return Wrapped("+(", ")", where...) }

// Wrapped puts SQL of SQLite around conditions.
func Wrapped[P ~func(*entsql.Selector)](before, after string, where ...P) P {
	return func(s *entsql.Selector) {
		inner := Parted(s, s.Table(), where...)
		if s.Dialect() != dialect.SQLite {
			s.Where(inner)
			return
		}
		s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString(before).Join(inner).WriteString(after) }))
	}
}
