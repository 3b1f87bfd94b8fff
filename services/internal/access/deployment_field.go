package access

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// DeploymentField reads the deployment that a request names. Its field descriptors are looked up once, at start.
type DeploymentField struct {
	message protoreflect.FullName
	slug    protoreflect.FieldDescriptor
	id      protoreflect.FieldDescriptor
}

// newDeploymentField returns nil when the message has neither field.
func newDeploymentField(md protoreflect.MessageDescriptor) (*DeploymentField, error) {
	f := &DeploymentField{
		message: md.FullName(),
		slug:    md.Fields().ByName("deployment_slug"),
		id:      md.Fields().ByName("deployment_id"),
	}
	if f.slug != nil && (f.slug.Kind() != protoreflect.StringKind || f.slug.Cardinality() == protoreflect.Repeated) {
		return nil, fmt.Errorf("%s must be a single string", f.slug.FullName())
	}
	if f.id != nil && (f.id.Kind() != protoreflect.Int64Kind || f.id.Cardinality() == protoreflect.Repeated) {
		return nil, fmt.Errorf("%s must be a single int64", f.id.FullName())
	}
	if f.slug == nil && f.id == nil {
		return nil, nil
	}
	return f, nil
}

// Of returns the slug and id in the request. They are "" and 0 when the message lacks the field or does not set it, as
// in later messages of a stream, and for messages of another type.
func (f *DeploymentField) Of(request proto.Message) (slug string, id int64) {
	if f == nil || request == nil {
		return "", 0
	}
	m := request.ProtoReflect()
	if m.Descriptor().FullName() != f.message {
		return "", 0
	}
	if f.slug != nil {
		slug = m.Get(f.slug).String()
	}
	if f.id != nil {
		id = m.Get(f.id).Int()
	}
	return slug, id
}
