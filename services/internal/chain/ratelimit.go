package chain

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/buckets"
	"github.com/palisade/palisade/services/internal/quota"
)

// maxBuckets limits the memory of one kind of buckets to about 10 MB. A caller with an evicted bucket starts with a
// full one.
const maxBuckets = 50_000

// newBuckets allows perSecond calls on average, and the same number as a burst. 0 allows all.
func newBuckets[K comparable](perSecond float64) *buckets.Buckets[K] {
	return buckets.New[K](maxBuckets, perSecond, int(min(math.Ceil(perSecond), math.MaxInt32)))
}

// credential identifies the calls that count together.
type credential struct {
	kind access.Kind
	id   int64
}

// limiter counts the calls of each credential, and unauthenticated calls by address.
type limiter struct {
	// Unauthenticated callers can come from any number of addresses. They must not evict the buckets of authenticated
	// ones.
	credentials *buckets.Buckets[credential]
	addresses   *buckets.Buckets[string]
	health      *buckets.Buckets[string]
	refused     func()
}

// newLimiter allows perSecond calls on average, and the same number as a burst. 0 allows all. refused is called for
// each refusal.
func newLimiter(perSecond float64, refused func()) *limiter {
	return &limiter{
		credentials: newBuckets[credential](perSecond),
		addresses:   newBuckets[string](perSecond),
		health:      newBuckets[string](perSecond),
		refused:     refused,
	}
}

// take counts one call. It returns 0, or how long the caller must wait.
func (l *limiter) take(c *call, now time.Time) time.Duration {
	bucket := l.bucket(c)
	if bucket == nil || bucket.AllowN(now, 1) {
		return 0
	}
	r := bucket.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now) // a refused call costs nothing; otherwise a caller that keeps trying would never succeed
	}
	return wait
}

// healthService is the service that load balancers probe. It has its own limit by address, so that other
// unauthenticated requests cannot make a node look unhealthy.
const healthService = "/grpc.health.v1.Health/"

func isHealth(method string) bool { return strings.HasPrefix(method, healthService) }

// bucket is nil when there is no limit.
func (l *limiter) bucket(c *call) *rate.Limiter {
	switch {
	case l.credentials.Limit() <= 0:
		return nil
	case isHealth(c.method):
		return l.health.Of(buckets.Network(c.remote))
	case c.principal != nil:
		return l.credentials.Of(credential{kind: c.principal.Kind, id: c.principal.ID})
	default:
		return l.addresses.Of(buckets.Network(c.remote))
	}
}

// quotas are the two limits of a call: the limit of its credential and the limit of its deployment.
type quotas struct {
	callers     *limiter
	deployments *buckets.Buckets[int64]
	policy      string // value of the policy field for callers
}

func newQuotas(perCredential, perDeployment float64, refused func()) *quotas {
	q := &quotas{callers: newLimiter(perCredential, refused), deployments: newBuckets[int64](perDeployment)}
	for _, limit := range []struct {
		perSecond rate.Limit
		of        string
	}{
		{q.callers.credentials.Limit(), "credential"},
		{q.deployments.Limit(), "deployment"},
	} {
		if limit.perSecond <= 0 {
			continue
		}
		if q.policy != "" {
			q.policy += ", "
		}
		requests, window := wholeRate(float64(limit.perSecond))
		q.policy += fmt.Sprintf("%.0f;w=%.0f;comment=%q", requests, window, limit.of)
	}
	return q
}

// wholeRate expresses a rate as a whole number of requests in a whole number of seconds, as close as possible with a
// window of up to a minute.
func wholeRate(perSecond float64) (requests, window float64) {
	shortest := math.Ceil(1 / perSecond)
	off := math.Inf(1)
	for w := shortest; w < shortest+60; w++ {
		n := math.Round(perSecond * w)
		if miss := math.Abs(n/w/perSecond - 1); miss < off-1e-9 {
			requests, window, off = n, w, miss
		}
	}
	return requests, window
}

// verifiesItself reports whether the handler of an RPC authenticates the caller, by a signature over the body.
func verifiesItself(rule *optionsv1.MethodRule) bool {
	return rule.GetPermission() == optionsv1.Permission_PERMISSION_PUBLIC && rule.GetUploadPath() != ""
}

// limitRate refuses calls over the rate limit, and makes uploads wait for their turn. Calls that their handler
// authenticates are let through, so that a caller with a valid signature does not suffer from others at the same
// address. countRefusals counts them afterwards if they fail, and the handler learns that the limit is used up.
func limitRate(q *quotas, uploads *uploadGate) Link {
	link := check(func(ctx context.Context, c *call) (context.Context, error) {
		var err error
		if !verifiesItself(c.rule) {
			err = q.count(c)
		} else if q.usedUp(c) {
			ctx = quota.WithUsedUp(ctx)
		}
		if c.stream != nil {
			c.answer(ctx, q)
		}
		return ctx, err
	}).link("rate limit")
	counted := link.Stream
	link.Stream = func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return counted(srv, ss, info, func(srv any, ss grpc.ServerStream) error {
			c := callFrom(ss.Context())
			if !gated(c.rule) {
				return handler(srv, ss)
			}
			return uploads.around(ss.Context(), c, srv, ss, handler)
		})
	}
	return link
}

// countRefusals counts the calls that are refused before limitRate runs. Otherwise guessing tokens or deployments would
// cost nothing. Callers without a valid credential are counted by address. Callers at the same address with a valid
// credential are not affected.
func countRefusals(q *quotas) Link {
	counted := func(ctx context.Context, err error) error {
		c := callFrom(ctx)
		if err == nil || c.counted || !refusal(err) {
			return err
		}
		if limited := q.count(c); limited != nil {
			return limited
		}
		return err
	}
	return Link{
		Name: "refusals",
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			resp, err := handler(ctx, req)
			return resp, counted(ctx, err)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return counted(ss.Context(), handler(srv, ss))
		},
	}
}

// refusal reports whether a call ended because of who the caller is, what it sent, or how slowly.
func refusal(err error) bool {
	switch status.Code(apierr.Map(err)) {
	case codes.Unauthenticated, codes.PermissionDenied, codes.NotFound, codes.InvalidArgument, codes.FailedPrecondition,
		codes.Unimplemented, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

// count counts a call and returns an error when it is over the limit.
func (q *quotas) count(c *call) error {
	now := time.Now()
	wait := q.take(c, now)
	c.counted, c.quota = true, q.state(c, now, wait)
	if wait > 0 {
		q.callers.refused()
		return apierr.RateLimited(wait)
	}
	return nil
}

// usedUp reports whether count would refuse a call, without counting it.
func (q *quotas) usedUp(c *call) bool {
	now := time.Now()
	for _, bucket := range [...]*rate.Limiter{q.callers.bucket(c), q.deployment(c)} {
		if bucket != nil && bucket.TokensAt(now) < 1 {
			return true
		}
	}
	return false
}

// take counts one call in both limits. It returns 0, or how long the caller must wait. A call that one limit refuses
// costs nothing in the other.
func (q *quotas) take(c *call, now time.Time) time.Duration {
	deployment := q.deployment(c)
	if deployment != nil {
		if lacks := 1 - deployment.TokensAt(now); lacks > 0 {
			return max(time.Duration(lacks/float64(q.deployments.Limit())*float64(time.Second)), 1)
		}
	}
	wait := q.callers.take(c, now)
	if wait == 0 && deployment != nil {
		deployment.AllowN(now, 1) // false only when calls raced for the last one; all of them pass
	}
	return wait
}

// deployment is the bucket of the deployment of a call. An API token always counts for its own deployment.
// It is nil without a deployment or limit.
func (q *quotas) deployment(c *call) *rate.Limiter {
	switch {
	case q.deployments.Limit() <= 0:
		return nil
	case c.grant != nil:
		return q.deployments.Of(c.grant.DeploymentID)
	case c.principal != nil && c.principal.Kind == access.KindToken && len(c.principal.Grants) == 1:
		return q.deployments.Of(c.principal.Grants[0].DeploymentID)
	default:
		return nil
	}
}

// state describes the limit that the caller is closer to. wait is the wait of a refused call, else 0.
func (q *quotas) state(c *call, now time.Time, wait time.Duration) *quota.Quota {
	var nearest *quota.Quota
	for _, bucket := range [...]*rate.Limiter{q.callers.bucket(c), q.deployment(c)} {
		if bucket == nil {
			continue
		}
		tokens := bucket.TokensAt(now)
		left := int(max(0, tokens))
		if nearest != nil && nearest.Remaining <= left {
			continue
		}
		full := (float64(bucket.Burst()) - tokens) / float64(bucket.Limit())
		nearest = &quota.Quota{
			Limit: bucket.Burst(), Remaining: left, Reset: time.Duration(full * float64(time.Second)), Policy: q.policy,
		}
	}
	if nearest != nil && wait > 0 {
		nearest.Remaining, nearest.Reset = 0, max(wait, time.Second) // as Retry-After says
	}
	return nearest
}
