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

// NotFound says that there is no such thing, or that the caller may not know of it: both look the same.
func NotFound(format string, args ...any) error {
	return newf(codes.NotFound, errorsv1.Reason_REASON_NOT_FOUND, format, args...)
}

// InvalidArgument refuses the value of one field. field is its JSON name (a path for nested ones); the text
// names it again, what was got and what is allowed.
func InvalidArgument(field, format string, args ...any) error {
	return invalid(errorsv1.Reason_REASON_INVALID_ARGUMENT, field, fmt.Sprintf(format, args...))
}

// InvalidCursor refuses a cursor that is not one of ours or belongs to another filter. field is its JSON name.
func InvalidCursor(field string) error {
	text := field + " is not valid for this request: pass on the cursor of the previous answer with the same filter, or leave it out"
	return invalid(errorsv1.Reason_REASON_INVALID_CURSOR, field, text)
}

// MalformedJSON refuses a body that is not JSON; the text names the position.
func MalformedJSON(format string, args ...any) error {
	return newf(codes.InvalidArgument, errorsv1.Reason_REASON_MALFORMED_JSON, format, args...)
}

// MalformedReport refuses an uploaded report that cannot be read; the text says where.
func MalformedReport(format string, args ...any) error {
	return newf(codes.InvalidArgument, errorsv1.Reason_REASON_MALFORMED_REPORT, format, args...)
}

// TooLarge refuses a body or report by its size. Over HTTP it is 413.
func TooLarge(format string, args ...any) error {
	return newf(codes.ResourceExhausted, errorsv1.Reason_REASON_BODY_TOO_LARGE, format, args...)
}

// Unauthenticated refuses a missing or bad credential. The text must not tell unknown from revoked.
func Unauthenticated(format string, args ...any) error {
	return newf(codes.Unauthenticated, errorsv1.Reason_REASON_UNAUTHENTICATED, format, args...)
}

// SchemeNotAccepted refuses a good credential of a kind that the operation does not take.
func SchemeNotAccepted(format string, args ...any) error {
	return newf(codes.PermissionDenied, errorsv1.Reason_REASON_SCHEME_NOT_ACCEPTED, format, args...)
}

// PermissionDenied refuses a caller whose role does not allow the operation.
func PermissionDenied(format string, args ...any) error {
	return newf(codes.PermissionDenied, errorsv1.Reason_REASON_PERMISSION_DENIED, format, args...)
}

// Conflict says that the change collides with what is stored, such as a stale version. Over HTTP it is 409.
func Conflict(format string, args ...any) error {
	return newf(codes.Aborted, errorsv1.Reason_REASON_CONFLICT, format, args...)
}

// stateVersion is the metadata key of the ErrorInfo under which a stale change learns the current version.
const stateVersion = "state_version"

// Stale is Conflict for a change that was made from another version than the current one, which the answer carries: as
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

// PreconditionRequired refuses a change that does not name the version that it was made from. Over HTTP it is 428.
func PreconditionRequired(format string, args ...any) error {
	return newf(codes.FailedPrecondition, errorsv1.Reason_REASON_PRECONDITION_REQUIRED, format, args...)
}

// AlreadyExists says that a thing of this name exists. Over HTTP it is 409.
func AlreadyExists(format string, args ...any) error {
	return newf(codes.AlreadyExists, errorsv1.Reason_REASON_ALREADY_EXISTS, format, args...)
}

// FailedPrecondition says that the state of the thing does not allow the operation. Over HTTP it is 400.
func FailedPrecondition(format string, args ...any) error {
	return newf(codes.FailedPrecondition, errorsv1.Reason_REASON_FAILED_PRECONDITION, format, args...)
}

// RateLimited says when to come back; less than a second counts as one. Over HTTP it is 429 with Retry-After.
func RateLimited(retryAfter time.Duration) error {
	wait := max(retryAfter, time.Second)
	text := fmt.Sprintf("too many requests: try again in %d s", wholeSeconds(wait))
	return New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED, text, retryInfo(wait))
}

// StorageFull says that there is no room on a disk. Over HTTP it is 507.
func StorageFull(retryAfter time.Duration, format string, args ...any) error {
	return New(codes.ResourceExhausted, errorsv1.Reason_REASON_STORAGE_FULL, fmt.Sprintf(format, args...), retryInfo(max(retryAfter, time.Second)))
}

// NotImplemented says that the operation is declared, but not built. Over HTTP it is 501.
func NotImplemented(format string, args ...any) error {
	return newf(codes.Unimplemented, errorsv1.Reason_REASON_NOT_IMPLEMENTED, format, args...)
}

// RouteNotFound says that no operation has this path.
func RouteNotFound(path string) error {
	return newf(codes.NotFound, errorsv1.Reason_REASON_ROUTE_NOT_FOUND, "no operation has the path %s", quote(path))
}

// MethodNotAllowed says that the path exists with other methods; allowed is the value of the Allow header.
// Over HTTP it is 405.
func MethodNotAllowed(method, allowed string) error {
	return newf(codes.Unimplemented, errorsv1.Reason_REASON_METHOD_NOT_ALLOWED,
		"the path does not take %s, only %s", clip(method), allowed)
}

// Unavailable says that the server cannot answer now: starting, stopping, overloaded. cause is for the log.
func Unavailable(cause error, format string, args ...any) error {
	return unavailable(cause, fmt.Sprintf(format, args...))
}

// DeadlineExceeded says that the request took too long. Over HTTP it is 504. cause is for the log.
func DeadlineExceeded(cause error) error {
	return newf(codes.DeadlineExceeded, errorsv1.Reason_REASON_DEADLINE_EXCEEDED,
		"the request took longer than allowed").WithCause(cause)
}

// Cancelled says that the caller went away. cause is for the log.
func Cancelled(cause error) error {
	return newf(codes.Canceled, errorsv1.Reason_REASON_CANCELLED, "the caller went away").WithCause(cause)
}

// Internal hides cause behind a text that says nothing; the request id finds it in the log.
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

// unavailable always says when to come back, so that clients with a back-off use it.
func unavailable(cause error, text string) *Error {
	return New(codes.Unavailable, errorsv1.Reason_REASON_UNAVAILABLE, text, retryInfo(time.Second)).WithCause(cause)
}

func retryInfo(wait time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)}
}

// wholeSeconds rounds up: a client that waits the rounded time must not come too early.
func wholeSeconds(wait time.Duration) int64 {
	return max(1, int64((wait+time.Second-1)/time.Second))
}
