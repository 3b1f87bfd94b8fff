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
	// reasonEnum is the enum whose names, without reasonPrefix, are the codes of errors.
	reasonEnum   = "palisade.errors.v1.Reason"
	reasonPrefix = "REASON_"
)

// errorTexts says when each status is answered.
var errorTexts = map[int]string{
	http.StatusBadRequest:            "A parameter or the body is not valid; the text names the field, what was got and what is allowed.",
	http.StatusUnauthorized:          "The credential is missing, malformed, unknown, expired or revoked.",
	http.StatusForbidden:             "The credential is valid, but its role or its kind does not allow the operation.",
	http.StatusNotFound:              "There is no such thing, or the credential may not know of it.",
	http.StatusConflict:              "The change collides with what is stored.",
	http.StatusRequestEntityTooLarge: "The body is larger than allowed.",
	http.StatusTooManyRequests:       "Too many requests; Retry-After says when to come back.",
	http.StatusInternalServerError:   "The server failed; the request id finds it in the log.",
	http.StatusServiceUnavailable:    "The server is starting, stopping or overloaded; try again.",
	http.StatusGatewayTimeout:        "The request took longer than allowed.",
}

// errorStatuses gives the errors that an operation can answer.
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

// responseName gives the component name of an error response, such as NotFound.
func responseName(status int) string {
	return strings.ReplaceAll(http.StatusText(status), " ", "")
}

// errorComponents adds the schema that all errors have, the error responses and their headers.
func (b *builder) errorComponents(files []*protogen.File) {
	components := b.doc.Components
	components.Schemas[errorSchema] = errorBody(files).NewRef()
	components.Headers = openapi3.Headers{
		maturityHeader: header("How stable the operation is.",
			openapi3.NewStringSchema().WithEnum("Experimental", "Beta", "Stable")),
		retryHeader: header("Seconds to wait before the next try.", openapi3.NewIntegerSchema().WithMin(0)),
		challenge:   header("The credentials that are accepted.", openapi3.NewStringSchema()),
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

// errorBody gives the one shape of all errors, from routing to panic.
func errorBody(files []*protogen.File) *openapi3.Schema {
	text := func(description string) *openapi3.Schema {
		return &openapi3.Schema{Type: &openapi3.Types{openapi3.TypeString}, Description: description}
	}
	code := text("Why, for programs.")
	code.Enum = reasons(files)
	status := text("The gRPC status code by name.")
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		status.Enum = append(status.Enum, statusName(c))
	}
	details := openapi3.NewArraySchema()
	details.Description = "More about the error, each with its type: fields that are not valid, when to try again."
	details.Items = wellKnownSchema("google.protobuf.Any").NewRef()
	schema := openapi3.NewObjectSchema().
		WithProperty("error", text("What went wrong, for people.")).
		WithProperty("message", text("The same text as error.")).
		WithProperty("code", code).
		WithProperty("status", status).
		WithProperty("details", details).
		WithProperty("requestId", text("Id of the request; it finds the request in the server's log."))
	schema.Description = "Every error has this body."
	schema.Required = []string{"error", "message", "code", "status", "details", "requestId"}
	return schema
}

// reasons gives the codes of errors; none when the enum is not among the files.
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

// statusName gives the name of a gRPC code as the protocol spells it: DeadlineExceeded is DEADLINE_EXCEEDED.
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
