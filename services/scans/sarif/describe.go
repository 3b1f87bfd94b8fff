package sarif

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// describe says why a value could not be decoded: the field, its type and the expected type. It never quotes the value.
func describe(err error) string {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return "it cannot be decoded"
	}
	place := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
	if place == "" {
		place = "it"
	}
	place = cut(clean(place), 200)
	var wrong mismatch
	var want expectation
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("%s %s", place, wrong.Error())
	case errors.As(err, &want):
		return fmt.Sprintf("%s is out of range, %s", place, want.Error())
	}
	return fmt.Sprintf("%s is %s, want %s", place, kindName(semantic.JSONKind), typeName(semantic.GoType))
}

func overSize(l Limits) string {
	return fmt.Sprintf("it has more than %d bytes, the most that one value may have", l.MaxResultBytes)
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "not a value"
}

func typeName(t reflect.Type) string {
	if t == nil {
		return "another type"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

// clean makes a text safe to store and to show: valid UTF-8 (PostgreSQL rejects anything else) without NUL.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return s
}

// cut shortens a text to at most max bytes at a character boundary, and marks the cut. The copy does not keep the
// original alive.
func cut(s string, max int) string {
	const mark = "…"
	if len(s) <= max {
		return s
	}
	keep := max - len(mark)
	if keep < 0 {
		keep = 0
	}
	for keep > 0 && !utf8.RuneStart(s[keep]) {
		keep--
	}
	return s[:keep] + mark
}

// oneLine collapses all white space, for texts in lists. The copy does not keep the original alive, which may be mostly
// white space.
func oneLine(s string) string { return strings.Clone(strings.Join(strings.Fields(s), " ")) }
