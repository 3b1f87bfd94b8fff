package chain

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/services/internal/apierr"
)

// mapErrors maps the handler's error to the error for the caller. It calls corrupt with errors of a damaged database.
// corrupt may be nil.
func mapErrors(corrupt func(error)) Link {
	leaving := func(ctx context.Context, err error) error {
		if corrupt != nil && apierr.IsCorrupt(err) {
			corrupt(err)
		}
		return finish(ctx, err)
	}
	return Link{
		Name: "error mapping",
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			resp, err := handler(ctx, req)
			if err != nil {
				return nil, leaving(ctx, err)
			}
			return resp, nil
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := handler(srv, ss); err != nil {
				return leaving(ss.Context(), err)
			}
			return nil
		},
	}
}

// answer is a final error: the status of err with the request id as google.rpc.RequestInfo.
type answer struct {
	err    error // of apierr
	status *status.Status
}

// Error is the text for the log.
func (a *answer) Error() string { return a.err.Error() }

// GRPCStatus is the status for the caller.
func (a *answer) GRPCStatus() *status.Status { return a.status }

// Unwrap returns the error of package apierr.
func (a *answer) Unwrap() error { return a.err }

func finish(ctx context.Context, err error) error {
	mapped := apierr.Map(err)
	if late := ctx.Err(); late != nil && (status.Code(mapped) == codes.Internal || errors.Is(err, io.EOF)) {
		// A query that a deadline cut off may fail with another error ("transaction has already been rolled back"). A
		// message to a caller that has gone fails with io.EOF.
		mapped = apierr.Map(fmt.Errorf("%w: %w", late, err))
	}
	st, _ := status.FromError(mapped)
	if with, detailErr := st.WithDetails(&errdetails.RequestInfo{RequestId: callFrom(ctx).id}); detailErr == nil {
		st = with
	}
	return &answer{err: mapped, status: st}
}
