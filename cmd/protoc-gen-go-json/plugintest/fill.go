package plugintest

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// RawText is the JSON string in raw fields. It is also base64, so that protojson can read it as bytes.
const RawText = "cmF3"

// Filler fills messages with random contents.
type Filler struct {
	// DeclaredEnums restricts enums to what a correct server sends: declared values, and no zero value in lists and
	// maps. Without it, undeclared numbers occur too.
	DeclaredEnums bool
}

// Fill sets random fields of m to random values that protojson accepts; depth limits the nesting.
func (f Filler) Fill(t *rapid.T, m protoreflect.Message, depth int) {
	if fillWellKnown(t, m) {
		return
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if !rapid.Bool().Draw(t, "set "+string(fd.Name())) {
			continue
		}
		switch {
		case fd.IsMap():
			f.entries(t, m.Mutable(fd).Map(), fd, depth)
		case fd.IsList():
			list := m.Mutable(fd).List()
			for range rapid.IntRange(0, 2).Draw(t, "items") {
				list.Append(f.value(t, fd, list.NewElement, depth))
			}
		case fd.Message() != nil && depth == 0:
		default:
			newValue := func() protoreflect.Value { return m.NewField(fd) }
			m.Set(fd, f.value(t, fd, newValue, depth))
		}
	}
	by, _ := proto.GetExtension(m.Descriptor().Options(), optionsv1.E_VariantBy).(string)
	if field := fields.ByName(protoreflect.Name(by)); field != nil {
		m.Set(field, protoreflect.ValueOfString(rapid.SampledFrom(variantsOf(m.Descriptor())).Draw(t, "variant")))
	}
}

func (f Filler) entries(t *rapid.T, entries protoreflect.Map, fd protoreflect.FieldDescriptor, depth int) {
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		key := f.value(t, fd.MapKey(), nil, depth).MapKey()
		entries.Set(key, f.value(t, fd.MapValue(), entries.NewValue, depth))
	}
}

// variantsOf returns all variants of a message's fields, and two unknown ones.
func variantsOf(message protoreflect.MessageDescriptor) []string {
	variants := []string{"", "none of them"}
	fields := message.Fields()
	for i := range fields.Len() {
		form, _ := proto.GetExtension(fields.Get(i).Options(), optionsv1.E_Json).(*optionsv1.JsonForm)
		variants = append(append(variants, form.GetVariants()...), form.GetNumberVariants()...)
	}
	slices.Sort(variants)
	return slices.Compact(variants)
}

func (f Filler) value(
	t *rapid.T, fd protoreflect.FieldDescriptor, newValue func() protoreflect.Value, depth int,
) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, "bool"))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(rapid.String().Draw(t, "string"))
	case protoreflect.BytesKind:
		if form, _ := proto.GetExtension(fd.Options(), optionsv1.E_Json).(*optionsv1.JsonForm); form.GetRaw() {
			return protoreflect.ValueOfBytes([]byte(`"` + RawText + `"`))
		}
		return protoreflect.ValueOfBytes(rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "bytes"))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(t, "int32"))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(t, "uint32"))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(t, "int64"))
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, "uint64"))
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(rapid.Float32().Draw(t, "float"))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(rapid.Float64().Draw(t, "double"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.enum(t, fd))
	default:
		value := newValue()
		f.Fill(t, value.Message(), max(depth-1, 0))
		return value
	}
}

// enum returns a declared number or, unless DeclaredEnums is set, an undeclared one.
func (f Filler) enum(t *rapid.T, fd protoreflect.FieldDescriptor) protoreflect.EnumNumber {
	if fd.Enum().FullName() == "google.protobuf.NullValue" {
		return 0
	}
	var numbers []protoreflect.EnumNumber
	if !f.DeclaredEnums {
		numbers = append(numbers, 0, -5, 1<<30)
	}
	inCollection := fd.IsList() || fd.ContainingMessage().IsMapEntry()
	for i := range fd.Enum().Values().Len() {
		number := fd.Enum().Values().Get(i).Number()
		if number != 0 || !f.DeclaredEnums || !inCollection {
			numbers = append(numbers, number)
		}
	}
	return rapid.SampledFrom(numbers).Draw(t, "enum")
}

// fillWellKnown fills well-known types with restricted contents. It reports whether m is one of them.
func fillWellKnown(t *rapid.T, m protoreflect.Message) bool {
	set := func(name protoreflect.Name, v any) {
		m.Set(m.Descriptor().Fields().ByName(name), protoreflect.ValueOf(v))
	}
	switch m.Descriptor().FullName() {
	case "google.protobuf.Timestamp":
		set("seconds", rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds"))
		set("nanos", rapid.Int32Range(0, 999999999).Draw(t, "nanos"))
	case "google.protobuf.Duration":
		sign := int64(rapid.SampledFrom([]int{-1, 1}).Draw(t, "sign"))
		set("seconds", sign*rapid.Int64Range(0, 315576000000).Draw(t, "seconds"))
		set("nanos", int32(sign)*rapid.Int32Range(0, 999999999).Draw(t, "nanos"))
	case "google.protobuf.FieldMask":
		paths := m.Mutable(m.Descriptor().Fields().ByName("paths")).List()
		for range rapid.IntRange(0, 2).Draw(t, "paths") {
			path := rapid.StringMatching(`[a-z]{1,3}(_[a-z]{1,3})?(\.[a-z]{1,3})?`).Draw(t, "path")
			paths.Append(protoreflect.ValueOfString(path))
		}
	case "google.protobuf.Any":
		packed, err := anypb.New(wrapperspb.String(rapid.String().Draw(t, "packed")))
		if err != nil {
			t.Fatal(err)
		}
		set("type_url", packed.GetTypeUrl())
		set("value", packed.GetValue())
	case "google.protobuf.Value":
		value, err := structpb.NewValue(randomJSON(t, 2))
		if err != nil {
			t.Fatal(err)
		}
		value.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			m.Set(fd, v)
			return true
		})
	default:
		return false
	}
	return true
}

// randomJSON returns a value that structpb.NewValue accepts.
func randomJSON(t *rapid.T, depth int) any {
	switch rapid.IntRange(0, 3+min(depth, 1)*2).Draw(t, "sort") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Float64().Draw(t, "number")
	case 3:
		return rapid.String().Draw(t, "string")
	case 4:
		return []any{randomJSON(t, depth-1)}
	default:
		return map[string]any{rapid.String().Draw(t, "key"): randomJSON(t, depth-1), "b": nil}
	}
}
