package apidoc

import (
	"fmt"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/compiler/protogen"
)

func (b *builder) pathParameter(v variable) (*openapi3.Parameter, error) {
	field := v.field()
	schema, err := b.valueSchema(field, false) // 64-bit integers are strings, as in the contract
	if err != nil {
		return nil, err
	}
	applyRules(schema, field, false)
	text := comment(field.Comments)
	if v.slashes {
		text = sentences(text, "May contain slashes, literally or as %2F.")
	}
	return &openapi3.Parameter{
		Name: v.name(), In: openapi3.ParameterInPath, Required: true, Description: text, Schema: schema,
	}, nil
}

// queryParameters adds a parameter for each field of message that is neither in the path nor in the body. Fields of
// nested messages are addressed with dots. Lists of messages cannot be query parameters: with bodyToo they are left to
// the body of the other binding.
func (b *builder) queryParameters(
	operation *openapi3.Operation, message *protogen.Message, prefix string,
	skip map[*protogen.Field]bool, bodyToo bool, outer []*protogen.Message,
) error {
	if slices.Contains(outer, message) {
		return fmt.Errorf("%s: a recursive message cannot be given in the query", message.Desc.FullName())
	}
	for _, field := range message.Fields {
		if skip[field] {
			continue
		}
		if field.Message != nil && !isTextual(field) {
			list := field.Desc.IsList() || field.Desc.IsMap()
			if list && bodyToo {
				continue
			}
			if list {
				return fmt.Errorf("%s: maps and lists of messages cannot be given in the query", field.Desc.FullName())
			}
			name := prefix + field.Desc.JSONName() + "."
			if err := b.queryParameters(operation, field.Message, name, skip, bodyToo, append(outer, message)); err != nil {
				return err
			}
			continue
		}
		schema, err := b.parameterSchema(field)
		if err != nil {
			return err
		}
		parameter := &openapi3.Parameter{
			Name: prefix + field.Desc.JSONName(), In: openapi3.ParameterInQuery, Description: comment(field.Comments),
			Required: prefix == "" && zeroRefused(field), Schema: schema, Deprecated: isDeprecated(field),
		}
		operation.AddParameter(parameter)
	}
	return nil
}

// isTextual reports whether a message field is a single string in a URL.
func isTextual(field *protogen.Field) bool {
	switch field.Message.Desc.FullName() {
	case "google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.FieldMask",
		"google.protobuf.BoolValue", "google.protobuf.StringValue", "google.protobuf.BytesValue",
		"google.protobuf.Int32Value", "google.protobuf.UInt32Value", "google.protobuf.Int64Value",
		"google.protobuf.UInt64Value", "google.protobuf.FloatValue", "google.protobuf.DoubleValue":
		return true
	default:
		return false
	}
}

// parameterSchema returns the schema of a field in a URL. There a 64-bit integer is neither a JSON number nor a string,
// so it is described as an integer with its limits.
func (b *builder) parameterSchema(field *protogen.Field) (*openapi3.SchemaRef, error) {
	schema, err := b.valueSchema(field, true)
	if err != nil {
		return nil, err
	}
	if field.Desc.IsList() {
		array := openapi3.NewArraySchema()
		array.Items = schema
		schema = array.NewRef()
	}
	applyRules(schema, field, false)
	return withDefault(schema, field), nil
}
