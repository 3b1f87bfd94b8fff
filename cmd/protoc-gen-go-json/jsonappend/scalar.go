package jsonappend

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// replacement is U+FFFD in UTF-8, which replaces an invalid byte.
const replacement = "\uFFFD"

// String appends s as a JSON string. It escapes exactly what protojson escapes (quote, backslash and control
// characters; not HTML characters and U+2028), and replaces each invalid byte by U+FFFD.
func String(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := plainPrefix(s); i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[start:i]...)
			b = appendEscape(b, c)
			i++
			start = i
			i += plainPrefix(s[i:])
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[start:i]...)
			b = append(b, replacement...)
			i++
			start = i
			continue
		}
		i += size
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// plainPrefix returns the length of a prefix of s that needs no escaping. Most strings are plain ASCII, so it checks
// eight bytes at a time.
func plainPrefix(s string) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := s[i : i+8]
		w := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		// The high bit of a byte is set if it was set before (not ASCII), if subtracting the blank underflowed (control
		// characters), or if the byte equals a quote or a backslash.
		if (w|(w-ones*' ')|((w^ones*'"')-ones)|((w^ones*'\\')-ones))&high != 0 {
			break
		}
	}
	return i
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	default:
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}

// Bytes appends v as a string in padded standard base64.
func Bytes(b []byte, v []byte) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, v)
	return append(b, '"')
}

// Bool appends true or false.
func Bool(b []byte, v bool) []byte {
	return strconv.AppendBool(b, v)
}

// Int32 appends v as a JSON number.
func Int32(b []byte, v int32) []byte {
	return strconv.AppendInt(b, int64(v), 10)
}

// Uint32 appends v as a JSON number.
func Uint32(b []byte, v uint32) []byte {
	return strconv.AppendUint(b, uint64(v), 10)
}

// Int64 appends v as a JSON number: the form of a field with JsonForm.number.
func Int64(b []byte, v int64) []byte {
	return strconv.AppendInt(b, v, 10)
}

// Uint64 appends v as a JSON number: the form of a field with JsonForm.number.
func Uint64(b []byte, v uint64) []byte {
	return strconv.AppendUint(b, v, 10)
}

// QuotedInt64 appends v in quotes, protobuf's form of a 64-bit integer.
func QuotedInt64(b []byte, v int64) []byte {
	b = append(b, '"')
	b = strconv.AppendInt(b, v, 10)
	return append(b, '"')
}

// QuotedUint64 appends v in quotes, protobuf's form of a 64-bit integer.
func QuotedUint64(b []byte, v uint64) []byte {
	b = append(b, '"')
	b = strconv.AppendUint(b, v, 10)
	return append(b, '"')
}

// Float appends v as protojson prints a float: the shortest digits that read back as the same 32-bit value.
func Float(b []byte, v float32) []byte {
	abs := float32(math.Abs(float64(v)))
	return appendFloat(b, float64(v), abs != 0 && (abs < 1e-6 || abs >= 1e21), 32)
}

// Double appends v as protojson prints a double. NaN and the infinities are strings.
func Double(b []byte, v float64) []byte {
	abs := math.Abs(v)
	return appendFloat(b, v, abs != 0 && (abs < 1e-6 || abs >= 1e21), 64)
}

func appendFloat(b []byte, v float64, exponent bool, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Infinity"`...)
	case !exponent:
		return strconv.AppendFloat(b, v, 'f', -1, bits)
	}
	b = strconv.AppendFloat(b, v, 'e', -1, bits)
	// JavaScript and protojson write e-7 where strconv writes e-07.
	if n := len(b); n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

// Enum appends the name of an enum value, or its number when names (the map that protoc-gen-go generates)
// has none: a value from a newer client or server.
func Enum[E ~int32](b []byte, v E, names map[int32]string) []byte {
	name, known := names[int32(v)]
	if !known {
		return strconv.AppendInt(b, int64(v), 10)
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}
