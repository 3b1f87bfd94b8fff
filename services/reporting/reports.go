package reporting

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent/tenant"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/snapshots"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/reporting/bucket"
)

// Reports is the service group "reporting", except the malware firewall.
type Reports struct {
	reportingv1.UnimplementedReportsServiceServer
	store     *store.Store
	snapshots *snapshots.Snapshots
}

// NewReports serves reports from the store and its columns.
func NewReports(st *store.Store, columnsOf *snapshots.Snapshots) *Reports {
	return &Reports{store: st, snapshots: columnsOf}
}

// seconds converts the tables' microseconds. Columns hold times from 1970 to 2106.
func seconds(micros int64) uint32 { return uint32(max(0, min(micros/1_000_000, 1<<32-1))) }

// report is the common part of all reports.
type report struct {
	*chosen
	columns *columns.Snapshot
	period  bucket.Period
	size    bucket.Size
	buckets []bucket.Period
	now     uint32 // everything until now is before it
}

// begin parses a request.
func (s *Reports) begin(ctx context.Context, f *reportingv1.ReportFilters, refs refScope) (*report, error) {
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
	columnsOf := s.snapshots.OfPrimaryBranches
	if refs == others {
		columnsOf = s.snapshots.OfOtherRefs
	}
	if r.columns, err = columnsOf(ctx, deploymentID); err != nil {
		return nil, err
	}
	r.chosen, err = s.choose(ctx, f, refs, r.columns)
	return r, err
}

// timeOf returns the zero time for an absent timestamp.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// bound rounds a time up to seconds, the precision of columns.
func bound(t time.Time) uint32 { return seconds(t.UnixMicro() + 999_999) }

// begun returns the buckets that have begun. Nothing is known about the later ones.
func (r *report) begun() []bucket.Period {
	later := slices.IndexFunc(r.buckets, func(b bucket.Period) bool { return bound(b.Since) >= r.now })
	if later < 0 {
		return r.buckets
	}
	return r.buckets[:later]
}

// ends returns the ends of the buckets, at most now.
func (r *report) ends() []uint32 {
	ends := make([]uint32, len(r.buckets))
	for i, b := range r.buckets {
		ends[i] = min(bound(b.Until), r.now)
	}
	return ends
}

// end is the end of the period, at most now.
func (r *report) end() uint32 { return min(bound(r.period.Until), r.now) }

// future reports whether the period has not begun. Nothing is known about it.
func (r *report) future() bool { return bound(r.period.Since) >= r.now }

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

// grouping groups by Attr. The value of outside excludes a finding without a group, even after the value of its place
// is added.
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
