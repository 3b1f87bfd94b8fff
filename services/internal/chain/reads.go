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

// readsPerProcessor limits the concurrent read-only calls for each processor. PostgreSQL allows more, because most of
// the time is spent waiting. A deployment that is alone gets half of them (see gate.Gate), which keeps all processors
// busy.
const readsPerProcessor, readsOnPostgres = 2, 4

// reportMethods is the prefix of the methods that may use another database (reports-database).
const reportMethods = "/palisade.reporting."

// readGates limit the concurrent read-only calls.
type readGates struct {
	// reports has its own limit: a replica that hangs would block all other reads.
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

// limitReads keeps a deployment with many concurrent reads from blocking others. Writes do not pass this gate, because
// they share the writer (see store.Write): a write that waits there for a long import must not hold a slot of a read.
// Streams do not pass it either, because they mostly wait for their caller.
func limitReads(gates readGates) Link {
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
