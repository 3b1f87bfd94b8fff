package inprocess

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// cloner passes messages of streams to the other side.
type cloner struct{}

// Copy makes out share the contents of in.
func (cloner) Copy(out, in any) error { return share(out, in) }

// Clone returns the message itself.
func (cloner) Clone(in any) (any, error) { return in, nil }

// share makes out share the contents of in, including lists, maps and inner messages.
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
