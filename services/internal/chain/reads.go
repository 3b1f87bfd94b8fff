package chain

import (
	"context"
	"runtime"
	"strings"

	"google.golang.org/grpc"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/gate"
	"github.com/palisade/palisade/services/internal/store"
)

// readsPerProcessor are the calls that only read and run at the same time, on PostgreSQL more: there most of their time
// is spent waiting. A deployment that is alone gets half of them (see gate.Gate), which is enough to keep all
// processors busy.
const readsPerProcessor, readsOnPostgres = 2, 4

// reportMethods is how the methods begin that may wait for a database of their own (reports-database).
const reportMethods = "/palisade.reporting."

// readGates are the places of calls that only read.
type readGates struct {
	// reports have places of their own: a replica that hangs would hold those of all others.
	reports, others *gate.Gate
}

func newReadGates(st *store.Store) readGates {
	each := readsPerProcessor
	if st.Postgres() {
		each = readsOnPostgres
	}
	places := each * max(2, runtime.GOMAXPROCS(0))
	return readGates{reports: gate.New(places, gate.Share(1)), others: gate.New(places, gate.Share(1))}
}

func (g readGates) of(method string) *gate.Gate {
	if strings.HasPrefix(method, reportMethods) {
		return g.reports
	}
	return g.others
}

// shareReads lets a deployment that asks for very much at once wait for itself, and nobody else for it. What writes,
// whoever may do it, shares the writer (see store.Write): while it waits there, behind a long import, it must not hold
// a place of those that only read. What streams waits for its caller most of the time.
func shareReads(gates readGates) Link {
	return Link{
		Name: "reads",
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			c := callFrom(ctx)
			if c.rule.GetPermission() != optionsv1.Permission_PERMISSION_READ || audited(c.rule) || c.grant == nil {
				return handler(ctx, req)
			}
			places := gates.of(c.method)
			if err := places.Enter(ctx, c.grant.DeploymentID); err != nil {
				return nil, err
			}
			defer places.Leave(c.grant.DeploymentID)
			return handler(ctx, req)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return handler(srv, ss)
		},
	}
}
