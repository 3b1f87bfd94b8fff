package apidoc

import (
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/annotations"
)

const schemaRefPrefix = "#/components/schemas/"

// schemaName returns the component name of a message or enum, such as findings.v1.Finding. The package is part of it,
// so that a new message in another package never renames an old one.
func schemaName(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), "palisade.")
}

func refTo(name string) *openapi3.SchemaRef {
	return openapi3.NewSchemaRef(schemaRefPrefix+name, nil)
}

// messageSchema returns the schema of a message: inline for well-known types, else a reference to a component, which is
// created at its first use.
func (b *builder) messageSchema(message *protogen.Message) (*openapi3.SchemaRef, error) {
	if schema := wellKnownSchema(message.Desc.FullName()); schema != nil {
		return schema.NewRef(), nil
	}
	name := schemaName(message.Desc)
	if b.doc.Components.Schemas[name] != nil {
		return refTo(name), nil
	}
	schema := openapi3.NewObjectSchema()
	schema.Description = comment(message.Comments)
	b.doc.Components.Schemas[name] = schema.NewRef()
	variantBy, err := b.reader.VariantBy(message.Desc)
	if err != nil {
		return nil, err
	}
	for _, field := range message.Fields {
		if variantBy != nil && field.Desc.Number() == variantBy.Number() {
			continue
		}
		property, err := b.fieldSchema(field)
		if err != nil {
			return nil, err
		}
		schema.WithPropertyRef(field.Desc.JSONName(), property)
		required, err := b.isRequired(field)
		if err != nil {
			return nil, err
		}
		if required {
			schema.Required = append(schema.Required, field.Desc.JSONName())
		}
	}
	return refTo(name), nil
}

// isRequired reports whether every value of the message has the field: in requests, fields that must be present; in
// responses, fields that the codec always writes.
func (b *builder) isRequired(field *protogen.Field) (bool, error) {
	u := b.usage[string(field.Parent.Desc.FullName())]
	if u.inRequest {
		return zeroRefused(field) && !u.pathFields[string(field.Desc.Name())], nil
	}
	if u.maybeEmpty || !u.inResponse {
		return false, nil
	}
	form, err := b.reader.Form(field.Desc)
	if err != nil || len(form.Variants) > 0 || form.Raw {
		return false, err
	}
	switch form.Unset {
	case annotations.UnsetOmit:
		return false, nil
	case annotations.UnsetNull, annotations.UnsetObject:
		return true, nil
	default:
		singularEnum := field.Enum != nil && !field.Desc.IsList()
		return !field.Desc.HasPresence() && !singularEnum, nil
	}
}

// fieldSchema returns the schema of a member: value, list or map, with its options and rules.
func (b *builder) fieldSchema(field *protogen.Field) (*openapi3.SchemaRef, error) {
	form, err := b.reader.Form(field.Desc)
	if err != nil {
		return nil, err
	}
	secret, err := b.reader.Secret(field.Desc)
	if err != nil {
		return nil, err
	}
	schema, err := b.collectionSchema(field, form.Number)
	if err != nil {
		return nil, err
	}
	if len(form.NumberVariants) > 0 { // a number or a string, as the caller prefers
		number, err := b.collectionSchema(field, true)
		if err != nil {
			return nil, err
		}
		schema = openapi3.NewSchemaRef("", &openapi3.Schema{AnyOf: openapi3.SchemaRefs{schema, number}})
	}
	if form.Raw { // JSON text of any shape
		schema = openapi3.NewSchema().NewRef()
	}
	text := comment(field.Comments)
	if len(form.Variants) > 0 {
		text = sentences(text, "Only in the variants "+strings.Join(form.Variants, ", ")+".")
		if len(form.VariantsIfSet) > 0 {
			text = sentences(text, "If it is set, also in "+strings.Join(form.VariantsIfSet, ", ")+".")
		}
	}
	nullable := form.Unset == annotations.UnsetNull
	if schema.Ref != "" {
		if text == "" && !nullable && !isDeprecated(field) {
			return schema, nil
		}
		// Siblings of a $ref are ignored in OpenAPI 3.0.
		schema = openapi3.NewSchemaRef("", &openapi3.Schema{AllOf: openapi3.SchemaRefs{schema}})
	}
	schema.Value.Description = sentences(text, schema.Value.Description)
	schema.Value.Nullable = schema.Value.Nullable || nullable
	schema.Value.Deprecated = isDeprecated(field)
	shown := b.usage[string(field.Parent.Desc.FullName())].inResponse
	schema.Value.WriteOnly = secret && !shown // the value of a new token is shown once
	if secret && schema.Value.Format == "" && schema.Value.Type.Is("string") {
		schema.Value.Format = "password"
	}
	applyRules(schema, field, shown && form.Unset == annotations.UnsetDefault)
	if nullable && len(schema.Value.Enum) > 0 {
		schema.Value.Enum = append(schema.Value.Enum, nil)
	}
	return withDefault(schema, field), nil
}

// collectionSchema wraps the schema of a value in the schema of a list or map.
func (b *builder) collectionSchema(field *protogen.Field, number bool) (*openapi3.SchemaRef, error) {
	if field.Desc.IsMap() {
		value, err := b.valueSchema(field.Message.Fields[1], number)
		if err != nil {
			return nil, err
		}
		object := openapi3.NewObjectSchema()
		object.AdditionalProperties = openapi3.AdditionalProperties{Schema: value}
		return object.NewRef(), nil
	}
	schema, err := b.valueSchema(field, number)
	if err != nil || !field.Desc.IsList() {
		return schema, err
	}
	array := openapi3.NewArraySchema()
	array.Items = schema
	return array.NewRef(), nil
}

// valueSchema returns the schema of one value of a field; number means that 64-bit integers are JSON numbers.
func (b *builder) valueSchema(field *protogen.Field, number bool) (*openapi3.SchemaRef, error) {
	switch {
	case field.Enum != nil && field.Enum.Desc.FullName() == "google.protobuf.NullValue":
		return openapi3.NewSchema().WithNullable().WithEnum(nil).NewRef(), nil
	case field.Enum != nil:
		return b.enumSchema(field.Enum), nil
	case field.Message != nil:
		if kind := wrapped64(field.Message); number && kind != 0 {
			return scalarSchema(kind, true).NewRef(), nil
		}
		return b.messageSchema(field.Message)
	default:
		return scalarSchema(field.Desc.Kind(), number).NewRef(), nil
	}
}

// wrapped64 returns the kind in a wrapper of a 64-bit integer; 0 for other messages.
func wrapped64(message *protogen.Message) protoreflect.Kind {
	switch message.Desc.FullName() {
	case "google.protobuf.Int64Value", "google.protobuf.UInt64Value":
		return message.Fields[0].Desc.Kind()
	default:
		return 0
	}
}

func scalarSchema(kind protoreflect.Kind, number bool) *openapi3.Schema {
	switch kind {
	case protoreflect.BoolKind:
		return openapi3.NewBoolSchema()
	case protoreflect.StringKind:
		return openapi3.NewStringSchema()
	case protoreflect.BytesKind:
		return openapi3.NewBytesSchema()
	case protoreflect.FloatKind:
		return openapi3.NewFloat64Schema().WithFormat("float")
	case protoreflect.DoubleKind:
		return openapi3.NewFloat64Schema().WithFormat("double")
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return openapi3.NewInt64Schema().WithMin(0)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if number {
			return openapi3.NewIntegerSchema().WithFormat("uint64").WithMin(0)
		}
		return openapi3.NewStringSchema().WithFormat("uint64")
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		if number {
			return openapi3.NewInt64Schema()
		}
		return openapi3.NewStringSchema().WithFormat("int64")
	default:
		return openapi3.NewInt32Schema()
	}
}

// enumSchema returns a reference to the component of an enum, without the zero value, which JSON never shows.
func (b *builder) enumSchema(enum *protogen.Enum) *openapi3.SchemaRef {
	name := schemaName(enum.Desc)
	if b.doc.Components.Schemas[name] != nil {
		return refTo(name)
	}
	schema := openapi3.NewStringSchema()
	lines := []string{comment(enum.Comments)}
	seen := map[protoreflect.EnumNumber]bool{0: true}
	for _, value := range enum.Values {
		if seen[value.Desc.Number()] {
			continue
		}
		seen[value.Desc.Number()] = true
		schema.Enum = append(schema.Enum, string(value.Desc.Name()))
		if text := comment(value.Comments); text != "" {
			lines = append(lines, "- `"+string(value.Desc.Name())+"`: "+text)
		}
	}
	schema.Description = strings.Join(lines, "\n")
	b.doc.Components.Schemas[name] = schema.NewRef()
	return refTo(name)
}

func isDeprecated(field *protogen.Field) bool {
	return field.Desc.Options().(*descriptorpb.FieldOptions).GetDeprecated()
}

// wellKnownSchema returns the schema of a type with a special JSON form, or nil.
func wellKnownSchema(name protoreflect.FullName) *openapi3.Schema {
	switch name {
	case "google.protobuf.Timestamp":
		return openapi3.NewDateTimeSchema()
	case "google.protobuf.Duration":
		return openapi3.NewStringSchema().WithPattern(`^-?[0-9]+(\.[0-9]+)?s$`)
	case "google.protobuf.FieldMask", "google.protobuf.StringValue":
		return openapi3.NewStringSchema()
	case "google.protobuf.Struct":
		return openapi3.NewObjectSchema().WithAnyAdditionalProperties()
	case "google.protobuf.Empty":
		return openapi3.NewObjectSchema()
	case "google.protobuf.Any":
		return openapi3.NewObjectSchema().WithProperty("@type", openapi3.NewStringSchema()).WithAnyAdditionalProperties()
	case "google.protobuf.Value":
		return openapi3.NewSchema().WithNullable()
	case "google.protobuf.ListValue":
		return openapi3.NewArraySchema().WithItems(openapi3.NewSchema().WithNullable())
	case "google.protobuf.BoolValue":
		return openapi3.NewBoolSchema()
	case "google.protobuf.BytesValue":
		return openapi3.NewBytesSchema()
	case "google.protobuf.Int32Value":
		return openapi3.NewInt32Schema()
	case "google.protobuf.UInt32Value":
		return openapi3.NewInt64Schema().WithMin(0)
	case "google.protobuf.Int64Value":
		return openapi3.NewStringSchema().WithFormat("int64")
	case "google.protobuf.UInt64Value":
		return openapi3.NewStringSchema().WithFormat("uint64")
	case "google.protobuf.FloatValue":
		return openapi3.NewFloat64Schema().WithFormat("float")
	case "google.protobuf.DoubleValue":
		return openapi3.NewFloat64Schema().WithFormat("double")
	default:
		return nil
	}
}
