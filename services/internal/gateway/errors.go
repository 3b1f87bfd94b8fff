package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// handleError writes the errors of RPCs, which the generated code passes on.
func (g *gateway) handleError(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	if probeFrom(ctx) != nil {
		return
	}
	g.writeError(w, r, err)
}

// handleRoutingError writes the errors of the router: unknown path, wrong method.
func (g *gateway) handleRoutingError(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, status int) {
	if probeFrom(ctx) != nil {
		return
	}
	if status == http.StatusMethodNotAllowed {
		g.methodNotAllowed(w, r, g.allowed(r))
		return
	}
	g.writeError(w, r, apierr.RouteNotFound(r.URL.Path))
}

// writeError writes the error body. An internal error without our reason has not passed the error interceptor, so it
// must be logged here.
func (g *gateway) writeError(w http.ResponseWriter, r *http.Request, err error) {
	requestID := RequestID(r.Context())
	mapped := apierr.Map(err)
	if apierr.ReasonOf(err) == errorsv1.Reason_REASON_UNSPECIFIED && apierr.Is(mapped, errorsv1.Reason_REASON_INTERNAL) {
		g.log.ErrorContext(r.Context(), "request failed", slog.String("request_id", requestID), slog.Any("error", err))
	}
	w.Header().Del("Transfer-Encoding")
	scanner := false
	if c := callFrom(r.Context()); c != nil {
		c.quota.WriteHeader(w.Header())
		scanner = c.route.rule.GetScanner()
		if c.body.left() {
			closeAfter(w, r)
		}
	}
	var special *statusError
	switch as := errors.As(err, &special); {
	case as && scanner:
		apierr.WriteScannerAs(w, special.status, mapped)
	case as:
		apierr.WriteHTTPAs(w, special.status, mapped, requestID)
	case scanner:
		apierr.WriteScanner(w, mapped)
	default:
		apierr.WriteHTTP(w, mapped, requestID)
	}
}
