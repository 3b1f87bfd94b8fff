package chain

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/inprocess"
	"github.com/palisade/palisade/services/internal/intake"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/internal/traffic"
)

// Link is one interceptor in both its forms.
type Link struct {
	Name   string
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor
}

// Deps is what the links work with. All fields are required unless they say otherwise.
type Deps struct {
	Log           *slog.Logger
	Metrics       *telemetry.Metrics
	Rules         *access.Rules
	Authenticator *access.Authenticator
	Store         *store.Store
	// Trail takes the audit entries.
	Trail *audit.Trail
	// Validator checks requests; see NewValidator.
	Validator protovalidate.Validator
	// RateLimit is in calls per second and credential, DeploymentRateLimit in calls per second and deployment, both on
	// this node; 0 means no limit.
	RateLimit, DeploymentRateLimit float64
	Uploads                        UploadLimits
	// Intake is the memory for requests, and MaxMessage the largest message over gRPC in bytes.
	Intake     *intake.Budget
	MaxMessage int64
	health     *intake.Budget // of health checks; made by New
	// Corrupt is told of errors that say that the database is damaged; nil means that nobody is.
	Corrupt func(error)
	// Calls are told of every unary call that changes nothing.
	Calls *traffic.Calls
	// RequestTimeout bounds every unary call and UploadTimeout every upload, whatever the caller asks for; 0 means no
	// bound. Over gRPC it does not end the wait for the message.
	RequestTimeout, UploadTimeout time.Duration
	// Draining is done when the server stops. Streams that have no end of their own (health watches, reflection) end
	// then; nil means never.
	Draining context.Context
}

// New returns the links, outermost first. The order is part of the design: a caller without credentials learns nothing
// else (401) and the request is not even read, a foreign deployment looks like an absent one (404) before roles are
// told (403), and only who may call learns what is wrong with the request (400).
func New(d Deps) ([]Link, error) {
	d.health = intake.New(healthMemory, 1)
	limits, err := newQuotas(d.RateLimit, d.DeploymentRateLimit, d.Metrics.RateLimited.Inc)
	if err != nil {
		return nil, fmt.Errorf("rate limit: %w", err)
	}
	auditor, err := newAuditor(d.Trail, d.Metrics)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return []Link{
		requestID(d, limits),
		accessLog(d),
		recoverPanics(d),
		mapErrors(d.Corrupt),
		countRefusals(limits),
		authenticate(d),
		readRequest(d, limits),
		countCalls(d.Calls),
		resolveTenant(d, auditor),
		applyRule(auditor),
		limitRate(limits, newUploadGate(d.Uploads, d.Metrics.RateLimited.Inc)),
		shareReads(newReadGates(d.Store)),
		auditor.link(),
		validate(d.Validator),
	}, nil
}

// countCalls lets long work know that somebody waits for an answer that only reads. What changes something may wait for
// just that work, and then each would wait for the other. A request that is still on its way is not waited for: its
// sender could be slow.
func countCalls(calls *traffic.Calls) Link {
	return Link{
		Name: "traffic",
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if !audited(callFrom(ctx).rule) {
				calls.Begin()
				defer calls.End()
			}
			return handler(ctx, req)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return handler(srv, ss)
		},
	}
}

// Interceptors returns the links as the in-process connection takes them.
func Interceptors(links []Link) (unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) {
	for _, link := range links {
		unary, stream = append(unary, link.Unary), append(stream, link.Stream)
	}
	return unary, stream
}

// ServerOptions installs the links in the gRPC server, inside the stats handler that makes the spans; nil when tracing
// is off.
func ServerOptions(spans stats.Handler, links []Link) []grpc.ServerOption {
	unary, stream := Interceptors(links)
	options := []grpc.ServerOption{grpc.UnaryInterceptor(inprocess.ChainUnary(unary)), grpc.ChainStreamInterceptor(stream...)}
	if spans != nil {
		options = append(options, grpc.StatsHandler(spans))
	}
	return options
}

// check is a link that only decides whether a call goes on, and with which context.
type check func(ctx context.Context, c *call) (context.Context, error)

func (f check) link(name string) Link {
	return Link{
		Name: name,
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			ctx, err := f(ctx, callFrom(ctx))
			if err != nil {
				return nil, err
			}
			return handler(ctx, req)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			ctx, err := f(ss.Context(), callFrom(ss.Context()))
			if err != nil {
				return err
			}
			return handler(srv, withContext(ss, ctx))
		},
	}
}
