package apierr

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"

	"buf.build/go/protovalidate"
	"entgo.io/ent/privacy"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
)

// Map turns any error into an *Error. Only Map decides what a caller may read. nil stays nil. An unknown error becomes
// Internal with err as its cause.
func Map(err error) error {
	if err == nil {
		return nil
	}
	if own, ok := err.(*Error); ok { //nolint:errorlint // the wrapped case is below
		return own
	}
	var own *Error
	if errors.As(err, &own) {
		// The wrapping text is for the log; the status is the handler's.
		return own.WithCause(err)
	}
	var invalid *protovalidate.ValidationError
	if errors.As(err, &invalid) {
		return Validation(invalid, nil)
	}
	for _, known := range []func(error) *Error{mapContext, mapHTTP, mapStatus, mapDriver, mapEnt} {
		if mapped := known(err); mapped != nil {
			return mapped
		}
	}
	return Internal(err)
}

func mapContext(err error) *Error {
	switch {
	case errors.Is(err, context.DeadlineExceeded) && !connecting(err): // a server that refuses connections is unavailable
		return DeadlineExceeded(err).(*Error)
	case errors.Is(err, context.Canceled):
		return Cancelled(err).(*Error)
	}
	return nil
}

func mapHTTP(err error) *Error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return newf(codes.ResourceExhausted, errorsv1.Reason_REASON_BODY_TOO_LARGE,
			"the body must have at most %d bytes", tooLarge.Limit).WithCause(err)
	}
	return nil
}

// mapStatus keeps the text of a status only when gRPC itself wrote it for callers. status.Convert turns raw errors into
// Unknown, Internal and DataLoss, so these may contain any text.
func mapStatus(err error) *Error {
	st, ok := status.FromError(err)
	if !ok {
		return nil
	}
	if reason := statusReason(st); reason != errorsv1.Reason_REASON_UNSPECIFIED {
		return &Error{status: status.FromProto(st.Proto()), reason: reason, cause: wrapping(err)}
	}
	switch st.Code() {
	case codes.OK, codes.Unknown, codes.Internal, codes.DataLoss:
		return Internal(err).(*Error)
	case codes.DeadlineExceeded:
		return DeadlineExceeded(err).(*Error)
	case codes.Canceled:
		return Cancelled(err).(*Error)
	case codes.Unavailable:
		return unavailable(err, "the server cannot answer now: try again")
	}
	return New(st.Code(), defaultReason(st), st.Message()).WithCause(wrapping(err))
}

// wrapping returns err when it contains more than its status, so that the log shows it.
func wrapping(err error) error {
	if _, bare := err.(interface{ GRPCStatus() *status.Status }); bare { //nolint:errorlint // asks about err itself
		return nil
	}
	return err
}

// defaultReason is the reason of a status that gRPC itself created.
func defaultReason(st *status.Status) errorsv1.Reason {
	switch st.Code() {
	case codes.InvalidArgument, codes.OutOfRange:
		return errorsv1.Reason_REASON_INVALID_ARGUMENT
	case codes.NotFound:
		return errorsv1.Reason_REASON_NOT_FOUND
	case codes.AlreadyExists:
		return errorsv1.Reason_REASON_ALREADY_EXISTS
	case codes.PermissionDenied:
		return errorsv1.Reason_REASON_PERMISSION_DENIED
	case codes.Unauthenticated:
		return errorsv1.Reason_REASON_UNAUTHENTICATED
	case codes.FailedPrecondition:
		return errorsv1.Reason_REASON_FAILED_PRECONDITION
	case codes.Aborted:
		return errorsv1.Reason_REASON_CONFLICT
	case codes.Unimplemented:
		return errorsv1.Reason_REASON_NOT_IMPLEMENTED
	case codes.ResourceExhausted:
		if strings.Contains(st.Message(), "message larger than max") {
			return errorsv1.Reason_REASON_BODY_TOO_LARGE
		}
		return errorsv1.Reason_REASON_RATE_LIMITED
	}
	return errorsv1.Reason_REASON_INTERNAL
}

// mapEnt recognises the errors of generated ent code by their type names. Importing ent here would make the slowest
// build of the repository a dependency of every package that returns an error.
func mapEnt(err error) *Error {
	switch {
	case errors.Is(err, sql.ErrNoRows), chainHas(err, "*ent.NotFoundError", "*sqlgraph.NotFoundError"):
		return newf(codes.NotFound, errorsv1.Reason_REASON_NOT_FOUND, "not found").WithCause(err)
	case chainHas(err, "*ent.ConstraintError", "*sqlgraph.ConstraintError"):
		return newf(codes.Aborted, errorsv1.Reason_REASON_CONFLICT,
			"the change collides with what is stored").WithCause(err)
	case errors.Is(err, privacy.Deny):
		return newf(codes.PermissionDenied, errorsv1.Reason_REASON_PERMISSION_DENIED,
			"this is not allowed").WithCause(err)
	}
	return nil
}
