package apidoc

import (
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// encodingField is the field of an upload's target that HTTP sends as the header Content-Encoding.
const encodingField = "content_encoding"

// reportTypes are the media types of reports.
var reportTypes = []string{"application/sarif+json", "application/json", "application/gzip"}

// upload describes a client-streaming RPC as a POST over HTTP: the bytes field of the request is the raw body; the
// fields of its messages are query parameters or headers.
func (b *builder) upload(operation *openapi3.Operation, bound binding, variables []variable) error {
	inPath := make(map[*protogen.Field]bool)
	for _, v := range variables {
		inPath[v.field()] = true
	}
	chunks, body := 0, rawBody()
	for _, field := range bound.method.Input.Fields {
		switch {
		case inPath[field]:
		case field.Desc.Kind() == protoreflect.BytesKind && !field.Desc.IsList():
			chunks++
			operation.RequestBody = &openapi3.RequestBodyRef{Value: body}
		case field.Message != nil && !field.Desc.IsList() && !field.Desc.IsMap():
			if fieldNamed(field.Message, encodingField) != nil {
				*body = *rawReport()
			}
			if err := b.uploadTarget(operation, field.Message); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s: a field of an upload is in the path, a message of parameters, or the bytes of the body",
				field.Desc.FullName())
		}
	}
	if chunks != 1 {
		return fmt.Errorf("%s: the request of an upload has exactly one bytes field, got %d",
			bound.method.Input.Desc.FullName(), chunks)
	}
	return nil
}

func (b *builder) uploadTarget(operation *openapi3.Operation, target *protogen.Message) error {
	skip := make(map[*protogen.Field]bool)
	if encoding := fieldNamed(target, encodingField); encoding != nil {
		skip[encoding] = true
		schema := openapi3.NewStringSchema().WithEnum("gzip", "identity")
		operation.AddParameter(openapi3.NewHeaderParameter("Content-Encoding").
			WithDescription("gzip when the body is compressed.").WithSchema(schema))
	}
	if err := b.headerParameters(operation, target, skip); err != nil {
		return err
	}
	return b.queryParameters(operation, target, "", skip, false, nil)
}

// headerParameters adds a parameter for each field that a header fills, and marks the field in skip unless that is nil.
func (b *builder) headerParameters(operation *openapi3.Operation, message *protogen.Message, skip map[*protogen.Field]bool) error {
	for _, field := range message.Fields {
		name, err := b.reader.Header(field.Desc)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		if skip != nil {
			skip[field] = true
		}
		schema, err := b.parameterSchema(field)
		if err != nil {
			return err
		}
		operation.AddParameter(&openapi3.Parameter{
			Name: name, In: openapi3.ParameterInHeader, Description: comment(field.Comments), Schema: schema, Deprecated: isDeprecated(field),
		})
	}
	return nil
}

func rawBody() *openapi3.RequestBody {
	return &openapi3.RequestBody{
		Required: true, Description: "The raw body.",
		Content: openapi3.NewContentWithSchema(openapi3.NewStringSchema().WithFormat("binary"), []string{"application/json"}),
	}
}

func rawReport() *openapi3.RequestBody {
	schema := openapi3.NewStringSchema().WithFormat("binary")
	return &openapi3.RequestBody{
		Required:    true,
		Description: "The raw report. The server reads it as a stream.",
		Content:     openapi3.NewContentWithSchema(schema, reportTypes),
	}
}
