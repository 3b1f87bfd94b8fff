package chain

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
)

const (
	// auditTimeout bounds the write of one entry: the caller waits for it.
	auditTimeout = 5 * time.Second
	// deniedPerSecond is how many denied attempts of one credential are recorded: the rate limit comes after the denial,
	// and a caller who may do nothing must not fill the database.
	deniedPerSecond = 5
)

// auditor records every call that could change something: what reached the handler, and the attempts of known callers
// that the tenant or the access rule refused.
type auditor struct {
	store   *store.Store
	metrics *telemetry.Metrics
	log     *slog.Logger
	denials *limiter
}

func newAuditor(st *store.Store, metrics *telemetry.Metrics, log *slog.Logger) (*auditor, error) {
	denials, err := newLimiter(deniedPerSecond, metrics.AuditFailures.WithLabelValues("throttled").Inc)
	return &auditor{store: st, metrics: metrics, log: log, denials: denials}, err
}

// audited reports whether calls of an RPC are recorded: those that can change something.
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

// link records calls that were allowed, however they end.
func (a *auditor) link() Link {
	return Link{
		Name: "audit",
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
			err = a.around(ctx, func() error {
				resp, err = handler(ctx, req)
				return err
			})
			return resp, err
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return a.around(ss.Context(), func() error { return handler(srv, ss) })
		},
	}
}

// around records what handle did. The entry is not part of the handler's transaction: when it cannot be written, the
// change has happened, and an error would make the caller repeat it. So a success stays one, and the loss is logged and
// counted.
func (a *auditor) around(ctx context.Context, handle func() error) error {
	c := callFrom(ctx)
	if !audited(c.rule) {
		return handle()
	}
	returned := false
	defer func() {
		if !returned { // a panic goes by, with its stack untouched
			a.record(ctx, c, c.grant.DeploymentID, codes.Internal)
		}
	}()
	err := handle()
	returned = true
	a.record(ctx, c, c.grant.DeploymentID, status.Code(apierr.Map(err)))
	return err
}

// denied records that a known caller was refused. The entry belongs to the deployment that the call named if the caller
// is part of it, else to his own: the administrators there are answerable for the credential, and those of the other
// deployment should not learn who its strangers are.
func (a *auditor) denied(ctx context.Context, c *call, err error) {
	if c.principal == nil || !audited(c.rule) {
		return
	}
	if a.denials.take(c, time.Now()) > 0 {
		a.denials.refused()
		return
	}
	switch {
	case c.grant != nil:
		a.record(ctx, c, c.grant.DeploymentID, status.Code(apierr.Map(err)))
	case len(c.principal.Grants) > 0:
		a.record(ctx, c, c.principal.Grants[0].DeploymentID, status.Code(apierr.Map(err)))
	default:
		a.metrics.AuditFailures.WithLabelValues("unowned").Inc()
	}
}

func (a *auditor) record(ctx context.Context, c *call, deploymentID int64, code codes.Code) {
	// The entry is owed even when the caller is gone or his time is up.
	ctx, cancel := context.WithTimeout(tenant.NewContext(context.WithoutCancel(ctx), deploymentID), auditTimeout)
	defer cancel()
	err := a.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.AuditEntry.Create().
			SetActorKind(string(c.principal.Kind)).
			SetActorID(c.principal.ID).
			SetMethod(c.method).
			SetCode(code.String()).
			SetRequest(redactedJSON(c.request)).
			SetRequestID(c.id).
			SetRemote(c.remote).
			SetAt(store.Now()).
			Exec(ctx)
	})
	if err != nil {
		a.metrics.AuditFailures.WithLabelValues("write").Inc()
		a.log.ErrorContext(ctx, "an audit entry was lost", "actor", principalName(c), "code", code.String(), "error", err)
	}
}
