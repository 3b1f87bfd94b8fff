package chain

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/quota"
	"github.com/palisade/palisade/services/internal/unread"
)

// The transports of a call in logs and metrics.
const (
	transportGRPC = "grpc"
	transportHTTP = "http"
)

// call is the state of one call in the chain. The links run on one goroutine, so it needs no lock.
type call struct {
	id        string // request id
	method    string // full method, "/package.Service/Method"
	transport string
	remote    string // address of the caller, without its port
	rule      *optionsv1.MethodRule
	report    *quota.Report  // passes the quota to the gateway; nil over gRPC
	unread    unread.Request // decodes the request; nil for streams and for requests that are decoded already

	principal *access.Principal // set by authentication; nil for public RPCs
	grant     *access.Grant     // set by tenant
	counted   bool              // whether the rate limits have counted it
	quota     *quota.Quota      // set when it is counted; nil without a limit
	stream    grpc.ServerStream // nil for a unary call
	quotaSent bool              // whether a stream has sent its quota
	request   proto.Message     // the request, or the first message of a stream; for the audit trail
	// unreadable is why the request could not be decoded. The link readRequest sets it.
	unreadable error
}

type callKey struct{}

// callFrom returns the state that the outermost link created.
func callFrom(ctx context.Context) *call {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		panic("chain: a link runs without the request id link around it")
	}
	return c
}

// contextStream is a stream with another context.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context returns the other context.
func (s *contextStream) Context() context.Context { return s.ctx }

func withContext(ss grpc.ServerStream, ctx context.Context) grpc.ServerStream {
	if ss.Context() == ctx {
		return ss
	}
	return &contextStream{ServerStream: ss, ctx: ctx}
}
