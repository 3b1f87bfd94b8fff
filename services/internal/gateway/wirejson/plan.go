package wirejson

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/jsonappend"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// kind is how the value of a field is written.
type kind uint8

const (
	kindString kind = iota
	kindBytes
	kindBool
	kindInt32
	kindInt64
	kindUint64
	kindQuotedInt64
	kindQuotedUint64
	kindFloat
	kindDouble
	kindEnum
	kindTimestamp
	kindMessage
)

// field is one member of the JSON object.
type field struct {
	number protowire.Number
	wire   protowire.Type
	kind   kind
	list   bool
	// presence: a value of zero is a value.
	presence bool
	// name is `,"name":`, and absent the whole member of a field that is not set; empty where that is left out.
	name, absent string
	// variants has a bit for each variant in which the field exists.
	variants uint64
	// enum names values, in quotes.
	enum map[int32]string
	// message of a field of that kind.
	message *plan
}

// anyVariant is the bits of a field that exists in all variants.
const anyVariant = ^uint64(0)

// plan says how the messages of a type are written.
type plan struct {
	messageType protoreflect.MessageType
	// generated: the message has something in it that only its AppendJSON can write.
	generated bool
	fields    []field // in the order of their declaration
	slots     []int16 // index into fields, plus one, by number
	// variantBy is the number of the field that says which variant a message is; 0: there are none.
	variantBy protowire.Number
	variants  map[string]uint64 // the bit of a variant
}

var plans sync.Map // protoreflect.FullName → *plan, complete

// planOf returns the plan of a type, which is made once.
func planOf(message protoreflect.MessageDescriptor) (*plan, error) {
	if known, ok := plans.Load(message.FullName()); ok {
		return known.(*plan), nil
	}
	made := map[protoreflect.FullName]*plan{}
	p, err := newPlan(message, made)
	if err != nil {
		return nil, err
	}
	known, _ := plans.LoadOrStore(message.FullName(), p)
	return known.(*plan), nil
}

// newPlan makes a plan and those of the messages inside; made holds those of this call, because types may be recursive.
func newPlan(message protoreflect.MessageDescriptor, made map[protoreflect.FullName]*plan) (*plan, error) {
	if p, ok := made[message.FullName()]; ok {
		return p, nil
	}
	messageType, err := protoregistry.GlobalTypes.FindMessageByName(message.FullName())
	if err != nil {
		return nil, fmt.Errorf("wirejson: %w", err)
	}
	p := &plan{messageType: messageType, variants: map[string]uint64{}}
	made[message.FullName()] = p
	if by, _ := proto.GetExtension(message.Options(), optionsv1.E_VariantBy).(string); by != "" {
		p.variantBy = message.Fields().ByName(protoreflect.Name(by)).Number()
	}
	for i := range message.Fields().Len() {
		fd := message.Fields().Get(i)
		if fd.Number() == p.variantBy {
			continue
		}
		f, known, err := p.newField(fd, made)
		if err != nil {
			return nil, err
		}
		if !known || fd.Number() > maxNumber {
			p.generated = true
			return p, nil
		}
		p.fields = append(p.fields, f)
		for len(p.slots) <= int(fd.Number()) {
			p.slots = append(p.slots, 0)
		}
		p.slots[fd.Number()] = int16(len(p.fields))
	}
	return p, nil
}

// maxNumber bounds the table of a plan.
const maxNumber = 1000

// newField describes a field; known is false when it cannot be written from here.
func (p *plan) newField(fd protoreflect.FieldDescriptor, made map[protoreflect.FullName]*plan) (f field, known bool, err error) {
	form, _ := proto.GetExtension(fd.Options(), optionsv1.E_Json).(*optionsv1.JsonForm)
	oneof := fd.ContainingOneof()
	if fd.IsMap() || form.GetRaw() || oneof != nil && !oneof.IsSynthetic() {
		return f, false, nil
	}
	f = field{number: fd.Number(), list: fd.IsList(), presence: fd.HasPresence(), variants: p.bits(form.GetVariants())}
	f.name = "," + string(jsonappend.String(nil, fd.JSONName())) + ":"
	zero, ok := f.describe(fd, form.GetNumber())
	if !ok || f.list && f.wire != protowire.BytesType {
		return f, false, nil // lists of numbers are packed
	}
	if f.kind == kindMessage {
		if f.message, err = newPlan(fd.Message(), made); err != nil {
			return f, false, err
		}
	}
	switch form.GetUnset() {
	case optionsv1.Unset_UNSET_NULL:
		f.absent = f.name + "null"
	case optionsv1.Unset_UNSET_OBJECT:
		f.absent = f.name + "{}"
	case optionsv1.Unset_UNSET_OMIT:
	default:
		if zero != "" && !f.presence {
			f.absent = f.name + zero
		}
	}
	return f, true, nil
}

// bits gives the variants of a field their bits.
func (p *plan) bits(variants []string) (bits uint64) {
	if len(variants) == 0 {
		return anyVariant
	}
	for _, name := range variants {
		if p.variants[name] == 0 {
			p.variants[name] = 1 << len(p.variants)
		}
		bits |= p.variants[name]
	}
	return bits
}

// describe sets how values of the field are written, and returns what stands for its zero value; "" where nothing does.
func (f *field) describe(fd protoreflect.FieldDescriptor, number bool) (zero string, ok bool) {
	wide := func(plain, quoted kind) (string, bool) {
		if f.kind, f.wire = quoted, protowire.VarintType; number {
			f.kind = plain
			return "0", true
		}
		return `"0"`, true
	}
	if f.list {
		defer func() { zero = "[]" }()
	}
	f.wire = protowire.VarintType
	switch fd.Kind() {
	case protoreflect.StringKind:
		f.kind, f.wire = kindString, protowire.BytesType
		return `""`, true
	case protoreflect.BytesKind:
		f.kind, f.wire = kindBytes, protowire.BytesType
		return `""`, true
	case protoreflect.BoolKind:
		f.kind = kindBool
		return "false", true
	case protoreflect.Int32Kind:
		f.kind = kindInt32
		return "0", true
	case protoreflect.Uint32Kind:
		f.kind = kindUint64
		return "0", true
	case protoreflect.Int64Kind:
		return wide(kindInt64, kindQuotedInt64)
	case protoreflect.Uint64Kind:
		return wide(kindUint64, kindQuotedUint64)
	case protoreflect.FloatKind:
		f.kind, f.wire = kindFloat, protowire.Fixed32Type
		return "0", true
	case protoreflect.DoubleKind:
		f.kind, f.wire = kindDouble, protowire.Fixed64Type
		return "0", true
	case protoreflect.EnumKind:
		return "", f.describeEnum(fd.Enum())
	case protoreflect.MessageKind:
		f.kind, f.wire = kindMessage, protowire.BytesType
		if fd.Message().FullName() == "google.protobuf.Timestamp" {
			f.kind = kindTimestamp
			return "", true
		}
		return "", isOwn(fd.Message())
	}
	return "", false
}

func (f *field) describeEnum(enum protoreflect.EnumDescriptor) bool {
	f.kind, f.enum = kindEnum, map[int32]string{}
	for i := range enum.Values().Len() {
		value := enum.Values().Get(i)
		if _, twice := f.enum[int32(value.Number())]; !twice {
			f.enum[int32(value.Number())] = `"` + string(value.Name()) + `"`
		}
	}
	return enum.FullName() != "google.protobuf.NullValue"
}

// isOwn reports whether messages of a type have an AppendJSON of the rules that plans follow.
func isOwn(message protoreflect.MessageDescriptor) bool {
	messageType, err := protoregistry.GlobalTypes.FindMessageByName(message.FullName())
	if err != nil {
		return false
	}
	_, own := messageType.Zero().Interface().(jsonappend.Appender)
	return own
}
