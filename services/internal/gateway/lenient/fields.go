package lenient

import (
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// fieldIndexes caches, by message descriptor, the fields under every name that clients use. It holds one entry for each
// message type of the binary.
var fieldIndexes sync.Map // protoreflect.MessageDescriptor → map[string]protoreflect.FieldDescriptor

// fieldsOf indexes the fields of a message by JSON name, proto name and the lowerCamelCase of the proto name. A JSON
// name takes precedence over another field's other names.
func fieldsOf(message protoreflect.MessageDescriptor) map[string]protoreflect.FieldDescriptor {
	if known, ok := fieldIndexes.Load(message); ok {
		return known.(map[string]protoreflect.FieldDescriptor)
	}
	fields := message.Fields()
	index := make(map[string]protoreflect.FieldDescriptor, 2*fields.Len())
	for i := range fields.Len() {
		field := fields.Get(i)
		index[camel(string(field.Name()))] = field
	}
	for i := range fields.Len() {
		field := fields.Get(i)
		index[string(field.Name())] = field
	}
	for i := range fields.Len() {
		field := fields.Get(i)
		index[field.JSONName()] = field
	}
	fieldIndexes.Store(message, index)
	return index
}

func camel(name string) string {
	parts := strings.Split(name, "_")
	for i, part := range parts[1:] {
		if part != "" {
			parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, "")
}

// isStrict reports whether JSON for the message must have no other names than its fields'.
func isStrict(message protoreflect.MessageDescriptor) bool {
	return proto.GetExtension(message.Options(), optionsv1.E_Strict).(bool)
}

// newMessage makes an empty message of the field's type.
func newMessage(field protoreflect.FieldDescriptor) protoreflect.Message {
	if known, err := protoregistry.GlobalTypes.FindMessageByName(field.Message().FullName()); err == nil {
		return known.New()
	}
	return dynamicpb.NewMessage(field.Message())
}
