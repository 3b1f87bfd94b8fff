package intake

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
	// Small is the size in bytes of requests that are never refused with a valid credential, so that large requests do
	// not block small ones. They count all the same.
	Small = 64 << 10
	// callerPart, unauthenticatedPart and addressPart are divisors of the budget: the limit of one credential, of all
	// unauthenticated callers together, and of one unauthenticated address.
	callerPart, unauthenticatedPart, addressPart = 2, 4, 16
	// retryAfter is the retry delay for refused callers.
	retryAfter = time.Second
)

// Caller identifies the requests that count together: by credential, or by the address of unauthenticated callers.
type Caller struct {
	Kind    access.Kind
	ID      int64
	Address string
}

// unauthenticated reports a caller without a valid credential.
func (c Caller) unauthenticated() bool { return c.Kind == "" }

// Budget is the memory of a node for requests, in bytes. It is safe for concurrent use.
type Budget struct {
	total    int64
	decoding *semaphore.Weighted

	mu              sync.Mutex
	used            int64
	unauthenticated int64            // part of used
	byCaller        map[Caller]int64 // parts of used
}

// New returns a budget of total bytes. At most decoders large requests are decoded at once.
func New(total int64, decoders int) *Budget {
	return &Budget{total: total, decoding: semaphore.NewWeighted(int64(max(decoders, 1))), byCaller: map[Caller]int64{}}
}

// Limits apply to each message of a request.
type Limits struct {
	// MaxSize is the largest message in bytes, both as received and decompressed.
	MaxSize int64
	// Compressed permits compressed messages over gRPC.
	Compressed bool
	// Timeout limits the time from the start of a message over gRPC to its end. 0 means no limit. With First it
	// includes the wait for the message.
	Timeout time.Duration
	First   bool
}

// Share is the part of the budget that one request has reserved, until its call ends. Only one goroutine may use it at
// a time.
type Share struct {
	budget   *Budget
	caller   Caller
	limits   Limits
	used     int64 // bytes, received and decoded
	received int64 // part of used
}

// Share starts the share of a caller's request. It is empty.
func (b *Budget) Share(caller Caller, limits Limits) *Share {
	return &Share{budget: b, caller: caller, limits: limits}
}

// Receive reserves memory for the first size bytes of a request, which have arrived.
func (s *Share) Receive(size int64) error {
	if size <= s.received {
		return nil
	}
	if err := s.Spend(size - s.received); err != nil {
		return err
	}
	s.received = size
	return nil
}

// Spend reserves size more bytes. Errors: RESOURCE_EXHAUSTED, with REASON_RATE_LIMITED when a retry may succeed and
// REASON_BODY_TOO_LARGE when one request needs more than its caller's limit.
func (s *Share) Spend(size int64) error {
	if most := s.budget.most(s.caller); s.used+size > most {
		return apierr.TooLarge("the request must take at most %d bytes of memory, received and decoded: send it in parts", most)
	}
	if !s.budget.take(s.caller, size, s.used+size <= Small) {
		return errFull()
	}
	s.used += size
	return nil
}

// Decode decodes the request with fn. Large requests keep a processor busy, so only a few decode at once; the others
// wait, at most until ctx ends. A request decodes only after all of it has arrived, so that slow senders do not block
// others.
func (s *Share) Decode(ctx context.Context, fn func() error) error {
	if s.received <= Small {
		return fn()
	}
	return s.inTurn(ctx, fn)
}

func (s *Share) inTurn(ctx context.Context, fn func() error) error {
	if err := s.budget.decoding.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.budget.decoding.Release(1)
	return fn()
}

// Release returns everything to the budget. The share is then empty and can be reused.
func (s *Share) Release() {
	if s.used > 0 {
		s.budget.give(s.caller, s.used)
	}
	s.used, s.received = 0, 0
}

// most is the limit of one caller, and so of one request.
func (b *Budget) most(caller Caller) int64 {
	if caller.unauthenticated() {
		return b.total / addressPart
	}
	return b.total / callerPart
}

// take reserves size more bytes for a caller, or returns false when there is no room. Small requests of authenticated
// callers may exceed the total, up to their caller's limit.
func (b *Budget) take(caller Caller, size int64, small bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	used, own, unauthenticated := b.used+size, b.byCaller[caller]+size, b.unauthenticated
	if own > b.most(caller) {
		return false
	}
	if caller.unauthenticated() {
		if unauthenticated += size; unauthenticated > b.total/unauthenticatedPart {
			return false
		}
	}
	if used > b.total && (!small || caller.unauthenticated()) {
		return false
	}
	b.used, b.byCaller[caller], b.unauthenticated = used, own, unauthenticated
	return true
}

func (b *Budget) give(caller Caller, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= size
	if caller.unauthenticated() {
		b.unauthenticated -= size
	}
	if b.byCaller[caller] -= size; b.byCaller[caller] == 0 {
		delete(b.byCaller, caller)
	}
}

// Used returns the reserved bytes, for metrics.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

func errFull() error {
	return apierr.New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED,
		"the memory of this node for large requests, or the part of one caller, is used up: try again in 1 s",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
}
