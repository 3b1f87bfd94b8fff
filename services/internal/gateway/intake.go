package gateway

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

const (
	// smallBody is up to which size bodies are not counted: nearly all of them.
	smallBody = 64 << 10
	// decodedBodies and receivedBodies are how many bodies of the largest size are decoded, and in memory, at once.
	decodedBodies, receivedBodies = 2, 16
	// intakeRetry is what a caller is told who finds no room.
	intakeRetry = time.Second
)

// intake bounds the memory for the bodies of a node. Decoded, a body takes several times its bytes, so that few are at once and
// the others wait for their turn; but only when they are here as a whole: a slow sender would keep it from others.
type intake struct {
	most               int64
	received, decoding *semaphore.Weighted
}

func newIntake(maxBody int64) *intake {
	most := decodedBodies * maxBody
	return &intake{
		most: most, received: semaphore.NewWeighted(max(receivedBodies*maxBody, smallBody)), decoding: semaphore.NewWeighted(most),
	}
}

// share is what one body has of the intake, until its call ends.
type share struct {
	intake             *intake
	received, decoding int64
}

// grow takes room for a body of which size bytes are here.
func (s *share) grow(size int64) error {
	if size <= smallBody {
		return nil
	}
	if !s.intake.received.TryAcquire(size - s.received) {
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
	size := min(s.received, s.intake.most)
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
	s.intake.received.Release(s.received)
	s.intake.decoding.Release(s.decoding)
	s.received, s.decoding = 0, 0
}

func errIntake() error {
	return apierr.New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED,
		"this node is receiving as many large requests as it can: try again in 1 s",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(intakeRetry)})
}
