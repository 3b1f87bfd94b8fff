package bounds

import (
	"reflect"
	"sync"
	"unicode/utf8"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/palisade/palisade/services/internal/apierr"
)

const (
	// MaxDepth is how deep messages may nest. No message of ours comes near.
	MaxDepth = 64
	// DefaultText bounds texts and bytes whose field has no rule of its own, in bytes.
	DefaultText = 1 << 20
	// freeForm bounds the entries of each object and list inside a google.protobuf.Struct, Value and ListValue, and
	// the paths of a FieldMask: their protos can have no rules of ours.
	freeForm = 10_000
	// runeBytes is how many bytes a character has at most.
	runeBytes = utf8.UTFMax
)

// The memory for one element beside its own bytes: a slot in a list that doubles when it grows, and in maps a share of
// the buckets.
const (
	scalarCost  = 16
	textCost    = 48
	messageCost = 32
	entryCost   = 64
)

// Field is what a field may hold. Read it with Of.
type Field struct {
	Descriptor protoreflect.FieldDescriptor
	// Items is the largest number of elements of a list or entries of a map; 0 for other fields.
	Items int
	// Declared reports whether Items is a limit of the field's own, as every list of a request should have.
	Declared bool
	// maxRunes and maxBytes bound a text; 0 means no limit of that kind.
	maxRunes, maxBytes int
}

// Message is what a message may hold.
type Message struct {
	// Size is what an empty message takes in memory, in bytes, with its slot in a list.
	Size   int64
	fields map[protoreflect.FieldNumber]*Field
}

// known caches the messages by descriptor: one entry for each message type of the binary.
var known sync.Map // protoreflect.MessageDescriptor → *Message

// Of returns the bounds of a message.
func Of(descriptor protoreflect.MessageDescriptor) *Message {
	if m, ok := known.Load(descriptor); ok {
		return m.(*Message)
	}
	m := &Message{Size: sizeOf(descriptor) + messageCost, fields: map[protoreflect.FieldNumber]*Field{}}
	for i := range descriptor.Fields().Len() {
		field := descriptor.Fields().Get(i)
		m.fields[field.Number()] = read(field)
	}
	loaded, _ := known.LoadOrStore(descriptor, m)
	return loaded.(*Message)
}

// Field returns the bounds of a field of the message; nil for a number that it does not have.
func (m *Message) Field(number protoreflect.FieldNumber) *Field { return m.fields[number] }

// sizeOf is the size of the Go struct of a message.
func sizeOf(descriptor protoreflect.MessageDescriptor) int64 {
	const dynamic = 256 // of messages that have no struct
	kind, err := protoregistry.GlobalTypes.FindMessageByName(descriptor.FullName())
	if err != nil {
		return dynamic
	}
	value := reflect.TypeOf(kind.Zero().Interface())
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return dynamic
	}
	return int64(value.Elem().Size())
}

// read reads the rules of a field. A rule that cannot be read counts as none: the validator refuses it at the start.
func read(descriptor protoreflect.FieldDescriptor) *Field {
	f := &Field{Descriptor: descriptor}
	rules, err := protovalidate.ResolveFieldRules(descriptor)
	if err != nil || rules == nil {
		rules = &validate.FieldRules{}
	}
	switch {
	case descriptor.IsMap():
		f.setItems(rules.GetMap() != nil && rules.GetMap().MaxPairs != nil, rules.GetMap().GetMaxPairs())
	case descriptor.IsList():
		f.setItems(rules.GetRepeated() != nil && rules.GetRepeated().MaxItems != nil, rules.GetRepeated().GetMaxItems())
		rules = rules.GetRepeated().GetItems()
	}
	switch descriptor.Kind() {
	case protoreflect.StringKind:
		text := rules.GetString()
		f.maxRunes = int(max(text.GetMaxLen(), text.GetLen()))
		f.maxBytes = int(max(text.GetMaxBytes(), text.GetLenBytes()))
	case protoreflect.BytesKind:
		f.maxBytes = int(max(rules.GetBytes().GetMaxLen(), rules.GetBytes().GetLen()))
	}
	if f.maxRunes == 0 && f.maxBytes == 0 {
		f.maxBytes = DefaultText
	}
	return f
}

func (f *Field) setItems(declared bool, rule uint64) {
	f.Items, f.Declared = int(rule), declared
	if rule == 0 { // no limit, or a list that must be left out, which the validator says
		f.Items = freeForm
	}
	if parent := f.Descriptor.ContainingMessage().FullName(); parent.Parent() == "google.protobuf" {
		f.Declared = true // theirs is freeForm
	}
}

// unit is what the elements of a list or map are called in errors.
func (f *Field) unit() string {
	if f.Descriptor.IsMap() {
		return "entries"
	}
	return "items"
}

// TooMany is the error of a list or map with more elements than it may have. path is the field as the caller wrote it.
func (f *Field) TooMany(path string, got int) error {
	return apierr.InvalidArgument(path, "%s must have at most %d %s, got %d", path, f.Items, f.unit(), got)
}

// CheckText refuses a text or bytes that are certainly longer than they may be. path makes the name of the field for
// the error.
func (f *Field) CheckText(text []byte, path func() string) error {
	if f.maxBytes > 0 && len(text) > f.maxBytes {
		return apierr.InvalidArgument(path(), "%s must have at most %d bytes, got %d", path(), f.maxBytes, len(text))
	}
	if f.maxRunes > 0 && len(text) > runeBytes*f.maxRunes {
		return apierr.InvalidArgument(path(), "%s must have at most %d characters, got %d", path(), f.maxRunes, utf8.RuneCount(text))
	}
	return nil
}

// Cost is what one element of the field takes in memory beside the bytes of a text and, for a message, its own Size.
func (f *Field) Cost() int64 {
	switch {
	case f.Descriptor.IsMap():
		return entryCost + textCost
	case f.Descriptor.Kind() == protoreflect.StringKind, f.Descriptor.Kind() == protoreflect.BytesKind:
		return textCost
	case f.Descriptor.Message() != nil:
		return messageCost
	case f.Descriptor.IsList():
		return scalarCost
	}
	return 0
}
