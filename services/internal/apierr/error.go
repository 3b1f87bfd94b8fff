package apierr

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
)

// Domain is the domain of every google.rpc.ErrorInfo of this server.
const Domain = "palisade"

const reasonPrefix = "REASON_"

// Error is a gRPC status with one of our reasons. Its optional cause is for the log and not part of the status.
type Error struct {
	status *status.Status
	reason errorsv1.Reason
	cause  error
}

// New creates an error from its parts. text is for the caller. details follow the ErrorInfo. The constructors in this
// package are shorter.
func New(code codes.Code, reason errorsv1.Reason, text string, details ...protoadapt.MessageV1) *Error {
	if code == codes.OK {
		code = codes.Internal // an error is never a success
	}
	info := &errdetails.ErrorInfo{Reason: ReasonName(reason), Domain: Domain}
	bare := status.New(code, validText(text))
	st, err := bare.WithDetails(append([]protoadapt.MessageV1{info}, details...)...)
	if err != nil {
		// Keep the error even if a detail does not marshal. The ErrorInfo always does.
		if st, err = bare.WithDetails(info); err != nil {
			st = bare
		}
	}
	return &Error{status: st, reason: reason}
}

// WithCause returns a copy of e with a cause for the log.
func (e *Error) WithCause(cause error) *Error {
	return &Error{status: e.status, reason: e.reason, cause: cause}
}

// Error is the text for the log, including the cause. It must not be sent to callers; they get GRPCStatus.
func (e *Error) Error() string {
	text := ReasonName(e.reason) + ": " + e.status.Message()
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// GRPCStatus is the status for callers. The gRPC server and status.FromError look for this method.
func (e *Error) GRPCStatus() *status.Status { return e.status }

// Reason is the machine-readable reason.
func (e *Error) Reason() errorsv1.Reason { return e.reason }

// Unwrap returns the cause, which may be nil.
func (e *Error) Unwrap() error { return e.cause }

// ReasonName is the reason in the form of the API: without the prefix of the enum.
func ReasonName(reason errorsv1.Reason) string {
	return strings.TrimPrefix(reason.String(), reasonPrefix)
}

// ReasonOf returns the reason in the status of err, or REASON_UNSPECIFIED.
func ReasonOf(err error) errorsv1.Reason {
	var own *Error
	if errors.As(err, &own) {
		return own.reason
	}
	st, ok := status.FromError(err)
	if !ok {
		return errorsv1.Reason_REASON_UNSPECIFIED
	}
	return statusReason(st)
}

func statusReason(st *status.Status) errorsv1.Reason {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == Domain {
			return errorsv1.Reason(errorsv1.Reason_value[reasonPrefix+info.GetReason()])
		}
	}
	return errorsv1.Reason_REASON_UNSPECIFIED
}

// Cause returns what the server should log about err beyond its status, or nil.
func Cause(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own.cause
	}
	return nil
}

// Is reports whether err has the reason.
func Is(err error, reason errorsv1.Reason) bool {
	return err != nil && ReasonOf(err) == reason
}

// validText makes text valid for a protobuf string, since it may contain bytes from callers.
func validText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func newf(code codes.Code, reason errorsv1.Reason, format string, args ...any) *Error {
	return New(code, reason, fmt.Sprintf(format, args...))
}

// Plain reduces an API error to its text, for the command line.
func Plain(err error) error {
	var own *Error
	if errors.As(err, &own) && status.Code(own) != codes.Internal {
		return errors.New(own.GRPCStatus().Message())
	}
	return err
}
