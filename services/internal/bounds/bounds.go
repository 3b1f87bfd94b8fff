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
	// MaxDepth is the maximum nesting depth of messages. Our messages nest far less.
	MaxDepth = 64
	// DefaultText is the limit, in bytes, of texts and bytes fields without their own rule.
	DefaultText = 1 << 20
	// freeForm is the maximum number of entries of each object and list inside a google.protobuf.Struct, Value and
	// ListValue, and of paths in a FieldMask. Their protos cannot have our rules.
	freeForm = 10_000
	// runeBytes is the maximum size of a character in bytes.
	runeBytes = utf8.UTFMax
)

// The memory of one element in addition to its own bytes: a slot in a list that doubles when it grows, or a share of
// the buckets of a map.
const (
	scalarCost  = 16
	textCost    = 48
	messageCost = 32
	entryCost   = 64
)

// Field is the limit of a field. Of returns it.
type Field struct {
	Descriptor protoreflect.FieldDescriptor
	// Items is the maximum number of elements of a list or entries of a map; 0 for other fields.
	Items int
	// Declared reports whether Items comes from the field's own rule, which every list of a request should have.
	Declared bool
	// maxRunes and maxBytes limit a text; 0 means no such limit.
	maxRunes, maxBytes int
}

// Message has the limits of a message.
type Message struct {
	// Size is the memory of an empty message in bytes, including its slot in a list.
	Size   int64
	fields map[protoreflect.FieldNumber]*Field
}

// known caches the messages by descriptor: one entry for each message type of the binary.
var known sync.Map // protoreflect.MessageDescriptor → *Message

// Of returns the limits of a message.
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

// Field returns the limits of a field of the message; nil for an unknown number.
func (m *Message) Field(number protoreflect.FieldNumber) *Field { return m.fields[number] }

// sizeOf is the size of the Go struct of a message.
func sizeOf(descriptor protoreflect.MessageDescriptor) int64 {
	const dynamic = 256 // for messages without a Go struct
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

// read reads the rules of a field. A rule that cannot be read counts as none; the validator refuses it at start.
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
	if rule == 0 { // no limit, or a list that must be empty, which the validator checks
		f.Items = freeForm
	}
	if parent := f.Descriptor.ContainingMessage().FullName(); parent.Parent() == "google.protobuf" {
		f.Declared = true // their limit is freeForm
	}
}

// unit is the word for the elements of a list or map in errors.
func (f *Field) unit() string {
	if f.Descriptor.IsMap() {
		return "entries"
	}
	return "items"
}

// TooMany is the error of a list or map with too many elements. path is the field in the caller's spelling.
func (f *Field) TooMany(path string, got int) error {
	return apierr.InvalidArgument(path, "%s must have at most %d %s, got %d", path, f.Items, f.unit(), got)
}

// CheckText refuses a text or bytes that must exceed the limit. path returns the name of the field for the error.
func (f *Field) CheckText(text []byte, path func() string) error {
	if f.maxBytes > 0 && len(text) > f.maxBytes {
		return apierr.InvalidArgument(path(), "%s must have at most %d bytes, got %d", path(), f.maxBytes, len(text))
	}
	if f.maxRunes > 0 && len(text) > runeBytes*f.maxRunes {
		return apierr.InvalidArgument(path(), "%s must have at most %d characters, got %d", path(), f.maxRunes, utf8.RuneCount(text))
	}
	return nil
}

// Cost is the memory of one element of the field, without the bytes of a text and the Size of a message.
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
