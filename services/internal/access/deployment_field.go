package access

import (
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/services/internal/apierr"
)

// DeploymentField reads the deployment that a request names. Its field descriptors are looked up once, at start.
type DeploymentField struct {
	message protoreflect.FullName
	slug    protoreflect.FieldDescriptor
	id      protoreflect.FieldDescriptor
	inBody  bool // the RPC's path does not name the deployment
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

// onlyInBody reports whether the first HTTP path of an RPC names no deployment.
func onlyInBody(md protoreflect.MethodDescriptor) bool {
	http, _ := proto.GetExtension(md.Options(), annotations.E_Http).(*annotations.HttpRule)
	var path string
	switch pattern := http.GetPattern().(type) {
	case *annotations.HttpRule_Post:
		path = pattern.Post
	case *annotations.HttpRule_Put:
		path = pattern.Put
	case *annotations.HttpRule_Patch:
		path = pattern.Patch
	}
	return path != "" && !strings.Contains(path, "{deployment_")
}

// Missing is the error for a request that names no deployment although its body must. It is nil if the path names the
// deployment: an id of 0 there is an unknown one. Errors: INVALID_ARGUMENT naming the field.
func (f *DeploymentField) Missing() error {
	if f == nil || !f.inBody {
		return nil
	}
	field := f.id
	if field == nil {
		field = f.slug
	}
	return apierr.InvalidArgument(field.JSONName(), "%s is required", field.JSONName())
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
