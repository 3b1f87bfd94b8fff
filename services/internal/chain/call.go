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

// The transports of a call, as logs and metrics name them.
const (
	transportGRPC = "grpc"
	transportHTTP = "http"
)

// call is what the chain knows about one call. The links run on one goroutine, so that no lock is needed.
type call struct {
	id        string // request id
	method    string // full method, "/package.Service/Method"
	transport string
	remote    string // address of the caller, without its port
	rule      *optionsv1.MethodRule
	report    *quota.Report  // where the gateway looks for the quota; nil over gRPC
	unread    unread.Request // decodes the request; nil for streams, and for calls that came decoded

	principal *access.Principal // set by authentication; nil for public RPCs
	grant     *access.Grant     // set by tenant
	counted   bool              // whether the limits have counted it
	quota     *quota.Quota      // set when it is counted; nil without a limit
	stream    grpc.ServerStream // nil for a unary call
	told      bool              // whether a stream has told its quota
	request   proto.Message     // the request, or the first message of a stream; for the audit
	// unreadable is why the request could not be decoded, set by request.
	unreadable error
}

type callKey struct{}

// callFrom returns the record that the outermost link made.
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
