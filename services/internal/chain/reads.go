package chain

import (
	"context"
	"runtime"

	"google.golang.org/grpc"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/gate"
	"github.com/palisade/palisade/services/internal/store"
)

// readsPerProcessor are the calls that only read and run at the same time, on PostgreSQL more: there most of their time is spent
// waiting. A deployment that is alone gets half of them (see gate.Gate), which is enough to keep all processors busy.
const readsPerProcessor, readsOnPostgres = 2, 4

func newReadGate(st *store.Store) *gate.Gate {
	each := readsPerProcessor
	if st.Postgres() {
		each = readsOnPostgres
	}
	return gate.New(each*max(2, runtime.GOMAXPROCS(0)), gate.Share(1))
}

// shareReads lets a deployment that asks for very much at once wait for itself, and nobody else for it. What writes, whoever may do
// it, shares the writer (see store.Write): while it waits there, behind a long import, it must not hold a place of those that only
// read. What streams waits for its caller most of the time.
func shareReads(places *gate.Gate) Link {
	return Link{
		Name: "reads",
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			c := callFrom(ctx)
			if c.rule.GetPermission() != optionsv1.Permission_PERMISSION_READ || audited(c.rule) || c.grant == nil {
				return handler(ctx, req)
			}
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
