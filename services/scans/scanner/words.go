package scanner

import (
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The types of this file decode leniently. Scanners of different versions write the same field as a number, as a string
// or as null, and one odd field must not lose a finding.

// text is a string, or a number as written; anything else is empty.
type text string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := scalar(dec)
	*t = text(v)
	return err
}

// number is an integer, also as a string; anything else is 0.
type number int32

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *number) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := scalar(dec)
	value, _ := text(v).number()
	*n = number(value)
	return err
}

// number is the integer in a text. ok is false if there is none.
func (t text) number() (n int32, ok bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(string(t)), 64)
	if err != nil || f <= math.MinInt32 || f >= math.MaxInt32 || math.IsNaN(f) {
		return 0, false
	}
	return int32(f), true
}

// count is a number of bytes. It reads the same forms as number.
type count int64

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *count) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := scalar(dec)
	*n = 0
	if f, bad := strconv.ParseFloat(strings.TrimSpace(v), 64); bad == nil && math.Abs(f) < 1<<53 {
		*n = count(f)
	}
	return err
}

// flag is a boolean, also as a string; anything else is false.
type flag bool

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *flag) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := scalar(dec)
	*f = flag(strings.EqualFold(v, "true"))
	return err
}

// severity is 3 critical, 2 error or high, 1 warning or medium, 0 and others low, as a number or as a word.
type severity int32

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *severity) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := scalar(dec)
	switch strings.ToUpper(strings.TrimSpace(v)) {
	case "3", "CRITICAL":
		*s = 3
	case "2", "ERROR", "HIGH":
		*s = 2
	case "1", "WARNING", "MEDIUM":
		*s = 1
	case "4", "EXPERIMENT":
		*s = 4
	default:
		*s = 0
	}
	return err
}

// variant is the name of a sum type: "OSS", or the first element of ["PRO_REQUIRED", {…}].
type variant string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (v *variant) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*v = ""
	if dec.PeekKind() != '[' {
		s, err := scalar(dec)
		*v = variant(s)
		return err
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for first := true; dec.PeekKind() != ']'; first = false {
		s, err := scalar(dec)
		if err != nil {
			return err
		}
		if first {
			*v = variant(s)
		}
	}
	_, err := dec.ReadToken()
	return err
}

// texts is a list of strings, or a single one.
type texts []string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (t *texts) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*t = nil
	if dec.PeekKind() != '[' {
		s, err := scalar(dec)
		if s != "" {
			*t = texts{s}
		}
		return err
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		s, err := scalar(dec)
		if err != nil {
			return err
		}
		if s != "" {
			*t = append(*t, s)
		}
	}
	_, err := dec.ReadToken()
	return err
}

// raw is a value as written; null is empty.
type raw []byte

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (r *raw) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	*r = nil
	if err == nil && v.Kind() != 'n' {
		*r = append(raw(nil), v...)
	}
	return err
}

// scalar reads the next value: the text of a string, a number or boolean as written, or "" for anything else.
func scalar(dec *jsontext.Decoder) (string, error) {
	switch dec.PeekKind() {
	case '"':
		token, err := dec.ReadToken()
		if err != nil {
			return "", err
		}
		return token.String(), nil
	case '0', 't', 'f':
		v, err := dec.ReadValue()
		return string(v), err
	default:
		return "", dec.SkipValue()
	}
}
