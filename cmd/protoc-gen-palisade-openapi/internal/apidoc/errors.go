package apidoc

import (
	_ "embed"
	"net/http"
	"slices"
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
	http.StatusForbidden:             "The credential is valid, but its role, its kind or a decision of the operation does not allow it.",
	http.StatusNotFound:              "The resource does not exist, the credential may not see it, or the API token lacks a scope (code SCOPE_MISSING).",
	http.StatusRequestTimeout:        "The body arrived too slowly.",
	http.StatusConflict:              "The change conflicts with the stored state, or the name is taken.",
	http.StatusGone:                  "The deployment uses a newer service for this (code DEPLOYMENT_MIGRATED).",
	http.StatusRequestEntityTooLarge: "The body is larger than allowed.",
	http.StatusPreconditionRequired:  "The operation needs the header If-Match.",
	http.StatusTooManyRequests:       "Too many requests; Retry-After says when to retry.",
	http.StatusInternalServerError:   "The server failed. Search the log for the request id.",
	http.StatusNotImplemented:        "The operation is declared, but not implemented. The text says why.",
	http.StatusServiceUnavailable:    "The server is starting, stopping or overloaded; retry.",
	http.StatusGatewayTimeout:        "The request took longer than allowed.",
	http.StatusInsufficientStorage:   "The disk of the server, or of its database, is full; Retry-After says when to retry.",
}

// handlerReasons are the reasons of errors that the handler of each RPC can return: the output of .ci/tools/apierrors.
//
//go:embed reasons.tsv
var handlerReasons string

// reasonStatuses are the statuses of reasons. Any other reason means an invalid request.
var reasonStatuses = map[string]int{
	"UNAUTHENTICATED": http.StatusUnauthorized, "SCHEME_NOT_ACCEPTED": http.StatusForbidden, "PERMISSION_DENIED": http.StatusForbidden,
	"NOT_FOUND": http.StatusNotFound, "SCOPE_MISSING": http.StatusNotFound, "NOT_IMPLEMENTED": http.StatusNotImplemented,
	"CONFLICT": http.StatusConflict, "ALREADY_EXISTS": http.StatusConflict, "RESERVED_SLUG": http.StatusConflict,
	"DEPLOYMENT_MIGRATED": http.StatusGone, "BODY_TOO_LARGE": http.StatusRequestEntityTooLarge,
	"PRECONDITION_REQUIRED": http.StatusPreconditionRequired, "RATE_LIMITED": http.StatusTooManyRequests,
	"DEADLINE_EXCEEDED": http.StatusGatewayTimeout, "UNAVAILABLE": http.StatusServiceUnavailable,
	"STORAGE_FULL": http.StatusInsufficientStorage, "INTERNAL": http.StatusInternalServerError,
}

// forEveryRole are the permissions that no role lacks.
var forEveryRole = []string{permissionPublic, "PERMISSION_AUTHENTICATED", "PERMISSION_READ", "PERMISSION_JOIN"}

// handlerStatuses returns the errors of an RPC's handler.
func handlerStatuses(rpc string) (statuses []int) {
	for line := range strings.Lines(handlerReasons) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if fields[0] != rpc {
			continue
		}
		for _, reason := range fields[1:] {
			status := reasonStatuses[reason]
			if status == 0 {
				status = http.StatusBadRequest
			}
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// errorStatuses returns the errors that an operation can answer: from the server in front of every handler, from the
// access rule and the request, and from the handler.
func errorStatuses(bound binding, operation *openapi3.Operation, hasPath bool) []int {
	statuses := []int{http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	statuses = append(statuses, handlerStatuses(string(bound.method.Desc.FullName()))...)
	if len(operation.Parameters) > 0 || operation.RequestBody != nil {
		statuses = append(statuses, http.StatusBadRequest)
	}
	if bound.rule.Permission != permissionPublic {
		statuses = append(statuses, http.StatusUnauthorized)
	}
	if !slices.Contains(forEveryRole, bound.rule.Permission) || len(bound.rule.Schemes) == 1 {
		statuses = append(statuses, http.StatusForbidden)
	}
	if hasPath || slices.Contains(bound.rule.Schemes, "SCHEME_WEB_TOKEN") { // a token without the scope is 404
		statuses = append(statuses, http.StatusNotFound)
	}
	if operation.RequestBody != nil {
		statuses = append(statuses, http.StatusRequestEntityTooLarge, http.StatusRequestTimeout)
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
		case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
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
