package store

import (
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// Unindexed keeps SQLite from choosing an index for these conditions. A unary plus before an expression disables
// its index.
func Unindexed[P ~func(*entsql.Selector)](where ...P) P {
	return func(s *entsql.Selector) {
		part := entsql.Dialect(s.Dialect()).Select().From(s.Table())
		for _, p := range where {
			p(part)
		}
		if s.Dialect() != dialect.SQLite {
			s.Where(part.P())
			return
		}
		s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString("+(").Join(part.P()).WriteByte(')') }))
	}
}
