package reporting

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/issue"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/reporting/bucket"
)

// defaultLimit is the default page size.
const defaultLimit = 100

// GetReportFindings lists the findings that a number counts.
func (s *Reports) GetReportFindings(ctx context.Context, q *reportingv1.GetReportFindingsRequest) (*reportingv1.GetReportFindingsResponse, error) {
	list := proto.CloneOf(q)
	list.Cursor, list.Limit = "", 0
	digest, err := page.DigestOf("report findings", list)
	if err != nil {
		return nil, err
	}
	after, more, err := page.Decode(digest, q.GetCursor())
	if err != nil {
		return nil, err
	}
	refs := primary
	if q.GetReportType() == reportingv1.ReportType_REPORT_TYPE_GUARDRAILS_ACTIVITY {
		refs = others
	}
	r, err := s.begin(ctx, q.GetFilters(), refs)
	if err != nil {
		return nil, err
	}
	condition, err := r.findingsCondition(q)
	if err != nil {
		return nil, err
	}
	selected := r.columns.Select(&r.Filter, condition)
	if place, ok := decidedAt(q); ok {
		if selected, err = s.decided(ctx, selected, place); err != nil {
			return nil, err
		}
	}
	limit := cmp.Or(int(q.GetLimit()), defaultLimit)
	ids := selected.IDs
	if more {
		ids = ids[countAbove(ids, after.ID):]
	}
	shown := ids[:min(limit, len(ids))]
	out := &reportingv1.GetReportFindingsResponse{
		Total:     int32(len(selected.IDs)),
		TotalCode: selected.Products[columns.Code], TotalSca: selected.Products[columns.SCA], TotalSecrets: selected.Products[columns.Secrets],
	}
	if len(shown) < len(ids) {
		out.Cursor = page.Encode(digest, page.Key{ID: shown[len(shown)-1]})
	}
	rows, err := s.store.Reader.Finding.Query().Where(store.WithIDs[predicate.Finding](shown)).Order(ent.Desc(finding.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	out.Findings, err = issue.Convert(ctx, s.store.Reader, rows)
	return out, err
}

// countAbove counts the ids of a descending list that are at least id.
func countAbove(ids []int64, id int64) int {
	n, found := slices.BinarySearchFunc(ids, id, func(a, b int64) int { return cmp.Compare(b, a) })
	if found {
		n++
	}
	return n
}

// findingsCondition is the condition of the findings that a number counts.
func (r *report) findingsCondition(q *reportingv1.GetReportFindingsRequest) (func(columns.Record) bool, error) {
	since, until, err := r.span(q)
	if err != nil {
		return nil, err
	}
	switch q.GetReportType() {
	case reportingv1.ReportType_REPORT_TYPE_TOTAL_OPEN:
		return moved(since, until, columns.Opened), nil
	case reportingv1.ReportType_REPORT_TYPE_TOTAL_FIXED:
		return moved(since, until, columns.WasFixed), nil
	case reportingv1.ReportType_REPORT_TYPE_TOTAL_IGNORED:
		return moved(since, until, columns.WasIgnored), nil
	case reportingv1.ReportType_REPORT_TYPE_TOTAL_PROVISIONALLY_IGNORED:
		return moved(since, until, columns.WasProvisionallyIgnored), nil
	case reportingv1.ReportType_REPORT_TYPE_BACKLOG_ACTIVITY:
		return moved(since, until, movesTo[q.GetFindingState()]...), nil
	case reportingv1.ReportType_REPORT_TYPE_OPEN_BACKLOG, reportingv1.ReportType_REPORT_TYPE_PROJECT:
		if since >= r.now { // its bucket is empty
			return func(columns.Record) bool { return false }, nil
		}
		wanted, named := standing[q.GetFindingState()]
		return func(record columns.Record) bool {
			status := record.StatusAt(until)
			return status.Open() && (!named || status == wanted)
		}, nil
	default:
		outcome, named := outcomes[q.GetGuardrailsState()]
		return func(record columns.Record) bool {
			became, ok := record.Appeared(since, until)
			return ok && (!named || became == outcome)
		}, nil
	}
}

// span is the time of the requested bucket, or of the whole period.
func (r *report) span(q *reportingv1.GetReportFindingsRequest) (since, until uint32, err error) {
	if q.GetBucketStart() == nil {
		return bound(r.period.Since), r.end(), nil
	}
	start := q.GetBucketStart().AsTime().Truncate(time.Microsecond)
	n := slices.IndexFunc(r.buckets, func(b bucket.Period) bool { return b.Since.Equal(start) })
	if n < 0 && q.GetFilters().GetTimePeriod().GetSince() == nil && bucket.Next(start, r.size).Equal(bucket.Next(r.period.Since, r.size)) {
		n = 0 // the period moves with the clock: the caller has the bucket from a report that began slightly earlier
	}
	if n < 0 {
		return 0, 0, apierr.InvalidArgument("bucketStart", "bucketStart: got %s, want the begin of a bucket of the report", start.Format(time.RFC3339))
	}
	return bound(r.buckets[n].Since), r.ends()[n], nil
}

// moved is the condition that a finding entered or left the backlog in one of several ways; in any way if none is
// given.
func moved(since, until uint32, ways ...columns.Move) func(columns.Record) bool {
	return func(record columns.Record) bool {
		return record.Moved(since, until, func(m columns.Move) bool { return either(ways, m) })
	}
}

// Words of a request. States that are not in a table select everything.
var (
	movesTo = map[reportingv1.AggregateIssueState][]columns.Move{
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_OPEN:                      {columns.Opened},
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_REVIEWING:                 {columns.NoMove},
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_FIXING:                    {columns.NoMove},
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_FIXED:                     {columns.WasFixed},
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_REMOVED:                   {columns.WasRemoved},
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_APP:               {columns.WasIgnored},
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_CODE:              {columns.WasIgnored},
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_PROVISIONALLY_IGNORED_APP: {columns.WasProvisionallyIgnored},
	}
	standing = map[reportingv1.AggregateIssueState]columns.Status{
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_OPEN:                      columns.Open,
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_REVIEWING:                 columns.Reviewing,
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_FIXING:                    columns.Fixing,
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_FIXED:                     columns.Fixed,
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_REMOVED:                   columns.Removed,
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_APP:               columns.Ignored,
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_CODE:              columns.Ignored,
		reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_PROVISIONALLY_IGNORED_APP: columns.ProvisionallyIgnored,
	}
	outcomes = map[string]columns.Outcome{
		"silenced": columns.Silenced, "open": columns.StillOpen, "fixed": columns.BecameFixed, "ignored": columns.BecameIgnored,
		"provisionallyIgnored": columns.BecameProvisionallyIgnored,
	}
)

// decidedAt is the condition of findings that were ignored in the requested place; ok is false for requests without
// one.
func decidedAt(q *reportingv1.GetReportFindingsRequest) (where predicate.Finding, ok bool) {
	switch q.GetReportType() {
	case reportingv1.ReportType_REPORT_TYPE_TOTAL_IGNORED, reportingv1.ReportType_REPORT_TYPE_BACKLOG_ACTIVITY:
	default:
		return nil, false
	}
	switch q.GetFindingState() {
	case reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_APP:
		return finding.TriageState(lifecycle.Ignored), true
	case reportingv1.AggregateIssueState_AGGREGATE_ISSUE_STATE_IGNORED_CODE:
		return finding.And(finding.TriageStateNEQ(lifecycle.Ignored), finding.State(lifecycle.Muted)), true
	}
	return nil, false
}

// decided keeps the findings that currently match a condition.
func (s *Reports) decided(ctx context.Context, list *columns.Selection, where predicate.Finding) (*columns.Selection, error) {
	rows, err := s.store.Reader.Finding.Query().Where(store.WithIDs[predicate.Finding](list.IDs), where).Order(ent.Desc(finding.FieldID)).
		Select(finding.FieldID, finding.FieldIssueType).All(ctx)
	if err != nil {
		return nil, err
	}
	kept := &columns.Selection{}
	for _, row := range rows {
		kept.IDs = append(kept.IDs, row.ID)
		kept.Products[columns.Words{IssueType: row.IssueType}.Attr().Product()]++
	}
	return kept, nil
}
