package apidoc

import (
	"slices"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fieldRules returns the protovalidate rules of a field, nil if it has none.
func fieldRules(field *protogen.Field) *validate.FieldRules {
	rules, _ := proto.GetExtension(field.Desc.Options(), validate.E_Field).(*validate.FieldRules)
	return rules
}

// zeroRefused reports whether a request without the field is refused.
func zeroRefused(field *protogen.Field) bool {
	rules := fieldRules(field)
	if rules.GetRequired() {
		return true
	}
	if rules.GetIgnore() != validate.Ignore_IGNORE_UNSPECIFIED || field.Desc.HasPresence() {
		return false
	}
	text := rules.GetString()
	return text.GetMinLen() > 0 || text.GetLen() > 0 ||
		len(text.GetIn()) > 0 && !slices.Contains(text.GetIn(), "") ||
		rules.GetRepeated().GetMinItems() > 0 || zeroBelow(rules)
}

// zeroBelow reports whether the rules of a number exclude zero by a lower bound.
func zeroBelow(rules *validate.FieldRules) bool {
	minimum, exclusive := bound(rules, "gte", "gt")
	return minimum != nil && (*minimum > 0 || exclusive && *minimum == 0)
}

// applyRules adds the rules of a field to its schema. Rules that OpenAPI cannot express (CEL) are only in the comments.
// zeroShown means that responses also show the zero value, which rules may except.
func applyRules(schema *openapi3.SchemaRef, field *protogen.Field, zeroShown bool) {
	rules := fieldRules(field)
	if rules == nil || schema.Value == nil {
		return
	}
	if field.Desc.IsList() {
		repeated := rules.GetRepeated()
		schema.Value.MinItems = repeated.GetMinItems()
		schema.Value.MaxItems = repeated.MaxItems
		schema.Value.UniqueItems = repeated.GetUnique()
		if items := schema.Value.Items; items != nil && items.Value != nil {
			applyValueRules(items.Value, repeated.GetItems(), false)
		}
		return
	}
	if field.Desc.IsMap() {
		pairs := rules.GetMap()
		schema.Value.MinProps = pairs.GetMinPairs()
		schema.Value.MaxProps = pairs.MaxPairs
		if values := schema.Value.AdditionalProperties.Schema; values != nil && values.Value != nil {
			applyValueRules(values.Value, pairs.GetValues(), false)
		}
		return
	}
	applyValueRules(schema.Value, rules, zeroShown)
}

// zeroExcepted reports whether the rules of a value do not apply to its zero value.
func zeroExcepted(rules *validate.FieldRules) bool {
	return rules.GetIgnore() == validate.Ignore_IGNORE_IF_ZERO_VALUE
}

func applyValueRules(schema *openapi3.Schema, rules *validate.FieldRules, zeroShown bool) {
	zeroShown = zeroShown && zeroExcepted(rules)
	if schema.Type.Is(openapi3.TypeString) {
		applyStringRules(schema, rules, zeroShown)
		return
	}
	if zeroShown || !schema.Type.Is(openapi3.TypeInteger) && !schema.Type.Is(openapi3.TypeNumber) {
		return
	}
	if minimum, exclusive := bound(rules, "gte", "gt"); minimum != nil {
		schema.Min = minimum
		if exclusive {
			schema.ExclusiveMin.Bool = &exclusive
		}
	}
	if maximum, exclusive := bound(rules, "lte", "lt"); maximum != nil {
		schema.Max = maximum
		if exclusive {
			schema.ExclusiveMax.Bool = &exclusive
		}
	}
}

// applyStringRules skips strings that are 64-bit integers: OpenAPI has no limits for them.
func applyStringRules(schema *openapi3.Schema, rules *validate.FieldRules, zeroShown bool) {
	text := rules.GetString()
	if text == nil {
		return
	}
	schema.MaxLength = text.MaxLen
	if text.Len != nil {
		schema.MaxLength = text.Len
	}
	if !zeroExcepted(rules) {
		schema.MinLength = max(text.GetMinLen(), text.GetLen())
		schema.Pattern = text.GetPattern()
	}
	words := text.GetIn()
	if text.Const != nil {
		words = []string{text.GetConst()}
	}
	for _, word := range words {
		schema.Enum = append(schema.Enum, word)
	}
	if zeroShown && len(words) > 0 && !slices.Contains(words, "") {
		schema.Enum = append(schema.Enum, "")
	}
	if zeroExcepted(rules) {
		return
	}
	switch {
	case text.GetUuid():
		schema.Format = "uuid"
	case text.GetEmail():
		schema.Format = "email"
	case text.GetUri():
		schema.Format = "uri"
	case text.GetHostname():
		schema.Format = "hostname"
	}
}

// bound returns the inclusive or exclusive bound of a number from its rules. The rules of all kinds have the same field
// names.
func bound(rules *validate.FieldRules, inclusive, exclusive protoreflect.Name) (value *float64, isExclusive bool) {
	if rules == nil {
		return nil, false
	}
	m := rules.ProtoReflect()
	set := m.WhichOneof(m.Descriptor().Oneofs().ByName("type"))
	if set == nil || set.Message() == nil {
		return nil, false
	}
	kind := m.Get(set).Message()
	for _, name := range []protoreflect.Name{inclusive, exclusive} {
		fd := kind.Descriptor().Fields().ByName(name)
		if fd == nil || fd.Message() != nil || !kind.Has(fd) {
			continue
		}
		number := toFloat(kind.Get(fd))
		return &number, name == exclusive
	}
	return nil, false
}

func toFloat(v protoreflect.Value) float64 {
	switch n := v.Interface().(type) {
	case int32:
		return float64(n)
	case int64:
		return float64(n)
	case uint32:
		return float64(n)
	case uint64:
		return float64(n)
	case float32:
		return float64(n)
	case float64:
		return n
	default:
		return 0
	}
}
