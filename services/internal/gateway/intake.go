package gateway

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
)

const (
	// smallBody is up to which size bodies are not counted: nearly all of them.
	smallBody = 64 << 10
	// decodedBodies and receivedBodies are how many bodies of the largest size are decoded, and in memory, at once.
	decodedBodies, receivedBodies = 2, 16
	// callerBodies is how many of them are one caller's.
	callerBodies = receivedBodies / 2
	// intakeRetry is what a caller is told who finds no room.
	intakeRetry = time.Second
)

// intake bounds the memory for the bodies of a node. Decoded, a body takes several times its bytes, so that few are at once and
// the others wait for their turn; but only when they are here as a whole: a slow sender would keep it from others.
type intake struct {
	mostDecoded, mostReceived, mostOfCaller int64

	decoding *semaphore.Weighted

	mu       sync.Mutex
	received int64
	byCaller map[bodyCaller]int64 // parts of received
}

// bodyCaller is whose body it is. All strangers are one, who sends small bodies only.
type bodyCaller struct {
	kind access.Kind
	id   int64
}

func newIntake(maxBody int64) *intake {
	return &intake{
		mostDecoded: decodedBodies * maxBody, mostReceived: receivedBodies * maxBody, mostOfCaller: callerBodies * maxBody,
		decoding: semaphore.NewWeighted(decodedBodies * maxBody), byCaller: map[bodyCaller]int64{},
	}
}

// take reports whether there is room for so many more bytes of a caller; they have it then. Fewer than none give it back.
func (in *intake) take(caller bodyCaller, size int64) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	all, his := in.received+size, in.byCaller[caller]+size
	if size > 0 && (all > in.mostReceived || his > in.mostOfCaller) {
		return false
	}
	in.received, in.byCaller[caller] = all, his
	if his == 0 {
		delete(in.byCaller, caller)
	}
	return true
}

// share is what one body has of the intake, until its call ends.
type share struct {
	intake             *intake
	caller             bodyCaller // before it grows
	received, decoding int64
}

// grow takes room for a body of which size bytes are here.
func (s *share) grow(size int64) error {
	if size <= smallBody {
		return nil
	}
	if !s.intake.take(s.caller, size-s.received) {
		return errIntake()
	}
	s.received = size
	return nil
}

// turn waits until the body may be decoded, until ctx ends at the latest.
func (s *share) turn(ctx context.Context) error {
	if s.received == 0 {
		return nil
	}
	size := min(s.received, s.intake.mostDecoded)
	if err := s.intake.decoding.Acquire(ctx, size); err != nil {
		return err
	}
	s.decoding = size
	return nil
}

func (s *share) release() {
	if s.received == 0 {
		return
	}
	s.intake.take(s.caller, -s.received)
	s.intake.decoding.Release(s.decoding)
	s.received, s.decoding = 0, 0
}

func errIntake() error {
	return apierr.New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED,
		"this node is receiving as many large requests as it can, or as one caller may send at once: try again in 1 s",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(intakeRetry)})
}
