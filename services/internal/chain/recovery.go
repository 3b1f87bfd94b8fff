package chain

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"

	"github.com/palisade/palisade/services/internal/apierr"
)

// panicError is a recovered panic; the access log prints its stack.
type panicError struct {
	value any
	stack []byte
}

// Error names the panic. Callers never see it.
func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// recoverPanics turns a panic into an internal error. It runs outside the error mapping, so that a bug there cannot
// stop the server either, and so it creates the final error itself.
func recoverPanics(d Deps) Link {
	handler := recovery.WithRecoveryHandlerContext(func(ctx context.Context, value any) error {
		d.Metrics.Panics.Inc()
		return finish(ctx, apierr.Internal(&panicError{value: value, stack: debug.Stack()}))
	})
	return Link{
		Name:   "recovery",
		Unary:  recovery.UnaryServerInterceptor(handler),
		Stream: recovery.StreamServerInterceptor(handler),
	}
}
