package apierr

import (
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
)

// NotFound means that something does not exist, or that the caller may not know that it exists. Both look the same.
func NotFound(format string, args ...any) error {
	return newf(codes.NotFound, errorsv1.Reason_REASON_NOT_FOUND, format, args...)
}

// InvalidArgument refuses the value of one field. field is its JSON name (a path for nested ones). The text repeats the
// name and says what was got and what is allowed.
func InvalidArgument(field, format string, args ...any) error {
	return invalid(errorsv1.Reason_REASON_INVALID_ARGUMENT, field, fmt.Sprintf(format, args...))
}

// InvalidCursor refuses a cursor that this server did not issue, or that belongs to another filter. field is its JSON
// name.
func InvalidCursor(field string) error {
	text := field + " is not valid for this request: pass on the cursor of the previous answer with the same filter, or leave it out"
	return invalid(errorsv1.Reason_REASON_INVALID_CURSOR, field, text)
}

// InvalidResumeToken refuses a resume token that this deployment did not issue. field is its JSON name.
func InvalidResumeToken(field string) error {
	text := field + " is no resume token of this deployment: pass on the resume_token of the last message, or leave it out to start with the next change"
	return invalid(errorsv1.Reason_REASON_INVALID_CURSOR, field, text)
}

// MalformedJSON refuses a body that is not JSON. The text has the position.
func MalformedJSON(format string, args ...any) error {
	return newf(codes.InvalidArgument, errorsv1.Reason_REASON_MALFORMED_JSON, format, args...)
}

// MalformedReport refuses an uploaded report that cannot be parsed. The text has the position.
func MalformedReport(format string, args ...any) error {
	return newf(codes.InvalidArgument, errorsv1.Reason_REASON_MALFORMED_REPORT, format, args...)
}

// TooLarge refuses a body or report because of its size. Over HTTP it is 413.
func TooLarge(format string, args ...any) error {
	return newf(codes.ResourceExhausted, errorsv1.Reason_REASON_BODY_TOO_LARGE, format, args...)
}

// Unauthenticated refuses a missing or bad credential. The text must not distinguish unknown from revoked.
func Unauthenticated(format string, args ...any) error {
	return newf(codes.Unauthenticated, errorsv1.Reason_REASON_UNAUTHENTICATED, format, args...)
}

// SchemeNotAccepted refuses a valid credential of a kind that the operation does not accept.
func SchemeNotAccepted(format string, args ...any) error {
	return newf(codes.PermissionDenied, errorsv1.Reason_REASON_SCHEME_NOT_ACCEPTED, format, args...)
}

// PermissionDenied refuses a caller because their role does not permit the operation.
func PermissionDenied(format string, args ...any) error {
	return newf(codes.PermissionDenied, errorsv1.Reason_REASON_PERMISSION_DENIED, format, args...)
}

// ScopeMissing refuses an API token that lacks a scope. Over HTTP it is 404 (contract facts, 2.1). The text depends on
// the token and the operation only: it says nothing about whether the resource exists.
func ScopeMissing(format string, args ...any) error {
	return newf(codes.NotFound, errorsv1.Reason_REASON_SCOPE_MISSING, format, args...)
}

// Conflict means that the change conflicts with what is stored, such as a stale version. Over HTTP it is 409.
func Conflict(format string, args ...any) error {
	return newf(codes.Aborted, errorsv1.Reason_REASON_CONFLICT, format, args...)
}

// stateVersion is the ErrorInfo metadata key of the current version, for a stale change.
const stateVersion = "state_version"

// Stale is Conflict for a change that is based on an old version. The response has the current version: as
// state_version in the HTTP body and in the metadata of the ErrorInfo. Over HTTP it is 409.
func Stale(current, format string, args ...any) error {
	const reason = errorsv1.Reason_REASON_CONFLICT
	info := &errdetails.ErrorInfo{Reason: ReasonName(reason), Domain: Domain, Metadata: map[string]string{stateVersion: current}}
	st, err := status.New(codes.Aborted, validText(fmt.Sprintf(format, args...))).WithDetails(info)
	if err != nil {
		return Conflict(format, args...)
	}
	return &Error{status: st, reason: reason}
}

// PreconditionRequired refuses a change that does not name the version that it is based on. Over HTTP it is 428.
func PreconditionRequired(format string, args ...any) error {
	return newf(codes.FailedPrecondition, errorsv1.Reason_REASON_PRECONDITION_REQUIRED, format, args...)
}

// AlreadyExists means that the name is taken. Over HTTP it is 409.
func AlreadyExists(format string, args ...any) error {
	return newf(codes.AlreadyExists, errorsv1.Reason_REASON_ALREADY_EXISTS, format, args...)
}

// FailedPrecondition means that the current state does not permit the operation. Over HTTP it is 400.
func FailedPrecondition(format string, args ...any) error {
	return newf(codes.FailedPrecondition, errorsv1.Reason_REASON_FAILED_PRECONDITION, format, args...)
}

// RateLimited has the retry delay, at least one second. Over HTTP it is 429 with Retry-After.
func RateLimited(retryAfter time.Duration) error {
	wait := max(retryAfter, time.Second)
	text := fmt.Sprintf("too many requests: try again in %d s", wholeSeconds(wait))
	return New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED, text, retryInfo(wait))
}

// StorageFull means that a disk is full. Over HTTP it is 507.
func StorageFull(retryAfter time.Duration, format string, args ...any) error {
	return New(codes.ResourceExhausted, errorsv1.Reason_REASON_STORAGE_FULL, fmt.Sprintf(format, args...), retryInfo(max(retryAfter, time.Second)))
}

// NotImplemented means that the operation is declared but not implemented. Over HTTP it is 501.
func NotImplemented(format string, args ...any) error {
	return newf(codes.Unimplemented, errorsv1.Reason_REASON_NOT_IMPLEMENTED, format, args...)
}

// RouteNotFound means that no operation has this path.
func RouteNotFound(path string) error {
	return newf(codes.NotFound, errorsv1.Reason_REASON_ROUTE_NOT_FOUND, "no operation has the path %s", quote(path))
}

// MethodNotAllowed means that the path exists with other methods. allowed is the value of the Allow header. Over HTTP
// it is 405.
func MethodNotAllowed(method, allowed string) error {
	return newf(codes.Unimplemented, errorsv1.Reason_REASON_METHOD_NOT_ALLOWED,
		"the path does not take %s, only %s", clip(method), allowed)
}

// Unavailable means that the server cannot answer now: it is starting, stopping or overloaded. cause is for the log.
func Unavailable(cause error, format string, args ...any) error {
	return unavailable(cause, fmt.Sprintf(format, args...))
}

// DeadlineExceeded means that the request took too long. Over HTTP it is 504. cause is for the log.
func DeadlineExceeded(cause error) error {
	return newf(codes.DeadlineExceeded, errorsv1.Reason_REASON_DEADLINE_EXCEEDED,
		"the request took longer than allowed").WithCause(cause)
}

// Cancelled means that the caller disconnected. cause is for the log.
func Cancelled(cause error) error {
	return newf(codes.Canceled, errorsv1.Reason_REASON_CANCELLED, "the caller went away").WithCause(cause)
}

// Internal hides cause behind a generic text. The request id finds the cause in the log.
func Internal(cause error) error {
	return newf(codes.Internal, errorsv1.Reason_REASON_INTERNAL, "internal error").WithCause(cause)
}

func invalid(reason errorsv1.Reason, field, text string) *Error {
	return New(codes.InvalidArgument, reason, text, &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{fieldViolation(field, text)},
	})
}

func fieldViolation(field, text string) *errdetails.BadRequest_FieldViolation {
	return &errdetails.BadRequest_FieldViolation{Field: validText(field), Description: validText(text)}
}

// unavailable always has a retry delay, so that clients with a backoff use it.
func unavailable(cause error, text string) *Error {
	return New(codes.Unavailable, errorsv1.Reason_REASON_UNAVAILABLE, text, retryInfo(time.Second)).WithCause(cause)
}

func retryInfo(wait time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}
}

// wholeSeconds rounds up, so that a client that waits this time does not retry too early.
func wholeSeconds(wait time.Duration) int64 {
	return max(1, int64((wait+time.Second-1)/time.Second))
}
