package dbcopy

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-sqlite3"
)

// sqliteTime is the format of River's times in SQLite, which compares them as text.
const sqliteTime = "2006-01-02 15:04:05.999"

// replacement replaces characters that PostgreSQL cannot store in text.
const replacement = "\uFFFD"

var (
	errNUL     = errors.New("holds a NUL byte, which PostgreSQL cannot store in text")
	errNotUTF8 = errors.New("is not valid UTF-8, which PostgreSQL cannot store in text")
)

// normalizer converts the values that both drivers return to common types: nil, int64, bool, float64, string (text
// and JSON), []byte, or time.Time in UTC with milliseconds.
type normalizer struct {
	// forPostgres rejects text that PostgreSQL cannot store. With replace the text is changed instead, and replaced
	// counts the values.
	forPostgres, replace bool
	replaced             int64
}

func (n *normalizer) value(c *column, raw any) (any, error) {
	if raw == nil {
		return nil, nil
	}
	switch c.kind {
	case kindInt, kindInt32:
		return intValue(c.kind, raw)
	case kindBool:
		return boolValue(raw)
	case kindFloat:
		return floatValue(raw)
	case kindBytes:
		if text, ok := raw.(string); ok {
			return []byte(text), nil
		}
		return asType[[]byte](raw)
	case kindTime:
		return timeValue(raw)
	}
	if b, ok := raw.([]byte); ok {
		raw = string(b)
	}
	text, ok := raw.(string)
	if !ok {
		return asType[string](raw)
	}
	return n.text(c.kind, text)
}

func asType[T any](raw any) (any, error) {
	if v, ok := raw.(T); ok {
		return v, nil
	}
	var want T
	return nil, fmt.Errorf("holds a %T where a %T belongs", raw, want)
}

func intValue(k kind, raw any) (any, error) {
	v, ok := raw.(int64)
	if !ok {
		return asType[int64](raw)
	}
	if k == kindInt32 && (v < math.MinInt32 || v > math.MaxInt32) {
		return nil, fmt.Errorf("holds %d, which needs more than 32 bits", v)
	}
	return v, nil
}

// boolValue also accepts SQLite's 0 and 1.
func boolValue(raw any) (any, error) {
	switch raw {
	case int64(0):
		return false, nil
	case int64(1):
		return true, nil
	}
	return asType[bool](raw)
}

// floatValue has no negative zero: SQLite stores whole numbers as integers, which have none.
func floatValue(raw any) (any, error) {
	if whole, ok := raw.(int64); ok {
		return float64(whole), nil
	}
	v, ok := raw.(float64)
	switch {
	case !ok:
		return asType[float64](raw)
	case math.IsNaN(v):
		return nil, errors.New("holds NaN, which SQLite stores as NULL")
	case v == 0:
		return float64(0), nil
	}
	return v, nil
}

func timeValue(raw any) (any, error) {
	if text, ok := raw.(string); ok {
		parsed, ok := parseTime(text)
		if !ok {
			return nil, fmt.Errorf("holds %q, which is not a time", text)
		}
		raw = parsed
	}
	v, ok := raw.(time.Time)
	if !ok {
		return asType[time.Time](raw)
	}
	return v.UTC().Round(time.Millisecond), nil
}

// parseTime reads the texts that River writes, and the formats in which the driver stores a time.Time.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range sqlite3.SQLiteTimestampFormats {
		if parsed, err := time.Parse(layout, strings.TrimSuffix(text, "Z")); err == nil {
			return parsed, true
		}
	}
	return time.Time{}, false
}

func (n *normalizer) text(k kind, text string) (string, error) {
	if !n.forPostgres {
		return text, nil
	}
	var problem error
	switch {
	case strings.IndexByte(text, 0) >= 0, k == kindJSON && escapesNUL(text, nil):
		problem = errNUL
	case !utf8.ValidString(text):
		problem = errNotUTF8
	default:
		return text, nil
	}
	if !n.replace {
		return "", problem
	}
	n.replaced++
	text = strings.ReplaceAll(strings.ToValidUTF8(text, replacement), "\x00", replacement)
	if k == kindJSON {
		var out strings.Builder
		escapesNUL(text, &out)
		text = out.String()
	}
	return text, nil
}

// escapesNUL reports whether JSON contains \u0000. If out is not nil, it also writes the text with the replacement.
func escapesNUL(text string, out *strings.Builder) (found bool) {
	const escape = `\u0000`
	for {
		at := strings.IndexByte(text, '\\')
		if at < 0 || at+1 >= len(text) {
			break
		}
		skip := at + 2 // an escaped backslash starts no escape
		if strings.HasPrefix(text[at:], escape) {
			found, skip = true, at+len(escape)
		}
		if out != nil && skip == at+len(escape) {
			out.WriteString(text[:at] + replacement)
		} else if out != nil {
			out.WriteString(text[:skip])
		}
		text = text[skip:]
	}
	if out != nil {
		out.WriteString(text)
	}
	return found
}

// appendRow appends a row in the encoding for checksums: for each value a type letter, and for variable types the
// length, then the bytes.
func appendRow(out []byte, columns []column, row []any) ([]byte, error) {
	for i, v := range row {
		switch v := v.(type) {
		case nil:
			out = append(out, 'n')
		case int64:
			out = binary.BigEndian.AppendUint64(append(out, 'i'), uint64(v)) //nolint:gosec // the same bits
		case bool:
			out = strconv.AppendBool(append(out, 'b'), v)
		case float64:
			out = binary.BigEndian.AppendUint64(append(out, 'f'), math.Float64bits(v))
		case time.Time:
			out = binary.BigEndian.AppendUint64(append(out, 't'), uint64(v.UnixMilli())) //nolint:gosec // the same bits
		case []byte:
			out = append(binary.BigEndian.AppendUint64(append(out, 'x'), uint64(len(v))), v...)
		case string:
			if columns[i].kind == kindJSON {
				canonical, err := canonicalJSON(v)
				if err != nil {
					return nil, fmt.Errorf("column %s does not hold JSON: %w", columns[i].name, err)
				}
				v = canonical
			}
			out = append(binary.BigEndian.AppendUint64(append(out, 's'), uint64(len(v))), v...)
		default:
			return nil, fmt.Errorf("column %s holds a %T", columns[i].name, v)
		}
	}
	return out, nil
}

// canonicalJSON writes JSON in a canonical form: sorted keys (the last duplicate wins), no whitespace, numbers by
// value. The result is for comparison only, because a number may have become a string.
func canonicalJSON(text string) (string, error) {
	switch text {
	case "null", "[]", "{}":
		return text, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("unexpected data after the value")
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(canonicalNumbers(value)); err != nil {
		return "", err
	}
	return out.String(), nil
}

func canonicalNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			v[key] = canonicalNumbers(element)
		}
	case []any:
		for i, element := range v {
			v[i] = canonicalNumbers(element)
		}
	case json.Number:
		return canonicalNumber(v.String())
	}
	return value
}

// canonicalNumber returns plain integers unchanged and other numbers as a fraction: 1.50 and 15e-1 are equal.
func canonicalNumber(text string) any {
	if text != "-0" && !strings.ContainsAny(text, ".eE") {
		return json.Number(text)
	}
	const maxDigits = 5000 // far beyond the range of a float64; a fraction with this many digits is still fast
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		if exponent, err := strconv.Atoi(text[at+1:]); err != nil || exponent > maxDigits || exponent < -maxDigits {
			return json.Number(text)
		}
	}
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		return json.Number(text)
	}
	if exact.IsInt() {
		return json.Number(exact.Num().String())
	}
	return "number " + exact.RatString()
}

// compactJSON removes whitespace, for storage in SQLite.
func compactJSON(text string) (string, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		return "", err
	}
	return out.String(), nil
}
