package document

import (
	"fmt"
	"slices"
	"strings"
)

// kind is the kind of a value.
type kind int

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// value is a value in a YAML or JSON file.
type value struct {
	line int
	kind kind
	// text is a string's text, a number's digits as in JSON, or true or false.
	text string
	// keys are an object's keys in source order; items are its values, or a list's.
	keys  []string
	items []*value
}

// get returns an object's member; nil if it is absent or null, or v is not an object.
func (v *value) get(key string) *value {
	if v == nil || v.kind != object {
		return nil
	}
	if i := slices.Index(v.keys, key); i >= 0 && v.items[i].kind != null {
		return v.items[i]
	}
	return nil
}

// has reports whether an object has a key, including null values.
func (v *value) has(key string) bool { return v.kind == object && slices.Contains(v.keys, key) }

// only returns an object with some of the keys.
func (v *value) only(keys []string) *value {
	out := &value{line: v.line, kind: object}
	for i, key := range v.keys {
		if slices.Contains(keys, key) {
			out.keys, out.items = append(out.keys, key), append(out.items, v.items[i])
		}
	}
	return out
}

// isText reports whether v is a non-blank string.
func (v *value) isText() bool { return v != nil && v.kind == text && strings.TrimSpace(v.text) != "" }

// String formats the value for a message.
func (v *value) String() string {
	switch v.kind {
	case null:
		return "nothing"
	case array:
		return "a list"
	case object:
		return "an object"
	case text:
		return fmt.Sprintf("%q", clip(v.text))
	}
	return clip(v.text)
}

// clip shortens text that a message quotes.
func clip(text string) string {
	const most = 80
	if runes := []rune(text[:min(len(text), 4*most+4)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
