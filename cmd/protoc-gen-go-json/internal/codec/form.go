package codec

import (
	"fmt"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/annotations"
)

// formed is a field with its JSON form.
type formed struct {
	*protogen.Field
	form annotations.Form
}

// check rejects options that have no effect on their field, instead of ignoring them: a flag without effect is a broken
// contract.
func (f formed) check(variantBy protoreflect.FieldDescriptor) error {
	name := f.Desc.FullName()
	if f.form.Number && !holds64Bit(f.Desc) {
		return fmt.Errorf("%s: json.number is for 64-bit integers, got %s", name, describe(f.Desc))
	}
	if f.form.Unset == annotations.UnsetObject && !isObject(f.Desc) {
		return fmt.Errorf("%s: json.unset UNSET_OBJECT is for messages whose JSON is an object, got %s",
			name, describe(f.Desc))
	}
	if f.form.Raw && (f.Desc.Kind() != protoreflect.BytesKind || f.Desc.IsList() || f.form.Unset != annotations.UnsetDefault) {
		return fmt.Errorf("%s: json.raw is for single bytes without json.unset, got %s", name, describe(f.Desc))
	}
	if len(f.form.NumberVariants) > 0 && (!holds64Bit(f.Desc) || f.form.Number || len(f.form.Variants) > 0) {
		return fmt.Errorf("%s: json.number_variants is for 64-bit integers without number and variants, got %s",
			name, describe(f.Desc))
	}
	if len(f.form.VariantsIfSet) > 0 && len(f.form.Variants) == 0 {
		return fmt.Errorf("%s: json.variants_if_set needs json.variants", name)
	}
	if len(f.form.Variants) == 0 && len(f.form.NumberVariants) == 0 {
		return nil
	}
	if variantBy == nil {
		return fmt.Errorf("%s: json.variants needs variant_by on message %s", name, f.Parent.Desc.FullName())
	}
	if f.Desc.Number() == variantBy.Number() {
		return fmt.Errorf("%s: the field that holds the variant cannot itself have json.variants", name)
	}
	return nil
}

// holds64Bit reports whether the option number has an effect: 64-bit integers, their wrappers, lists and map values.
func holds64Bit(fd protoreflect.FieldDescriptor) bool {
	if fd.IsMap() {
		fd = fd.MapValue()
	}
	switch fd.Kind() {
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind,
		protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return true
	case protoreflect.MessageKind:
		name := fd.Message().FullName()
		return name == "google.protobuf.Int64Value" || name == "google.protobuf.UInt64Value"
	default:
		return false
	}
}

// isObject reports whether the field is one message (or map) that is a JSON object.
func isObject(fd protoreflect.FieldDescriptor) bool {
	if fd.IsMap() {
		return true
	}
	if fd.IsList() || fd.Message() == nil {
		return false
	}
	switch name := fd.Message().FullName(); name {
	case "google.protobuf.Struct", "google.protobuf.Any", "google.protobuf.Empty":
		return true
	default:
		_, wellKnown := wellKnownAppenders[name]
		return !wellKnown
	}
}

func describe(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.IsMap():
		return "a map with " + fd.MapValue().Kind().String() + " values"
	case fd.IsList():
		return "a list of " + fd.Kind().String()
	case fd.Message() != nil:
		return string(fd.Message().FullName())
	default:
		return fd.Kind().String()
	}
}
