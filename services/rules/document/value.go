package document

import (
	"fmt"
	"slices"
	"strings"
)

// kind is what a value is.
type kind int

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// value is a value of a file, of YAML or of JSON.
type value struct {
	line int
	kind kind
	// text is the text; of numbers the digits as JSON writes them; of booleans true or false.
	text string
	// keys are those of an object, in the order of the source; items are their values, or those of a list.
	keys  []string
	items []*value
}

// get returns the member of an object; nil for one that is absent or null, and for anything but an object.
func (v *value) get(key string) *value {
	if v == nil || v.kind != object {
		return nil
	}
	if i := slices.Index(v.keys, key); i >= 0 && v.items[i].kind != null {
		return v.items[i]
	}
	return nil
}

// has reports whether an object has a key, be it null.
func (v *value) has(key string) bool { return v.kind == object && slices.Contains(v.keys, key) }

// isText reports a text that is not blank.
func (v *value) isText() bool { return v != nil && v.kind == text && strings.TrimSpace(v.text) != "" }

// String is the value in a message.
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

// clip shortens what is repeated in a message.
func clip(text string) string {
	const most = 80
	if runes := []rune(text[:min(len(text), 4*most+4)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
