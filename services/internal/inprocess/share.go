package inprocess

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// cloner moves the messages of streams to the other side.
type cloner struct{}

// Copy makes out hold what in holds.
func (cloner) Copy(out, in any) error { return share(out, in) }

// Clone passes the message itself on.
func (cloner) Clone(in any) (any, error) { return in, nil }

// share makes out hold what in holds; lists, maps and inner messages are those of in.
func share(out, in any) error {
	target, ok := out.(proto.Message)
	if !ok {
		return fmt.Errorf("in-process call: cannot receive into a %T", out)
	}
	source, ok := in.(proto.Message)
	if !ok {
		return fmt.Errorf("in-process call: cannot send a %T", in)
	}
	to, from := target.ProtoReflect(), source.ProtoReflect()
	if to.Descriptor() != from.Descriptor() {
		return fmt.Errorf("in-process call: cannot receive a %s as a %s", from.Descriptor().FullName(), to.Descriptor().FullName())
	}
	proto.Reset(target)
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
	to.SetUnknown(from.GetUnknown())
	return nil
}
