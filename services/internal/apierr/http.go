package apierr

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
)

// httpBody is the body of every HTTP error. The order of its keys is part of the format. error and message have the
// same text, because some clients read one and some the other (contract, section on errors).
type httpBody struct {
	Error     string            `json:"error"`
	Message   string            `json:"message"`
	Code      string            `json:"code"`
	Status    string            `json:"status"`
	Details   []json.RawMessage `json:"details"`
	RequestID string            `json:"requestId"`
	// StateVersion is set for a stale change.
	StateVersion string `json:"state_version,omitempty"`
}

// HTTPStatus is the HTTP status of err: grpc-gateway's mapping of its code, unless the reason has its own.
func HTTPStatus(err error) int {
	st, reason := convert(err)
	return httpStatus(st, reason)
}

func httpStatus(st *status.Status, reason errorsv1.Reason) int {
	switch reason {
	case errorsv1.Reason_REASON_DEPLOYMENT_MIGRATED, errorsv1.Reason_REASON_RESUME_TOKEN_EXPIRED:
		return http.StatusGone
	case errorsv1.Reason_REASON_BODY_TOO_LARGE:
		return http.StatusRequestEntityTooLarge
	case errorsv1.Reason_REASON_METHOD_NOT_ALLOWED:
		return http.StatusMethodNotAllowed
	case errorsv1.Reason_REASON_PRECONDITION_REQUIRED:
		return http.StatusPreconditionRequired
	case errorsv1.Reason_REASON_STORAGE_FULL:
		return http.StatusInsufficientStorage
	}
	return runtime.HTTPStatusFromCode(st.Code())
}

// WriteHTTP writes err as an HTTP response: status, headers (WWW-Authenticate on 401, Retry-After on 429, 503 and 507)
// and body. requestID may be empty.
func WriteHTTP(w http.ResponseWriter, err error, requestID string) {
	st, reason := convert(err)
	WriteHTTPAs(w, httpStatus(st, reason), err, requestID)
}

// WriteHTTPAs is WriteHTTP with an HTTP status that no gRPC code maps to, such as 415.
func WriteHTTPAs(w http.ResponseWriter, httpStatus int, err error, requestID string) {
	write(w, httpStatus, err, HTTPBody(err, requestID))
}

// WriteScanner writes err with the body of the scan protocol (section 8): the key error, and code for a token without
// the scope. All credential errors have the same text.
func WriteScanner(w http.ResponseWriter, err error) {
	st, reason := convert(err)
	WriteScannerAs(w, httpStatus(st, reason), err)
}

// WriteScannerAs is WriteScanner with an HTTP status that no gRPC code maps to.
func WriteScannerAs(w http.ResponseWriter, httpStatus int, err error) {
	st, reason := convert(err)
	var body struct {
		Error string `json:"error"`
		Code  string `json:"code,omitempty"`
	}
	body.Error = st.Message()
	if httpStatus == http.StatusUnauthorized {
		body.Error = "Not authorized"
	}
	if reason == errorsv1.Reason_REASON_SCOPE_MISSING {
		body.Code = ReasonName(reason)
	}
	write(w, httpStatus, err, encode(body))
}

func write(w http.ResponseWriter, httpStatus int, err error, body []byte) {
	st, _ := convert(err)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Del("Content-Length")
	if httpStatus == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="palisade"`)
	}
	retried := []int{http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusInsufficientStorage}
	if wait, ok := retryAfter(st); ok && slices.Contains(retried, httpStatus) {
		header.Set("Retry-After", strconv.FormatInt(wait, 10))
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(httpStatus)
	_, _ = w.Write(body) // a caller that disconnected needs no response
}

// HTTPBody is the body of the HTTP response for err, on one line without a line break.
func HTTPBody(err error, requestID string) []byte {
	st, reason := convert(err)
	return encode(httpBody{
		Error:     st.Message(),
		Message:   st.Message(),
		Code:      ReasonName(reason),
		Status:    code.Code(st.Code()).String(),
		Details:   detailsJSON(st),
		RequestID: requestID,

		StateVersion: currentVersion(st),
	})
}

// currentVersion is the version in the status of a stale change.
func currentVersion(st *status.Status) string {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return info.GetMetadata()[stateVersion]
		}
	}
	return ""
}

// encode returns JSON on one line without a line break.
func encode(body any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encodeErr := encoder.Encode(body); encodeErr != nil {
		// Strings and compacted JSON always encode.
		return []byte(`{"error":"internal error","message":"internal error","code":"INTERNAL","status":"INTERNAL","details":[],"requestId":""}`)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func convert(err error) (*status.Status, errorsv1.Reason) {
	mapped := Map(err)
	if own, ok := mapped.(*Error); ok { //nolint:errorlint // Map returns *Error or nil
		return own.status, own.reason
	}
	own := Internal(err).(*Error)
	return own.status, own.reason
}

// retryAfter is the delay of the status' RetryInfo in whole seconds.
func retryAfter(st *status.Status) (int64, bool) {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return wholeSeconds(info.GetRetryDelay().AsDuration()), true
		}
	}
	return 0, false
}

// detailsJSON is the protobuf JSON of the details. It omits our ErrorInfo, since the body has its reason as code, and
// its domain is constant. An ErrorInfo with metadata stays.
func detailsJSON(st *status.Status) []json.RawMessage {
	list := make([]json.RawMessage, 0, len(st.Proto().GetDetails()))
	for _, detail := range st.Proto().GetDetails() {
		if isPlainInfo(detail) {
			continue
		}
		encoded, err := protojson.Marshal(detail)
		if err != nil {
			continue // this binary does not know the type of the detail
		}
		var compact bytes.Buffer
		if json.Compact(&compact, encoded) == nil {
			list = append(list, compact.Bytes())
		}
	}
	return list
}

func isPlainInfo(detail *anypb.Any) bool {
	var info errdetails.ErrorInfo
	return detail.MessageIs(&info) &&
		anypb.UnmarshalTo(detail, &info, proto.UnmarshalOptions{}) == nil && len(info.GetMetadata()) == 0
}
