package apidoc

import (
	"fmt"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Names of the security schemes in the contract's section on authentication.
const (
	schemeWebToken = "PlatformWebToken"
	schemeJWT      = "PlatformJWT"
)

var schemes = map[string]string{"SCHEME_WEB_TOKEN": schemeWebToken, "SCHEME_JWT": schemeJWT}

// maturities has the words in the contract's section on versioning.
var maturities = map[string]string{
	"MATURITY_EXPERIMENTAL": "Experimental",
	"MATURITY_BETA":         "Beta",
	"MATURITY_STABLE":       "Stable",
}

const permissionPublic = "PERMISSION_PUBLIC"

// operation adds one operation to the document.
func (b *builder) operation(bound binding) error {
	method := bound.method.Desc.FullName()
	if other, taken := b.operations[bound.operationID]; taken {
		return fmt.Errorf("%s: operation id %s is already that of %s; RPC names are unique in the API",
			method, bound.operationID, other)
	}
	b.operations[bound.operationID] = string(method)
	maturity, known := maturities[bound.rule.Maturity]
	if !known {
		return fmt.Errorf("%s: maturity is %s; it must be MATURITY_EXPERIMENTAL, _BETA or _STABLE", method, bound.rule.Maturity)
	}
	path, variables, err := bound.path()
	if err != nil {
		return err
	}
	path = b.samePath(path, variables)
	text := comment(bound.method.Comments)
	operation := &openapi3.Operation{
		OperationID: bound.operationID,
		Tags:        []string{tagName(bound.method.Parent)},
		Summary:     firstSentence(text),
		Description: fmt.Sprintf("**%s.** %s", maturity, text),
		Deprecated:  bound.method.Desc.Options().(*descriptorpb.MethodOptions).GetDeprecated(),
		Extensions:  map[string]any{"x-maturity": maturity},
	}
	if operation.Security, err = security(bound); err != nil {
		return err
	}
	if err := b.request(operation, bound, variables); err != nil {
		return err
	}
	if err := b.responses(operation, bound, len(variables) > 0); err != nil {
		return err
	}
	item := b.doc.Paths.Value(path)
	if item == nil {
		item = &openapi3.PathItem{}
		b.doc.Paths.Set(path, item)
	}
	if item.GetOperation(bound.verb) != nil {
		return fmt.Errorf("%s: %s %s is already the path of another RPC", method, bound.verb, path)
	}
	item.SetOperation(bound.verb, operation)
	return nil
}

// security returns the alternative credentials; an empty list means that none are needed.
func security(bound binding) (*openapi3.SecurityRequirements, error) {
	requirements := openapi3.NewSecurityRequirements()
	for _, scheme := range bound.rule.Schemes {
		name, known := schemes[scheme]
		if !known {
			return nil, fmt.Errorf("%s: scheme %s is not allowed; SCHEME_WEB_TOKEN and SCHEME_JWT are",
				bound.method.Desc.FullName(), scheme)
		}
		requirements.With(openapi3.SecurityRequirement{name: {}})
	}
	if public := bound.rule.Permission == permissionPublic; public != (len(*requirements) == 0) {
		return nil, fmt.Errorf("%s: permission is %s with %d schemes; only PERMISSION_PUBLIC has none, and it must have none",
			bound.method.Desc.FullName(), bound.rule.Permission, len(*requirements))
	}
	return requirements, nil
}

// request describes the parameters and the body. A DELETE with a body has the same fields in the query.
func (b *builder) request(operation *openapi3.Operation, bound binding, variables []variable) error {
	for _, v := range variables {
		parameter, err := b.pathParameter(v)
		if err != nil {
			return err
		}
		operation.AddParameter(parameter)
	}
	if bound.upload {
		return b.upload(operation, bound, variables)
	}
	if bound.body == "*" {
		if err := b.body(operation, bound.method.Input, nil); err != nil || bound.verb != http.MethodDelete {
			return err
		}
	}
	if bound.events {
		if err := b.headerParameters(operation, bound.method.Input, nil); err != nil {
			return err
		}
	}
	skip := make(map[*protogen.Field]bool)
	for _, v := range variables {
		skip[v.field()] = true
	}
	if bound.body != "" && bound.body != "*" {
		field := fieldNamed(bound.method.Input, bound.body)
		if field == nil {
			return fmt.Errorf("%s: body names %q, which is not a field of the request",
				bound.method.Desc.FullName(), bound.body)
		}
		skip[field] = true
		if err := b.body(operation, field.Message, field); err != nil {
			return err
		}
	}
	return b.queryParameters(operation, bound.method.Input, "", skip, bound.bodyToo, nil)
}

// body describes the JSON body: a whole message, or one field of the request.
func (b *builder) body(operation *openapi3.Operation, message *protogen.Message, field *protogen.Field) error {
	var schema *openapi3.SchemaRef
	var err error
	if field != nil {
		schema, err = b.fieldSchema(field)
	} else {
		schema, err = b.messageSchema(message)
	}
	if err != nil {
		return err
	}
	required := false
	if message != nil {
		if component := b.doc.Components.Schemas[schemaName(message.Desc)]; component != nil {
			required = len(component.Value.Required) > 0
		}
	}
	operation.RequestBody = &openapi3.RequestBodyRef{Value: &openapi3.RequestBody{
		Required: required,
		Content:  openapi3.NewContentWithJSONSchemaRef(schema),
	}}
	return nil
}

// responses describes the success and error responses of the operation.
func (b *builder) responses(operation *openapi3.Operation, bound binding, hasPath bool) error {
	output := bound.method.Output
	var schema *openapi3.SchemaRef
	var err error
	if bound.responseBody == "" {
		schema, err = b.messageSchema(output)
	} else if field := fieldNamed(output, bound.responseBody); field != nil {
		schema, err = b.fieldSchema(field)
	} else {
		err = fmt.Errorf("%s: response_body names %q, which is not a field of the response",
			bound.method.Desc.FullName(), bound.responseBody)
	}
	if err != nil {
		return err
	}
	description := comment(output.Comments)
	if description == "" {
		description = "Success."
	}
	code := bound.rule.SuccessCode
	if code == 0 {
		code = http.StatusOK
	}
	success := &openapi3.Response{
		Description: &description,
		Headers:     openapi3.Headers{maturityHeader: {Ref: "#/components/headers/" + maturityHeader}},
	}
	if code != http.StatusNoContent {
		success.Content = openapi3.NewContentWithJSONSchemaRef(schema)
	}
	if bound.events {
		success.Content["text/event-stream"] = openapi3.NewMediaType().WithSchemaRef(schema)
	}
	operation.Responses = openapi3.NewResponses(openapi3.WithStatus(code, &openapi3.ResponseRef{Value: success}))
	for _, status := range errorStatuses(bound, operation, hasPath) {
		operation.Responses.Set(fmt.Sprint(status), &openapi3.ResponseRef{
			Ref: "#/components/responses/" + responseName(status),
		})
	}
	return nil
}
