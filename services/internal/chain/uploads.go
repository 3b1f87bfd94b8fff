package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/pace"
)

// UploadLimits bound the reports that a node reads and stores at the same time, so that those of one deployment leave
// processor and memory to everybody else. Each node counts for itself.
type UploadLimits struct {
	// AtOnce is for the whole node; 0 means one for each processor.
	AtOnce int
	// PerDeployment is 0 for half of AtOnce, at least one.
	PerDeployment int
	// Queue is how many more of one deployment may be on their way in or wait for their turn.
	Queue int
	// Pace is how fast an upload must come over gRPC; the gateway looks at those over HTTP.
	Pace pace.Rule
}

// uploadRetry is what a caller is told who finds the queue full.
const uploadRetry = 10 * time.Second

// uploadGate lets uploads be processed in the order in which they have come in as a whole. One that is still being received
// holds no slot: a slow sender would keep it from others.
type uploadGate struct {
	limits  UploadLimits
	refused func()
	// server is first come, first served, and a deployment stands in it with PerDeployment uploads at most, whatever the
	// length of its own queue: so the deployments take turns.
	server *semaphore.Weighted

	mu          sync.Mutex
	deployments map[int64]*deploymentUploads
}

// deploymentUploads are those of one deployment, from their beginning to their end.
type deploymentUploads struct {
	slots   *semaphore.Weighted
	present int
}

func newUploadGate(limits UploadLimits, refused func()) *uploadGate {
	if limits.AtOnce <= 0 {
		limits.AtOnce = runtime.GOMAXPROCS(0)
	}
	if limits.PerDeployment <= 0 {
		limits.PerDeployment = max(1, limits.AtOnce/2)
	}
	return &uploadGate{
		limits: limits, refused: refused, server: semaphore.NewWeighted(int64(limits.AtOnce)), deployments: make(map[int64]*deploymentUploads),
	}
}

// gated reports whether the calls of an RPC are uploads that are processed while their caller waits. Those of scanners are
// stored as they are, and read by background jobs.
func gated(rule *optionsv1.MethodRule) bool {
	return rule.GetPermission() == optionsv1.Permission_PERMISSION_UPLOAD && !rule.GetScanner()
}

// around runs the handler of an upload: it begins to process when the stream has told it that all is there.
func (g *uploadGate) around(ctx context.Context, c *call, srv any, ss grpc.ServerStream, handler grpc.StreamHandler) error {
	uploads, err := g.arrive(c.grant.DeploymentID)
	if err != nil {
		return err
	}
	defer g.leave(c.grant.DeploymentID)
	stream := &uploadStream{ServerStream: ss, ctx: ctx, slots: []*semaphore.Weighted{uploads.slots, g.server}}
	defer stream.release()
	return handler(srv, stream)
}

func (g *uploadGate) arrive(deploymentID int64) (*deploymentUploads, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	uploads := g.deployments[deploymentID]
	if uploads == nil {
		uploads = &deploymentUploads{slots: semaphore.NewWeighted(int64(g.limits.PerDeployment))}
		g.deployments[deploymentID] = uploads
	}
	if uploads.present >= g.limits.PerDeployment+g.limits.Queue {
		g.refused()
		return nil, errUploadQueue(uploads.present)
	}
	uploads.present++
	return uploads, nil
}

func (g *uploadGate) leave(deploymentID int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	uploads := g.deployments[deploymentID]
	if uploads.present--; uploads.present == 0 {
		delete(g.deployments, deploymentID)
	}
}

func errUploadQueue(present int) error {
	text := fmt.Sprintf("%d uploads of this deployment are under way or waiting, which is the most at once: try again in %.0f s",
		present, uploadRetry.Seconds())
	return apierr.New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED, text,
		&errdetails.RetryInfo{RetryDelay: durationpb.New(uploadRetry)})
}

// uploadStream holds back the end of the messages until it is the upload's turn.
type uploadStream struct {
	grpc.ServerStream
	ctx   context.Context
	slots []*semaphore.Weighted // the deployment's before the node's: waiting in its own queue takes nothing from others
	held  []*semaphore.Weighted
	ended bool
}

// Context is that of the call.
func (s *uploadStream) Context() context.Context { return s.ctx }

// RecvMsg receives the next message; before io.EOF it waits, until ctx ends at the latest.
func (s *uploadStream) RecvMsg(m any) error {
	err := s.ServerStream.RecvMsg(m)
	if !errors.Is(err, io.EOF) || s.ended {
		return err
	}
	s.ended = true
	for _, slot := range s.slots {
		if waited := slot.Acquire(s.ctx, 1); waited != nil {
			return waited
		}
		s.held = append(s.held, slot)
	}
	return err
}

func (s *uploadStream) release() {
	for _, slot := range s.held {
		slot.Release(1)
	}
}
