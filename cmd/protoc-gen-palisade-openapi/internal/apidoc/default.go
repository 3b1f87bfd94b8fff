package apidoc

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/compiler/protogen"
)

// defaultText finds the default in a comment: "Projects per page; 100 when absent." or "sast (default), sca or
// ai_sast." A text that is no value of the field, as in "all when absent", is no default.
var defaultText = regexp.MustCompile(`(?:^|[;.:,] )([A-Za-z0-9_]+) (?:when (?:absent|0)\b|\(default\))`)

// withDefault declares the value that a request without the field has, as the comment of the field names it.
func withDefault(schema *openapi3.SchemaRef, field *protogen.Field) *openapi3.SchemaRef {
	match := defaultText.FindStringSubmatch(comment(field.Comments))
	switch {
	case match == nil || field.Desc.IsMap():
	case field.Desc.IsList():
		if value, ok := defaultValue(schema.Value.Items.Value, match[1]); ok {
			schema.Value.Default = []any{value}
		}
	case field.Enum != nil:
		return withDefaultWord(schema, field.Enum, match[1])
	default:
		if value, ok := defaultValue(schema.Value, match[1]); ok {
			schema.Value.Default = value
		}
	}
	return schema
}

// defaultValue reads a value of the schema; ok is false if the word is none.
func defaultValue(schema *openapi3.Schema, word string) (value any, ok bool) {
	switch {
	case schema == nil || schema.Type == nil:
		return nil, false
	case schema.Type.Is(openapi3.TypeString) && schema.Format == "int64":
		_, err := strconv.ParseInt(word, 10, 64)
		return word, err == nil
	case schema.Type.Is(openapi3.TypeString):
		return word, slices.Contains(schema.Enum, any(word))
	}
	if json.Unmarshal([]byte(strings.ToLower(word)), &value) != nil {
		return nil, false
	}
	return value, schema.VisitJSON(value) == nil
}

// withDefaultWord is withDefault for enums.
func withDefaultWord(schema *openapi3.SchemaRef, enum *protogen.Enum, word string) *openapi3.SchemaRef {
	for _, value := range enum.Values {
		if name := string(value.Desc.Name()); name == word && value.Desc.Number() != 0 {
			if schema.Ref != "" { // siblings of a $ref are ignored in OpenAPI 3.0
				schema = openapi3.NewSchemaRef("", &openapi3.Schema{AllOf: openapi3.SchemaRefs{schema}})
			}
			schema.Value.Default = word
		}
	}
	return schema
}
