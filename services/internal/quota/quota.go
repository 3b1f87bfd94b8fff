package quota

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"
)

// The fields of a response. gRPC metadata and HTTP headers have the same names. See the draft, section 5.
const (
	limitKey     = "ratelimit-limit"
	remainingKey = "ratelimit-remaining"
	resetKey     = "ratelimit-reset"
	policyKey    = "ratelimit-policy"

	limitHeader     = "Ratelimit-Limit"
	remainingHeader = "Ratelimit-Remaining"
	resetHeader     = "Ratelimit-Reset"
	policyHeader    = "Ratelimit-Policy"
)

// Quota is the state of the limit that the caller is closest to.
type Quota struct {
	// Limit is the size of the bucket in requests, Remaining the number left in it.
	Limit, Remaining int
	// Reset is the time until the bucket is full again without a request; after a refusal, until one request is
	// available.
	Reset time.Duration
	// Policy lists all limits.
	Policy string
}

// Metadata adds the fields to gRPC header metadata.
func (q *Quota) Metadata(md metadata.MD) {
	fields := q.fields()
	md[limitKey], md[remainingKey], md[resetKey], md[policyKey] = fields[0:1:1], fields[1:2:2], fields[2:3:3], fields[3:4:4]
}

// fields are the four values in one array, for one allocation.
func (q *Quota) fields() *[4]string {
	return &[4]string{strconv.Itoa(q.Limit), strconv.Itoa(q.Remaining), seconds(q.Reset), q.Policy}
}

// seconds rounds up, so that a caller that returns after this time is not too early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// Report passes the quota of an HTTP request from the chain to its response.
type Report struct{ quota atomic.Pointer[Quota] }

// Set stores the quota. nil means that there is no limit.
func (r *Report) Set(q *Quota) { r.quota.Store(q) }

// WriteHeader writes the stored quota to the header of the response.
func (r *Report) WriteHeader(header http.Header) {
	q := r.quota.Load()
	if q == nil {
		return
	}
	fields := q.fields()
	header[limitHeader], header[remainingHeader] = fields[0:1:1], fields[1:2:2]
	header[resetHeader], header[policyHeader] = fields[2:3:3], fields[3:4:4]
}

type reportKey struct{}

// NewContext returns a context that carries a report.
func NewContext(ctx context.Context, r *Report) context.Context {
	return context.WithValue(ctx, reportKey{}, r)
}

// FromContext returns the report of a context, or nil.
func FromContext(ctx context.Context) *Report {
	r, _ := ctx.Value(reportKey{}).(*Report)
	return r
}
