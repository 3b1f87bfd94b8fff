package chain

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// accessLog writes one record per call and updates the metrics. It is the only place that logs the error of a call.
func accessLog(d Deps) Link {
	own := reportable{log: d.Log, metrics: d.Metrics}
	logUnary, logStream := interceptors.UnaryServerInterceptor(own), interceptors.StreamServerInterceptor(own)
	countUnary, countStream := d.Metrics.GRPC.UnaryServerInterceptor(), d.Metrics.GRPC.StreamServerInterceptor()
	return Link{
		Name: "access log",
		Unary: func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return logUnary(ctx, req, info, func(ctx context.Context, req any) (any, error) {
				return countUnary(ctx, req, info, handler)
			})
		},
		Stream: func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return logStream(srv, ss, info, func(srv any, ss grpc.ServerStream) error {
				return countStream(srv, ss, info, handler)
			})
		},
	}
}

type reportable struct {
	log     *slog.Logger
	metrics *telemetry.Metrics
}

// ServerReporter starts the report of one call.
func (r reportable) ServerReporter(ctx context.Context, _ interceptors.CallMeta) (interceptors.Reporter, context.Context) {
	c := callFrom(ctx)
	r.metrics.InFlight.WithLabelValues(c.transport).Inc()
	return &report{reportable: r, ctx: ctx, call: c}, ctx
}

type report struct {
	interceptors.NoopReporter
	reportable
	ctx   context.Context
	call  *call
	attrs [6]slog.Attr // enough for a successful call, so that its record needs no allocation
}

// PostCall ends the report. err is the final error.
func (r *report) PostCall(err error, took time.Duration) {
	c, code := r.call, status.Code(err)
	r.metrics.InFlight.WithLabelValues(c.transport).Dec()
	r.metrics.RequestSeconds.WithLabelValues(c.method, code.String(), c.transport).Observe(took.Seconds())
	level := logLevel(code)
	if c.rule.GetNoLog() && level < slog.LevelWarn || !r.log.Enabled(r.ctx, level) {
		return
	}
	// The request id and the method come from the context.
	attrs := append(r.attrs[:0], slog.String("code", code.String()),
		slog.Int64("duration_us", took.Microseconds()),
		slog.String("transport", c.transport), slog.String("remote", c.remote))
	if c.principal != nil {
		attrs = append(attrs, slog.String("principal", principalName(c)))
	}
	if c.grant != nil {
		attrs = append(attrs, slog.String("deployment", c.grant.Slug))
	}
	if err != nil {
		attrs = appendError(attrs, level, err)
	}
	// Not with LogAttrs, which walks up the stack to find the caller.
	record := slog.NewRecord(time.Now(), level, "call", 0)
	record.AddAttrs(telemetry.Inline(attrs))
	_ = r.log.Handler().Handle(r.ctx, record) // as LogAttrs does: the error cannot be reported anywhere
}

// appendError adds the reason of a failed call. For our own failures it adds the internal error; for a refused
// credential the cause, which only the operator may learn; for other mistakes of the caller only the reason, because
// texts for callers repeat what they sent.
func appendError(attrs []slog.Attr, level slog.Level, err error) []slog.Attr {
	attrs = append(attrs, slog.String("reason", apierr.ReasonName(apierr.ReasonOf(err))))
	cause := apierr.Cause(err)
	if level < slog.LevelWarn {
		if cause != nil && status.Code(err) == codes.Unauthenticated {
			attrs = append(attrs, telemetry.Cause(cause.Error()))
		}
		return attrs
	}
	if cause != nil {
		attrs = append(attrs, slog.String("error", cause.Error()))
	}
	var p *panicError
	if errors.As(err, &p) {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	return attrs
}

// logLevel is the level at which a call that ended with code is logged.
func logLevel(code codes.Code) slog.Level {
	switch code {
	case codes.Unknown, codes.Internal, codes.DataLoss, codes.Unavailable:
		return slog.LevelError
	case codes.DeadlineExceeded:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// principalName is the kind and id of the caller.
func principalName(c *call) string {
	name := append(make([]byte, 0, 32), c.principal.Kind...)
	return string(strconv.AppendInt(append(name, ':'), c.principal.ID, 10))
}
