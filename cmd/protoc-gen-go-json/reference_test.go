package main

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/plugintest"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// This file implements our options a second time, by reflection and without the generator: applyForm for JSON,
// normalise for the message that is read back.

const timestampName = "google.protobuf.Timestamp"

func form(fd protoreflect.FieldDescriptor) *optionsv1.JsonForm {
	value, _ := proto.GetExtension(fd.Options(), optionsv1.E_Json).(*optionsv1.JsonForm)
	return value
}

func variantBy(message protoreflect.MessageDescriptor) protoreflect.FieldDescriptor {
	name, _ := proto.GetExtension(message.Options(), optionsv1.E_VariantBy).(string)
	return message.Fields().ByName(protoreflect.Name(name))
}

// hidden reports whether a field is not part of the message's variant.
func hidden(m protoreflect.Message, fd protoreflect.FieldDescriptor) bool {
	by := variantBy(m.Descriptor())
	if by == nil {
		return false
	}
	variants := form(fd).GetVariants()
	if m.Has(fd) {
		variants = append(slices.Clone(variants), form(fd).GetVariantsIfSet()...)
	}
	return fd == by || len(variants) > 0 && !slices.Contains(variants, m.Get(by).String())
}

// isNumber reports whether the 64-bit integers of a field are JSON numbers.
func isNumber(m protoreflect.Message, fd protoreflect.FieldDescriptor) bool {
	by := variantBy(m.Descriptor())
	return form(fd).GetNumber() || by != nil && slices.Contains(form(fd).GetNumberVariants(), m.Get(by).String())
}

// empty reports whether a field is not set, or has a value that counts as not set.
func empty(m protoreflect.Message, fd protoreflect.FieldDescriptor) bool {
	if !m.Has(fd) {
		return true
	}
	if fd.IsList() || fd.IsMap() || fd.Message() != nil {
		return false
	}
	switch fd.Kind() {
	case protoreflect.EnumKind:
		return m.Get(fd).Enum() == 0 && fd.Enum().FullName() != "google.protobuf.NullValue"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return !fd.HasPresence() && m.Get(fd).Float() == 0 // Negative zero has bits set, but no meaning in JSON.
	default:
		return false
	}
}

// applyForm changes protojson's tree for m into the tree that the options require.
func applyForm(tree map[string]any, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		name := fd.JSONName()
		if hidden(m, fd) {
			delete(tree, name)
			continue
		}
		unset := form(fd).GetUnset()
		if form(fd).GetRaw() {
			delete(tree, name)
			if m.Has(fd) {
				tree[name] = plugintest.RawText
			}
			continue
		}
		if !empty(m, fd) {
			tree[name] = applyValue(tree[name], m.Get(fd), fd, isNumber(m, fd))
			continue
		}
		switch isEnum := fd.Enum() != nil && !fd.IsList(); {
		case unset == optionsv1.Unset_UNSET_NULL:
			tree[name] = nil
		case unset == optionsv1.Unset_UNSET_OBJECT:
			tree[name] = map[string]any{}
		case unset == optionsv1.Unset_UNSET_OMIT, isEnum:
			delete(tree, name)
		default:
			if value, present := tree[name]; present {
				tree[name] = applyValue(value, m.Get(fd), fd, isNumber(m, fd))
			}
		}
	}
}

func applyValue(tree any, value protoreflect.Value, fd protoreflect.FieldDescriptor, number bool) any {
	switch {
	case fd.IsMap():
		entries := tree.(map[string]any)
		value.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			entries[k.String()] = applySingle(entries[k.String()], v, fd.MapValue(), number)
			return true
		})
	case fd.IsList():
		items := tree.([]any)
		for i := range items {
			items[i] = applySingle(items[i], value.List().Get(i), fd, number)
		}
	default:
		return applySingle(tree, value, fd, number)
	}
	return tree
}

func applySingle(tree any, value protoreflect.Value, fd protoreflect.FieldDescriptor, number bool) any {
	text, isText := tree.(string)
	switch {
	case number && isText:
		return json.Number(text)
	case fd.Message() == nil:
		return tree
	case fd.Message().FullName() == timestampName:
		stamp := value.Message().Interface().(*timestamppb.Timestamp)
		return stamp.AsTime().Truncate(time.Microsecond).Format("2006-01-02T15:04:05.000000Z")
	case isOwn(fd.Message()):
		applyForm(tree.(map[string]any), value.Message())
	}
	return tree
}

// normalise makes m what it is after a JSON round trip.
func normalise(m protoreflect.Message) {
	if m.Descriptor().FullName() == timestampName {
		stamp := m.Interface().(*timestamppb.Timestamp)
		stamp.Nanos -= stamp.GetNanos() % 1000
		return
	}
	if !isOwn(m.Descriptor()) {
		return
	}
	fields := m.Descriptor().Fields()
	by := variantBy(m.Descriptor())
	for i := range fields.Len() {
		fd := fields.Get(i)
		isEmpty, unset := empty(m, fd), form(fd).GetUnset()
		switch {
		case fd == by:
			// Cleared last, because it determines the other fields.
		case hidden(m, fd):
			m.Clear(fd)
		case form(fd).GetRaw() && !isEmpty: // protojson reads the text as base64
			decoded, err := base64.StdEncoding.DecodeString(plugintest.RawText)
			if err != nil {
				panic(err)
			}
			m.Set(fd, protoreflect.ValueOfBytes(decoded))
		case isEmpty && unset == optionsv1.Unset_UNSET_OBJECT && fd.Message() != nil && !fd.IsMap():
			m.Mutable(fd)
		case isEmpty && (unset != optionsv1.Unset_UNSET_UNSPECIFIED || fd.Enum() != nil):
			m.Clear(fd)
		default:
			normaliseValues(m, fd)
		}
	}
	if by != nil {
		m.Clear(by)
	}
}

func normaliseValues(m protoreflect.Message, fd protoreflect.FieldDescriptor) {
	if !m.Has(fd) {
		return
	}
	value := m.Get(fd)
	switch {
	case fd.IsMap() && fd.MapValue().Message() != nil:
		value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			normalise(v.Message())
			return true
		})
	case fd.IsList() && fd.Message() != nil:
		for i := range value.List().Len() {
			normalise(value.List().Get(i).Message())
		}
	case !fd.IsMap() && fd.Message() != nil:
		normalise(value.Message())
	}
}
