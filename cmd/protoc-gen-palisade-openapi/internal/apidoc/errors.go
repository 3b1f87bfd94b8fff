package apidoc

import (
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/compiler/protogen"
)

const (
	errorSchema    = "Error"
	maturityHeader = "X-Api-Maturity"
	retryHeader    = "Retry-After"
	challenge      = "WWW-Authenticate"
	// reasonEnum is the enum of error codes. A code is a name without reasonPrefix.
	reasonEnum   = "palisade.errors.v1.Reason"
	reasonPrefix = "REASON_"
)

// errorTexts describes each status.
var errorTexts = map[int]string{
	http.StatusBadRequest:            "A parameter or the body is not valid. The text names the field, the value and what is allowed.",
	http.StatusUnauthorized:          "The credential is missing, malformed, unknown, expired or revoked.",
	http.StatusForbidden:             "The credential is valid, but its role or its kind does not allow the operation.",
	http.StatusNotFound:              "The resource does not exist, or the credential may not see it.",
	http.StatusConflict:              "The change conflicts with the stored state.",
	http.StatusRequestEntityTooLarge: "The body is larger than allowed.",
	http.StatusTooManyRequests:       "Too many requests; Retry-After says when to retry.",
	http.StatusInternalServerError:   "The server failed. Search the log for the request id.",
	http.StatusServiceUnavailable:    "The server is starting, stopping or overloaded; retry.",
	http.StatusGatewayTimeout:        "The request took longer than allowed.",
}

// errorStatuses returns the errors of an operation.
func errorStatuses(bound binding, operation *openapi3.Operation, hasPath bool) []int {
	statuses := []int{http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	if len(operation.Parameters) > 0 || operation.RequestBody != nil {
		statuses = append(statuses, http.StatusBadRequest)
	}
	if bound.rule.Permission != permissionPublic {
		statuses = append(statuses, http.StatusUnauthorized, http.StatusForbidden)
	}
	if hasPath {
		statuses = append(statuses, http.StatusNotFound)
	}
	if bound.verb != http.MethodGet {
		statuses = append(statuses, http.StatusConflict)
	}
	if operation.RequestBody != nil {
		statuses = append(statuses, http.StatusRequestEntityTooLarge)
	}
	return statuses
}

// responseName returns the component name of an error response, such as NotFound.
func responseName(status int) string {
	return strings.ReplaceAll(http.StatusText(status), " ", "")
}

// errorComponents adds the schema of errors, the error responses and their headers.
func (b *builder) errorComponents(files []*protogen.File) {
	components := b.doc.Components
	components.Schemas[errorSchema] = errorBody(files).NewRef()
	components.Headers = openapi3.Headers{
		maturityHeader: header("Stability of the operation.",
			openapi3.NewStringSchema().WithEnum("Experimental", "Beta", "Stable")),
		retryHeader: header("Seconds to wait before the next attempt.", openapi3.NewIntegerSchema().WithMin(0)),
		challenge:   header("The accepted credentials.", openapi3.NewStringSchema()),
	}
	components.Responses = openapi3.ResponseBodies{}
	for status, text := range errorTexts {
		response := openapi3.NewResponse().WithDescription(text).WithJSONSchemaRef(refTo(errorSchema))
		switch status {
		case http.StatusTooManyRequests:
			response.Headers = openapi3.Headers{retryHeader: {Ref: "#/components/headers/" + retryHeader}}
		case http.StatusUnauthorized:
			response.Headers = openapi3.Headers{challenge: {Ref: "#/components/headers/" + challenge}}
		}
		components.Responses[responseName(status)] = &openapi3.ResponseRef{Value: response}
	}
}

func header(text string, schema *openapi3.Schema) *openapi3.HeaderRef {
	return &openapi3.HeaderRef{Value: &openapi3.Header{
		Parameter: openapi3.Parameter{Description: text, Schema: schema.NewRef()},
	}}
}

// errorBody returns the schema of all errors, from routing to panic.
func errorBody(files []*protogen.File) *openapi3.Schema {
	text := func(description string) *openapi3.Schema {
		return &openapi3.Schema{Type: &openapi3.Types{openapi3.TypeString}, Description: description}
	}
	code := text("Machine-readable reason.")
	code.Enum = reasons(files)
	status := text("The gRPC status code by name.")
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		status.Enum = append(status.Enum, statusName(c))
	}
	details := openapi3.NewArraySchema()
	details.Description = "Details of the error, each with its type: invalid fields, when to retry."
	details.Items = wellKnownSchema("google.protobuf.Any").NewRef()
	schema := openapi3.NewObjectSchema().
		WithProperty("error", text("Description of the error for people.")).
		WithProperty("message", text("The same text as error.")).
		WithProperty("code", code).
		WithProperty("status", status).
		WithProperty("details", details).
		WithProperty("requestId", text("Id of the request in the server's log."))
	schema.Description = "Every error has this body."
	schema.Required = []string{"error", "message", "code", "status", "details", "requestId"}
	return schema
}

// reasons returns the codes of errors; none if the enum is not among the files.
func reasons(files []*protogen.File) []any {
	var names []any
	for _, file := range files {
		for _, enum := range file.Enums {
			if enum.Desc.FullName() != reasonEnum {
				continue
			}
			for _, value := range enum.Values {
				if value.Desc.Number() != 0 {
					names = append(names, strings.TrimPrefix(string(value.Desc.Name()), reasonPrefix))
				}
			}
		}
	}
	return names
}

// statusName returns the name of a gRPC code in the protocol's spelling: DeadlineExceeded is DEADLINE_EXCEEDED.
func statusName(c codes.Code) string {
	if c == codes.Canceled {
		return "CANCELLED"
	}
	var name strings.Builder
	for i, r := range c.String() {
		if i > 0 && r >= 'A' && r <= 'Z' {
			name.WriteByte('_')
		}
		name.WriteRune(r)
	}
	return strings.ToUpper(name.String())
}
