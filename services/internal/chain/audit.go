package chain

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/telemetry"
)

const (
	// auditTimeout limits the write of one entry, because the caller waits for it.
	auditTimeout = 5 * time.Second
	// deniedPerSecond is how many denied attempts of one credential are recorded per second. It is far below the rate
	// limit, because a caller without permissions must not fill the database.
	deniedPerSecond = 5
)

// auditor records every call that could change something: calls that reached the handler, and the attempts of
// authenticated callers that the tenant check or the access rule refused.
type auditor struct {
	trail   *audit.Trail
	metrics *telemetry.Metrics
	denials *limiter
}

func newAuditor(trail *audit.Trail, metrics *telemetry.Metrics) *auditor {
	denials := newLimiter(deniedPerSecond, metrics.AuditFailures.WithLabelValues("throttled").Inc)
	return &auditor{trail: trail, metrics: metrics, denials: denials}
}

// audited reports whether calls of an RPC are recorded, because they can change something.
func audited(rule *optionsv1.MethodRule) bool {
	switch rule.GetAudit() {
	case optionsv1.Audit_AUDIT_ALWAYS:
		return true
	case optionsv1.Audit_AUDIT_NEVER:
		return false
	default:
		return rule.GetPermission() >= optionsv1.Permission_PERMISSION_TRIAGE
	}
}

// link records calls that were allowed, whether they succeed or fail.
func (a *auditor) link() Link {
	return Link{
		Name: "audit",
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
			if c := callFrom(ctx); c.request == nil { // outside a deployment, the tenant link has not read the request
				c.request, _ = req.(proto.Message)
			}
			err = a.around(ctx, func(ctx context.Context) error {
				resp, err = handler(ctx, req)
				return err
			})
			return resp, err
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return a.around(ss.Context(), func(ctx context.Context) error { return handler(srv, withContext(ss, ctx)) })
		},
	}
}

// around lets handle write its entries together with its changes (audit.Change). If handle failed or changed nothing,
// around writes an entry afterwards, outside a transaction.
//
// When that entry cannot be written, the call has already ended, and an error would make the caller repeat it. So a
// success stays a success; the whole entry is logged, and written later if a retry may help. The number of pending
// entries in memory is limited. At the limit, calls are refused before they do anything.
func (a *auditor) around(ctx context.Context, handle func(context.Context) error) error {
	c := callFrom(ctx)
	ctx, recorder := a.trail.Record(ctx, c.audit())
	if !audited(c.rule) {
		return handle(ctx)
	}
	if a.trail.Full() {
		a.metrics.AuditFailures.WithLabelValues("full").Inc()
		return apierr.Unavailable(nil, "the audit trail accepts no entries now, so changes are refused: try again")
	}
	returned := false
	defer func() {
		if !returned { // let a panic pass with its stack
			a.record(ctx, c, codes.Internal)
		}
	}()
	err := handle(ctx)
	returned = true
	if code := status.Code(apierr.Map(err)); code != codes.OK || recorder.Written() == 0 {
		a.record(ctx, c, code)
	}
	return err
}

// denied records that an authenticated caller was refused.
func (a *auditor) denied(ctx context.Context, c *call, err error) {
	if c.principal == nil || !audited(c.rule) {
		return
	}
	if a.denials.take(c, time.Now()) > 0 {
		a.denials.refused()
		return
	}
	a.record(ctx, c, status.Code(apierr.Map(err)))
}

// record writes an entry of a call in its own transaction.
func (a *auditor) record(ctx context.Context, c *call, code codes.Code) {
	call := c.audit()
	if call.Home == 0 {
		a.metrics.AuditFailures.WithLabelValues("unowned").Inc()
		return
	}
	// The entry must be written even when the caller has gone or the deadline has passed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	if err := a.trail.Append(ctx, call, call.Home, code); err != nil {
		reason := "write"
		if a.trail.AppendLater(ctx, call, call.Home, code, err) {
			reason = "later"
		}
		a.metrics.AuditFailures.WithLabelValues(reason).Inc()
	}
}

// audit describes the call for its entries. The entries belong to the deployment of the call. A call outside
// a deployment, or one that another deployment refused, belongs to the first deployment of the caller: its
// administrators are responsible for the credential, and the administrators of the other deployment should not learn
// who tried.
func (c *call) audit() audit.Call {
	out := audit.Call{Method: c.method, RequestID: c.id, Remote: c.remote, Request: c.request}
	if p := c.principal; p != nil {
		out.Actor = audit.Actor{Kind: string(p.Kind), ID: p.ID, Name: p.Name, UserID: p.UserID}
		if len(p.Grants) > 0 {
			out.Home = p.Grants[0].DeploymentID
		}
	}
	if c.grant != nil {
		out.Home = c.grant.DeploymentID
	}
	return out
}
