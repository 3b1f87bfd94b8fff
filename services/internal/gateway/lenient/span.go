package lenient

import (
	"bytes"
	"encoding/json"
	"iter"
)

// The functions below walk valid JSON without allocating. A value that is not needed costs nothing, and lists are
// counted before their elements are decoded.

// skipSpace returns the offset of the next byte that is not white space.
func skipSpace(data []byte, i int) int {
	for data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r' {
		i++
	}
	return i
}

// skipString returns the offset after a string that begins at i.
func skipString(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue returns the offset after a value that begins at i.
func skipValue(data []byte, i int) int {
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		return skipNested(data, i)
	}
	for i < len(data) && bytes.IndexByte([]byte(" \t\r\n,]}"), data[i]) < 0 {
		i++
	}
	return i
}

// skipNested returns the offset after an object or a list that begins at i.
func skipNested(data []byte, i int) int {
	depth := 0
	for {
		switch data[i] {
		case '"':
			i = skipString(data, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
}

// members yields the raw names and values of an object.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := skipSpace(object, 1); object[i] != '}'; {
			end := skipString(object, i)
			name := object[i:end]
			i = skipSpace(object, skipSpace(object, end)+1) // after the colon
			end = skipValue(object, i)
			if !yield(name, object[i:end]) {
				return
			}
			if i = skipSpace(object, end); object[i] == ',' {
				i = skipSpace(object, i+1)
			}
		}
	}
}

// elements yields the raw values of a list.
func elements(list []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		for i := skipSpace(list, 1); list[i] != ']'; {
			end := skipValue(list, i)
			if !yield(list[i:end]) {
				return
			}
			if i = skipSpace(list, end); list[i] == ',' {
				i = skipSpace(list, i+1)
			}
		}
	}
}

// count returns the number of elements of a list or members of an object.
func count(data []byte) int {
	n := 0
	if data[0] == '[' {
		for range elements(data) {
			n++
		}
		return n
	}
	for range members(data) {
		n++
	}
	return n
}

// values returns an upper bound for the number of values inside an object or a list, at any depth: one more than its
// commas and opening brackets.
func values(data []byte) int {
	n := 1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = skipString(data, i) - 1
		case ',', '{', '[':
			n++
		}
	}
	return n
}

// unquote decodes a string.
func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	plain := true
	for _, c := range inner {
		if c == '\\' || c >= 0x80 {
			plain = false
			break
		}
	}
	if plain {
		return string(inner)
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is valid JSON; invalid UTF-8 becomes U+FFFD
	return text
}

// word decodes a scalar value: nil, a bool, a json.Number or a string. For an object or a list it returns an empty one,
// which is enough for errors.
func word(data []byte) any {
	switch data[0] {
	case '"':
		return unquote(data)
	case 't', 'f':
		return data[0] == 't'
	case 'n':
		return nil
	case '{':
		return map[string]any{}
	case '[':
		return []any{}
	}
	return json.Number(data)
}

func isNull(data []byte) bool { return data[0] == 'n' }
