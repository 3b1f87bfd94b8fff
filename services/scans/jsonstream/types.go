package jsonstream

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// keptItems is how many elements of a list inside one value are kept; the rest is skipped. Otherwise a few megabytes of
// "{}," would become hundreds of megabytes of structs. GitHub keeps 100 locations per result.
const keptItems = 1000

// List is a list that keeps only the first keptItems elements. null is an empty list.
type List[T any] []T

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (c *List[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '[':
	default:
		return wrongType(dec, "an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if len(*c) >= keptItems {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		var item T
		if err := json.UnmarshalDecode(dec, &item); err != nil {
			return err
		}
		*c = append(*c, item)
	}
	_, err := dec.ReadToken()
	return err
}

// Map is an object that keeps only the first keptItems members.
type Map[T any] map[string]T

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (d *Map[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '{':
	default:
		return wrongType(dec, "an object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*d = Map[T]{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		if len(*d) >= keptItems {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		var item T
		if err := json.UnmarshalDecode(dec, &item); err != nil {
			return err
		}
		(*d)[key] = item
	}
	_, err := dec.ReadToken()
	return err
}

// maxInt bounds every number that is read, so that it fits any integer column.
const maxInt = 1<<31 - 1

// Integer is a number that some tools write as 12.0.
type Integer int

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (n *Integer) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case 'n':
		return dec.SkipValue()
	case '0':
	default:
		return wrongType(dec, "an integer")
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	f, err := token.Float()
	if err != nil || f != float64(int64(f)) || f > maxInt || f < -maxInt {
		return expectation("an integer of at most 2147483647")
	}
	*n = Integer(f)
	return nil
}

// expectation is an error that names the expected type. [Describe] adds the field.
type expectation string

func (e expectation) Error() string { return "want " + string(e) }

// wrongType reports the type of the next value. It does not keep the value, which may be a secret.
func wrongType(dec *jsontext.Decoder, want string) error {
	got := KindName(dec.PeekKind())
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	return mismatch{got: got, want: want}
}

type mismatch struct{ got, want string }

func (m mismatch) Error() string { return "is " + m.got + ", want " + m.want }

// Texts is a string, a number as text, or a list of these.
type Texts []string

// maxTexts bounds how many texts of one property are kept. A rule with 20 tags is already unusual.
const maxTexts = 200

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *Texts) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = nil
	switch dec.PeekKind() {
	case '[':
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		for dec.PeekKind() != ']' {
			if err := l.scalar(dec); err != nil {
				return err
			}
		}
		_, err := dec.ReadToken()
		return err
	default:
		return l.scalar(dec)
	}
}

func (l *Texts) scalar(dec *jsontext.Decoder) error {
	kind := dec.PeekKind()
	if (kind != '"' && kind != '0') || len(*l) >= maxTexts {
		return dec.SkipValue()
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	text := strings.TrimSpace(Clean(token.String()))
	if text != "" {
		*l = append(*l, strings.Clone(Cut(text, 500)))
	}
	return nil
}
