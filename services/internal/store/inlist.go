package store

import (
	"encoding/json"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// fewValues is how many values get one parameter each: enough for lists that people choose. A statement may have
// several lists, and SQLite allows 32,766 parameters.
const fewValues = 100

// RowsAtOnce is the batch size of bulk inserts. With up to 60 columns it stays below SQLite's limit on parameters.
const RowsAtOnce = 500

// In is the condition that a column has one of the values. More than fewValues are passed as one parameter. An
// empty list matches nothing.
func In[T string | int32 | int64](column string, values []T) *entsql.Predicate {
	if len(values) <= fewValues {
		return entsql.In(column, Parameters(values)...)
	}
	return InOneParameter(column, values)
}

// InOneParameter is In with a single parameter for any number of values, so that the SQL text does not depend on
// the number.
func InOneParameter[T string | int32 | int64](column string, values []T) *entsql.Predicate {
	if len(values) == 0 {
		return entsql.False()
	}
	return entsql.P(func(b *entsql.Builder) {
		b.WriteString(column)
		if b.Dialect() == dialect.Postgres {
			text, kind := arrayText(values)
			b.WriteString(" = ANY(CAST(").Arg(text).WriteString(" AS " + kind + "[]))")
			return
		}
		b.WriteString(" IN ")
		writeJSONList(b, values)
	})
}

func writeJSONList[T string | int32 | int64](b *entsql.Builder, values []T) {
	encoded, err := json.Marshal(values)
	if err != nil {
		b.AddError(err)
		return
	}
	b.WriteString("(SELECT value FROM json_each(").Arg(string(encoded)).WriteString("))")
}

// List is the right side of IN in a condition that is written as text.
func List[T string | int32 | int64](values []T) *entsql.Predicate {
	return entsql.P(func(b *entsql.Builder) {
		switch {
		case len(values) == 0:
			b.WriteString("(NULL)")
		case len(values) <= fewValues:
			b.Wrap(func(b *entsql.Builder) { b.Args(Parameters(values)...) })
		case b.Dialect() == dialect.Postgres:
			text, kind := arrayText(values)
			b.WriteString("(SELECT unnest(CAST(").Arg(text).WriteString(" AS " + kind + "[])))")
		default:
			writeJSONList(b, values)
		}
	})
}

// OneOf selects the rows of an ent table by the values of a field.
func OneOf[T string | int32 | int64](field string, values []T) func(*entsql.Selector) {
	return func(s *entsql.Selector) { s.Where(In(s.C(field), values)) }
}

// NoneOf selects the rows with none of these values in a field.
func NoneOf[T string | int32 | int64](field string, values []T) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		if len(values) > 0 {
			s.Where(entsql.Not(In(s.C(field), values)))
		}
	}
}

// arrayText returns a PostgreSQL array literal and the type of its elements.
func arrayText[T string | int32 | int64](values []T) (text, kind string) {
	var b strings.Builder
	kind = "bigint"
	for i, value := range values {
		b.WriteByte("{,"[min(i, 1)])
		switch v := any(value).(type) {
		case string:
			kind = "text"
			quoteElement(&b, v)
		default:
			number, _ := json.Marshal(v) // cannot fail for an integer
			b.Write(number)
		}
	}
	return b.String() + "}", kind
}

// inArray escapes the special characters of an array element.
var inArray = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quoteElement(b *strings.Builder, value string) {
	b.WriteByte('"')
	_, _ = inArray.WriteString(b, value) // a Builder never fails
	b.WriteByte('"')
}
