package chain

import (
	"context"
	"math"
	"net/netip"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/palisade/palisade/services/internal/apierr"
)

// maxBuckets bounds the memory of a limiter: about 10 MB. A caller whose bucket was dropped for a newer one starts with
// a full one.
const maxBuckets = 50_000

// limiter counts the calls of each credential, and those without one by address. Each node counts for itself.
type limiter struct {
	perSecond rate.Limit
	burst     int
	// Callers without a credential can come from any number of addresses; they must not drop the buckets of the others.
	credentials, addresses *lru.Cache[string, *rate.Limiter]
	refused                func()
}

// newLimiter allows perSecond calls on average, and as many at once; 0 allows all. refused is called for each refusal.
func newLimiter(perSecond float64, refused func()) (*limiter, error) {
	l := &limiter{perSecond: rate.Limit(perSecond), refused: refused}
	l.burst = int(min(math.Ceil(perSecond), math.MaxInt32))
	var err error
	if l.credentials, err = lru.New[string, *rate.Limiter](maxBuckets); err != nil {
		return nil, err
	}
	l.addresses, err = lru.New[string, *rate.Limiter](maxBuckets)
	return l, err
}

// limitRate refuses calls that come too fast.
func limitRate(l *limiter) Link {
	return check(func(ctx context.Context, c *call) (context.Context, error) {
		if wait := l.take(c, time.Now()); wait > 0 {
			l.refused()
			return nil, apierr.RateLimited(wait)
		}
		return ctx, nil
	}).link("rate limit")
}

// take counts one call and returns 0, or how long the caller has to wait.
func (l *limiter) take(c *call, now time.Time) time.Duration {
	if l.perSecond <= 0 {
		return 0
	}
	r := l.bucket(c).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now) // a refused call costs nothing, or a caller who keeps trying would never get in again
	}
	return wait
}

func (l *limiter) bucket(c *call) *rate.Limiter {
	cache, key := l.addresses, network(c.remote)
	if c.principal != nil {
		cache, key = l.credentials, principalName(c)
	}
	if bucket, ok := cache.Get(key); ok {
		return bucket
	}
	bucket := rate.NewLimiter(l.perSecond, l.burst)
	if other, exists, _ := cache.PeekOrAdd(key, bucket); exists {
		return other // of a call at the same moment
	}
	return bucket
}

// network is the address itself for IPv4. Of IPv6 everybody has at least 64 bits of addresses, so the first 64 count.
func network(remote string) string {
	address, err := netip.ParseAddr(remote)
	if err != nil || address.Is4() {
		return remote
	}
	prefix, err := address.Prefix(64)
	if err != nil {
		return remote
	}
	return prefix.String()
}
