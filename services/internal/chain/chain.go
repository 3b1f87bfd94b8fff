package chain

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/inprocess"
	"github.com/palisade/palisade/services/internal/intake"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/internal/traffic"
)

// Link is one interceptor in its unary and its stream form.
type Link struct {
	Name   string
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor
}

// Deps are the dependencies of the links. All fields are required unless they say otherwise.
type Deps struct {
	Log           *slog.Logger
	Metrics       *telemetry.Metrics
	Rules         *access.Rules
	Authenticator *access.Authenticator
	Store         *store.Store
	// Room has the disk space for deletes; nil if none is kept.
	Room *spool.Room
	// Trail stores the audit entries.
	Trail *audit.Trail
	// Validator checks requests; see NewValidator.
	Validator protovalidate.Validator
	// RateLimit is in calls per second and credential, DeploymentRateLimit in calls per second and deployment. Both
	// count on this node. 0 means no limit.
	RateLimit, DeploymentRateLimit float64
	Uploads                        UploadLimits
	// Intake is the memory budget for requests, and MaxMessage the largest message over gRPC in bytes.
	Intake     *intake.Budget
	MaxMessage int64
	health     *intake.Budget // for health checks; created by New
	// Corrupt is called with errors that mean a damaged database. nil ignores them.
	Corrupt func(error)
	// Calls counts every unary call that changes nothing.
	Calls *traffic.Calls
	// RequestTimeout limits every unary call and UploadTimeout every upload, regardless of the caller's own deadline. 0
	// means no limit. Over gRPC it does not end the wait for the message.
	RequestTimeout, UploadTimeout time.Duration
	// Draining is done when the server stops. Streams without an end of their own (health watches, reflection) end
	// then. nil means never.
	Draining context.Context
}

// New returns the links, outermost first. The order is part of the security design. An unauthenticated caller learns
// nothing else (401), and its request is not even read. A deployment of other people looks like a missing one (404)
// before roles are checked (403). Only an authorized caller learns what is wrong with the request (400).
func New(d Deps) []Link {
	d.health = intake.New(healthMemory, 1)
	limits := newQuotas(d.RateLimit, d.DeploymentRateLimit, d.Metrics.RateLimited.Inc)
	auditor := newAuditor(d.Trail, d.Metrics)
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
		limitReads(newReadGates(d.Store)),
		auditor.link(),
		validate(d.Validator),
		makeRoom(d.Room),
	}
}

// makeRoom lets calls that delete use the disk space that is kept for them.
func makeRoom(room *spool.Room) Link {
	return check(func(ctx context.Context, c *call) (context.Context, error) {
		if !strings.Contains(c.method, "/Delete") {
			return ctx, nil
		}
		return spool.WithRoom(ctx), room.Use()
	}).link("room for deletes")
}

// countCalls counts unary reads as in-flight requests, so that long work can yield to them. Writes do not count: a
// write may wait for the long work, which would then wait for the write. A request that is still arriving does not
// count either, because its sender may be slow.
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

// Interceptors returns the links in the form of the in-process connection.
func Interceptors(links []Link) (unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) {
	for _, link := range links {
		unary, stream = append(unary, link.Unary), append(stream, link.Stream)
	}
	return unary, stream
}

// ServerOptions installs the links in the gRPC server, inside the stats handler that creates the spans. spans is nil
// when tracing is off.
func ServerOptions(spans stats.Handler, links []Link) []grpc.ServerOption {
	unary, stream := Interceptors(links)
	options := []grpc.ServerOption{grpc.UnaryInterceptor(inprocess.ChainUnary(unary)), grpc.ChainStreamInterceptor(stream...)}
	if spans != nil {
		options = append(options, grpc.StatsHandler(spans))
	}
	return options
}

// check is a link that only decides whether a call continues, and with which context.
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
