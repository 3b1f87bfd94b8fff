package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gate"
	"github.com/palisade/palisade/services/internal/pace"
)

// UploadLimits limit the reports that a node reads and stores at the same time, so that one deployment does not starve
// the others of processor and memory. Each node counts for itself.
type UploadLimits struct {
	// AtOnce is the limit of the whole node. 0 means one per processor, at least two: with only one, a single
	// deployment could hold all of them.
	AtOnce int
	// PerDeployment is the limit of one deployment. 0 means fair sharing, as with background jobs: a deployment gets
	// another slot only while it holds fewer slots than are free. That is half of AtOnce if it is alone.
	PerDeployment int
	// Queue is how many more uploads of one deployment may be arriving or waiting.
	Queue int
	// Pace is the minimum speed of an upload over gRPC. The gateway checks uploads over HTTP.
	Pace pace.Rule
}

// uploadRetry is the retry delay when the queue is full.
const uploadRetry = 10 * time.Second

// uploadGate limits concurrent uploads. Uploads of a deployment run in the order of their complete arrival.
// An upload that is still arriving holds no slot, so that slow senders do not block others.
type uploadGate struct {
	limits  UploadLimits
	refused func()
	places  *gate.Gate
	most    int // limit of one deployment

	mu      sync.Mutex
	present map[int64]int // uploads of a deployment that have started and not ended
}

func newUploadGate(limits UploadLimits, refused func()) *uploadGate {
	if limits.AtOnce <= 0 {
		limits.AtOnce = max(2, runtime.GOMAXPROCS(0))
	}
	most, rule := limits.PerDeployment, gate.AtMost(limits.PerDeployment)
	if most <= 0 {
		most, rule = (limits.AtOnce+1)/2, gate.Share(1)
	}
	return &uploadGate{limits: limits, refused: refused, places: gate.New(limits.AtOnce, rule), most: most, present: make(map[int64]int)}
}

// gated reports whether the calls of an RPC are uploads that are processed while their caller waits. Uploads of
// scanners are stored unread, and background jobs process them.
func gated(rule *optionsv1.MethodRule) bool {
	return rule.GetPermission() == optionsv1.Permission_PERMISSION_UPLOAD && !rule.GetScanner()
}

// around runs the handler of an upload. Processing starts when the handler has received the end of the stream.
func (g *uploadGate) around(ctx context.Context, c *call, srv any, ss grpc.ServerStream, handler grpc.StreamHandler) error {
	deploymentID := c.grant.DeploymentID
	if err := g.arrive(deploymentID); err != nil {
		return err
	}
	defer g.leave(deploymentID)
	stream := &uploadStream{ServerStream: ss, ctx: ctx, places: g.places, deploymentID: deploymentID}
	defer stream.release()
	return handler(srv, stream)
}

func (g *uploadGate) arrive(deploymentID int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if present := g.present[deploymentID]; present >= g.most+g.limits.Queue {
		g.refused()
		return errUploadQueue(present)
	}
	g.present[deploymentID]++
	return nil
}

func (g *uploadGate) leave(deploymentID int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.present[deploymentID]--; g.present[deploymentID] == 0 {
		delete(g.present, deploymentID)
	}
}

func errUploadQueue(present int) error {
	text := fmt.Sprintf("%d uploads of this deployment are running or waiting, which is the limit: try again in %.0f s",
		present, uploadRetry.Seconds())
	return apierr.New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED, text,
		&errdetails.RetryInfo{RetryDelay: durationpb.New(uploadRetry)})
}

// uploadStream delays the end of the messages until the upload has a slot.
type uploadStream struct {
	grpc.ServerStream
	ctx          context.Context
	places       *gate.Gate
	deploymentID int64
	ended, held  bool
}

// Context is the context of the call.
func (s *uploadStream) Context() context.Context { return s.ctx }

// RecvMsg receives the next message. Before io.EOF it waits for a slot, at most until ctx ends.
func (s *uploadStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if !errors.Is(err, io.EOF) || s.ended {
		return err
	}
	s.ended = true
	if waited := s.places.Enter(s.ctx, s.deploymentID); waited != nil {
		return waited
	}
	s.held = true
	return err
}

func (s *uploadStream) release() {
	if s.held {
		s.places.Leave(s.deploymentID)
	}
}
