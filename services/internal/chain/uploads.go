package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

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
	// AtOnce is for the whole node; 0 means one for each processor, at least two: of one place a deployment would have all.
	AtOnce int
	// PerDeployment is the most of one deployment; 0 means that it gets another place only while fewer of its uploads are in work
	// than places are free, as background jobs do: half of AtOnce if it is alone.
	PerDeployment int
	// Queue is how many more of one deployment may be on their way in or wait for their turn.
	Queue int
	// Pace is how fast an upload must come over gRPC; the gateway looks at those over HTTP.
	Pace pace.Rule
}

// uploadRetry is what a caller is told who finds the queue full.
const uploadRetry = 10 * time.Second

// uploadGate lets uploads be processed: the deployments take turns, and those of one in the order in which they have come in as a
// whole. One that is still being received holds no place: a slow sender would keep it from others.
type uploadGate struct {
	limits  UploadLimits
	refused func()
	most    int // places of one deployment

	mu          sync.Mutex
	deployments map[int64]*deploymentUploads
	running     int
	turns       []*deploymentUploads // with uploads that wait, the next one first
}

// deploymentUploads are those of one deployment, from their beginning to their end.
type deploymentUploads struct {
	present, running int
	waiting          []chan struct{} // closed when it is the upload's turn
}

func newUploadGate(limits UploadLimits, refused func()) *uploadGate {
	if limits.AtOnce <= 0 {
		limits.AtOnce = max(2, runtime.GOMAXPROCS(0))
	}
	most := limits.PerDeployment
	if most <= 0 {
		most = (limits.AtOnce + 1) / 2
	}
	return &uploadGate{limits: limits, refused: refused, most: most, deployments: make(map[int64]*deploymentUploads)}
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
	stream := &uploadStream{ServerStream: ss, ctx: ctx, gate: g, of: uploads}
	defer stream.release()
	return handler(srv, stream)
}

func (g *uploadGate) arrive(deploymentID int64) (*deploymentUploads, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	uploads := g.deployments[deploymentID]
	if uploads == nil {
		uploads = &deploymentUploads{}
		g.deployments[deploymentID] = uploads
	}
	if uploads.present >= g.most+g.limits.Queue {
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

// wait returns when an upload has its turn, or when ctx ends, with an error.
func (g *uploadGate) wait(ctx context.Context, of *deploymentUploads) error {
	turn := make(chan struct{})
	g.mu.Lock()
	if of.waiting = append(of.waiting, turn); len(of.waiting) == 1 {
		g.turns = append(g.turns, of)
	}
	g.next()
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(of.waiting, turn)
	if i < 0 { // it has just got its turn
		of.running--
		g.running--
		g.next()
		return ctx.Err()
	}
	if of.waiting = slices.Delete(of.waiting, i, i+1); len(of.waiting) == 0 {
		g.turns = slices.DeleteFunc(g.turns, func(other *deploymentUploads) bool { return other == of })
	}
	return ctx.Err()
}

// done gives the place of an upload to the next.
func (g *uploadGate) done(of *deploymentUploads) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of.running--
	g.running--
	g.next()
}

// next fills free places in the order of turns.
func (g *uploadGate) next() {
	for {
		i := slices.IndexFunc(g.turns, g.admits)
		if i < 0 {
			return
		}
		of := g.turns[i]
		g.turns = slices.Delete(g.turns, i, i+1)
		close(of.waiting[0])
		if of.waiting = of.waiting[1:]; len(of.waiting) > 0 {
			g.turns = append(g.turns, of)
		}
		of.running++
		g.running++
	}
}

// admits reports whether a deployment may have one of the free places.
func (g *uploadGate) admits(of *deploymentUploads) bool {
	free := g.limits.AtOnce - g.running
	if g.limits.PerDeployment > 0 {
		return free > 0 && of.running < g.limits.PerDeployment
	}
	return of.running < free
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
	ctx         context.Context
	gate        *uploadGate
	of          *deploymentUploads
	ended, held bool
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
	if waited := s.gate.wait(s.ctx, s.of); waited != nil {
		return waited
	}
	s.held = true
	return err
}

func (s *uploadStream) release() {
	if s.held {
		s.gate.done(s.of)
	}
}
