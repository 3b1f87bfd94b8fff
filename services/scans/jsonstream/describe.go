package jsonstream

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Describe says why a value could not be decoded: the field, its type and the expected type. It never quotes the value.
func Describe(err error) string {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return "it cannot be decoded"
	}
	place := strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
	if place == "" {
		place = "it"
	}
	place = Cut(Clean(place), 200)
	var wrong mismatch
	var want expectation
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("%s %s", place, wrong.Error())
	case errors.As(err, &want):
		return fmt.Sprintf("%s is out of range, %s", place, want.Error())
	}
	return fmt.Sprintf("%s is %s, want %s", place, KindName(semantic.JSONKind), typeName(semantic.GoType))
}

// OverSize says that a value has more than max bytes.
func OverSize(max int64) string {
	return fmt.Sprintf("it has more than %d bytes, the most that one value may have", max)
}

// KindName is the kind of a value in words: "a string", "an object".
func KindName(k jsontext.Kind) string {
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
