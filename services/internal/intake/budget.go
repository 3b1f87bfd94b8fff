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
	// Small is how many bytes of a request with a valid credential are never refused, so that large requests keep
	// small ones from nothing. They count all the same.
	Small = 64 << 10
	// callerPart, strangersPart and addressPart are the parts of the budget for one credential, for all callers
	// without one, and for one address of those.
	callerPart, strangersPart, addressPart = 2, 4, 16
	// retryAfter is what a refused caller is told.
	retryAfter = time.Second
)

// Caller is whose requests count together: a credential, or the address of callers without one.
type Caller struct {
	Kind    access.Kind
	ID      int64
	Address string
}

// stranger reports a caller without a valid credential.
func (c Caller) stranger() bool { return c.Kind == "" }

// Budget is the memory of a node for requests, in bytes. It is safe for concurrent use.
type Budget struct {
	total    int64
	decoding *semaphore.Weighted

	mu        sync.Mutex
	used      int64
	strangers int64            // part of used
	byCaller  map[Caller]int64 // parts of used
}

// New returns a budget of so many bytes. At most decoders large requests are decoded at once.
func New(total int64, decoders int) *Budget {
	return &Budget{total: total, decoding: semaphore.NewWeighted(int64(max(decoders, 1))), byCaller: map[Caller]int64{}}
}

// Limits are those of each message of a request.
type Limits struct {
	// Most is the largest message, as received and decompressed, in bytes.
	Most int64
	// Compressed tells whether messages over gRPC may be compressed.
	Compressed bool
	// Timeout bounds the time in which a message over gRPC arrives, once it has begun; 0 means no bound. First says that
	// it begins with the wait for the message.
	Timeout time.Duration
	First   bool
}

// Share is what one request has of the budget, until its call ends. It is for one goroutine at a time.
type Share struct {
	budget   *Budget
	caller   Caller
	limits   Limits
	used     int64 // bytes, received and decoded
	received int64 // part of used
}

// Share begins a request of a caller.
func (b *Budget) Share(caller Caller, limits Limits) *Share {
	return &Share{budget: b, caller: caller, limits: limits}
}

// Receive takes room for a request of which size bytes are here.
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

// Spend takes room for so many bytes more. Errors: RESOURCE_EXHAUSTED, with REASON_RATE_LIMITED when it may go better
// later and REASON_BODY_TOO_LARGE when one request wants more than its caller can have.
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

// Decode decodes the request with fn. Large ones keep a processor busy, so that they take turns, and wait for it until
// ctx ends at the latest; but only when they are here as a whole: a slow sender would keep it from others.
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

// Release gives all back. The share is empty then, and may be used again.
func (s *Share) Release() {
	if s.used > 0 {
		s.budget.give(s.caller, s.used)
	}
	s.used, s.received = 0, 0
}

// most is what one caller may have, and so one request.
func (b *Budget) most(caller Caller) int64 {
	if caller.stranger() {
		return b.total / addressPart
	}
	return b.total / callerPart
}

// take reports whether there is room for so many more bytes of a caller, who has them then. Small requests of known
// callers find room where others do not, up to what their caller may have.
func (b *Budget) take(caller Caller, size int64, small bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	used, own, strangers := b.used+size, b.byCaller[caller]+size, b.strangers
	if own > b.most(caller) {
		return false
	}
	if caller.stranger() {
		if strangers += size; strangers > b.total/strangersPart {
			return false
		}
	}
	if used > b.total && (!small || caller.stranger()) {
		return false
	}
	b.used, b.byCaller[caller], b.strangers = used, own, strangers
	return true
}

func (b *Budget) give(caller Caller, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= size
	if caller.stranger() {
		b.strangers -= size
	}
	if b.byCaller[caller] -= size; b.byCaller[caller] == 0 {
		delete(b.byCaller, caller)
	}
}

// Used returns the bytes that are taken, for metrics.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

func errFull() error {
	return apierr.New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED,
		"this node is receiving as many large requests as it can, or as one caller may send at once: try again in 1 s",
		&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
}
