package reporting

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent/tenant"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/reporting/bucket"
	"github.com/palisade/palisade/services/reporting/columns"
)

// Reports is the service group "reporting" but for the malware firewall.
type Reports struct {
	reportingv1.UnimplementedReportsServiceServer
	store     *store.Store
	snapshots *Snapshots
}

// NewReports serves reports from the store; cache is how many bytes of columns are kept.
func NewReports(st *store.Store, cache int64) *Reports {
	return &Reports{store: st, snapshots: NewSnapshots(st, cache)}
}

// report is what all reports begin with.
type report struct {
	*chosen
	columns *columns.Snapshot
	period  bucket.Period
	size    bucket.Size
	buckets []bucket.Period
	now     uint32 // what has happened by now is before it
}

// begin reads a request.
func (s *Reports) begin(ctx context.Context, f *reportingv1.ReportFilters, refs branches) (*report, error) {
	now := time.Now()
	r := &report{now: seconds(now.UnixMicro()) + 1}
	var err error
	if r.period, err = bucket.Of(timeOf(f.GetTimePeriod().GetSince()), timeOf(f.GetTimePeriod().GetUntil()), now); err != nil {
		return nil, apierr.InvalidArgument("filters.timePeriod", "filters.timePeriod: %s", err)
	}
	r.size = r.period.Size()
	switch f.GetTimeBucketSize() {
	case reportingv1.TimeBucketSize_TIME_BUCKET_SIZE_DAY:
		r.size = bucket.Day
	case reportingv1.TimeBucketSize_TIME_BUCKET_SIZE_WEEK:
		r.size = bucket.Week
	case reportingv1.TimeBucketSize_TIME_BUCKET_SIZE_MONTH:
		r.size = bucket.Month
	}
	if r.buckets, err = bucket.Make(r.period.Since, r.period.Until, r.size); err != nil {
		return nil, apierr.InvalidArgument("filters.timePeriod", "filters.timePeriod: %s", err)
	}
	deploymentID, _ := tenant.FromContext(ctx)
	if r.columns, err = s.snapshots.Of(ctx, deploymentID); err != nil {
		return nil, err
	}
	r.chosen, err = s.choose(ctx, f, refs, r.columns)
	return r, err
}

// timeOf is the zero time for a timestamp that is absent.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// bound is the second from which on things are not before a time. Columns know no parts of seconds.
func bound(t time.Time) uint32 { return seconds(t.UnixMicro() + 999_999) }

// ends are those of the buckets; those that are not over end now.
func (r *report) ends() []uint32 {
	ends := make([]uint32, len(r.buckets))
	for i, b := range r.buckets {
		ends[i] = min(bound(b.Until), r.now)
	}
	return ends
}

// end is that of the period, or now.
func (r *report) end() uint32 { return min(bound(r.period.Until), r.now) }

func (r *report) timePeriod(i int) *reportingv1.TimePeriod {
	b := r.buckets[i]
	return &reportingv1.TimePeriod{Since: timestamppb.New(b.Since), Until: timestamppb.New(b.Until)}
}

// byProduct groups findings by product: code 0, sca 1, secrets 2.
var byProduct = sync.OnceValue(func() *columns.Grouping {
	return grouping(3, func(a columns.Attr) int32 { return int32(a.Product()) - 1 })
})

// bySeverity groups findings by severity: low 0 to critical 3.
var bySeverity = sync.OnceValue(func() *columns.Grouping {
	return grouping(4, func(a columns.Attr) int32 { return int32(a.Severity()) - 1 })
})

// grouping makes a grouping by Attr. What belongs to no group is left out, whatever is added for its place.
func grouping(groups int, of func(columns.Attr) int32) *columns.Grouping {
	const outside = -1 << 30
	table := new([columns.Attrs]int32)
	for i := range table {
		group := of(columns.Attr(i))
		if group < 0 || int(group) >= groups {
			group = outside
		}
		table[i] = group
	}
	return &columns.Grouping{Groups: groups, Attr: table}
}
