package payload

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// object encodes one JSON object. Keys appear in the order of the calls.
type object struct {
	out  []byte
	some bool
}

func openObject(out []byte) *object { return &object{out: append(out, '{')} }

func (o *object) close() []byte { return append(o.out, '}') }

func (o *object) key(name string) {
	if o.some {
		o.out = append(o.out, ',')
	}
	o.some = true
	o.out = append(appendString(o.out, name), ':')
}

func (o *object) text(name, value string) {
	o.key(name)
	o.out = appendString(o.out, value)
}

// textOrNull writes null for an unknown value.
func (o *object) textOrNull(name, value string) {
	o.key(name)
	if value == "" {
		o.out = append(o.out, "null"...)
		return
	}
	o.out = appendString(o.out, value)
}

// textIfAny omits the key of an unknown value.
func (o *object) textIfAny(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

func (o *object) number(name string, value int64) {
	o.key(name)
	o.out = strconv.AppendInt(o.out, value, 10)
}

func (o *object) texts(name string, values []string) {
	o.key(name)
	o.out = append(o.out, '[')
	for i, value := range values {
		if i > 0 {
			o.out = append(o.out, ',')
		}
		o.out = appendString(o.out, value)
	}
	o.out = append(o.out, ']')
}

func (o *object) textsIfAny(name string, values []string) {
	if len(values) > 0 {
		o.texts(name, values)
	}
}

// values encodes an object of any JSON with sorted keys.
func (o *object) values(name string, values map[string]any) {
	o.key(name)
	o.out = appendMap(o.out, values)
}

func appendMap(out []byte, values map[string]any) []byte {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	o := openObject(out)
	for _, name := range names {
		o.key(name)
		o.out = appendValue(o.out, values[name])
	}
	return o.close()
}

// appendValue encodes a value decoded by encoding/json. Numbers are truncated to integers.
func appendValue(out []byte, value any) []byte {
	switch v := value.(type) {
	case string:
		return appendString(out, v)
	case bool:
		return strconv.AppendBool(out, v)
	case int:
		return strconv.AppendInt(out, int64(v), 10)
	case int64:
		return strconv.AppendInt(out, v, 10)
	case float64:
		if math.Abs(v) < 1<<62 { // false for NaN too
			return strconv.AppendInt(out, int64(v), 10)
		}
	case []any:
		out = append(out, '[')
		for i, item := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendValue(out, item)
		}
		return append(out, ']')
	case map[string]any:
		return appendMap(out, v)
	}
	return append(out, "null"...)
}

const hexDigits = "0123456789abcdef"

// appendString encodes a string as Python does with ensure_ascii. Invalid UTF-8 becomes U+FFFD.
func appendString(out []byte, s string) []byte {
	out = append(out, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			out = appendEscaped(out, r)
			i += size
			continue
		}
		out = appendASCII(out, c)
		i++
	}
	return append(out, '"')
}

func appendASCII(out []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(out, '\\', c)
	case '\n':
		return append(out, '\\', 'n')
	case '\r':
		return append(out, '\\', 'r')
	case '\t':
		return append(out, '\\', 't')
	case '\f':
		return append(out, '\\', 'f')
	case '\b':
		return append(out, '\\', 'b')
	}
	if c < ' ' || c > '~' {
		return appendUnit(out, uint16(c))
	}
	return append(out, c)
}

// appendEscaped escapes a rune as one or two UTF-16 units.
func appendEscaped(out []byte, r rune) []byte {
	if r < 1<<16 {
		return appendUnit(out, uint16(r))
	}
	r -= 1 << 16
	return appendUnit(appendUnit(out, uint16(0xd800+r>>10)), uint16(0xdc00+r&0x3ff))
}

func appendUnit(out []byte, unit uint16) []byte {
	return append(out, '\\', 'u', hexDigits[unit>>12], hexDigits[unit>>8&15], hexDigits[unit>>4&15], hexDigits[unit&15])
}
