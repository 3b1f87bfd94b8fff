package reporting_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/reporting/bucket"
)

// enums reports whether a filter of enum words is empty or contains the table's word.
func enums[E fmt.Stringer](wanted []E, prefix, have string) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(w E) bool { return w.String() == prefix+strings.ToUpper(have) })
}

// Each report equals the reference for any history and any filters. The store grows between checks, so that most
// snapshots are updated ones.
func TestReportsEqualTheReference(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newWorld(t, s, s.Tenant)
		w.project("acme/web", main)
		w.project("acme/api", dev)
		w.project("acme/loose", "")
		w.project("acme/old", main)
		w.write(func(ctx context.Context, tx *ent.Tx) error {
			return tx.Project.UpdateOneID(w.projects["acme/old"]).SetArchivedAt(after(0)).Exec(ctx)
		})
		w.tag("pci", "acme/web")
		w.tag("pci", "acme/loose")
		w.tag("edge", "acme/api")
		w.team("platform", "", "acme/web")
		w.team("storage", "platform", "acme/api")
		w.team("web", "", "acme/loose")
		client := reportingv1.NewReportsServiceClient(s.Conn)
		rapid.Check(t, func(rt *rapid.T) {
			w.add(drawFacts(rt, w)...)
			q := drawFilters(rt, w)
			reference := newReference(t, s, w.DeploymentID, q)
			compareReports(rt, s.Context(t, s.Token), client, w.DeploymentID, reference)
			compareOverview(rt, s.Context(t, s.Token), reportingv1.NewOverviewReportsServiceClient(s.Conn), w.DeploymentID, reference)
		})
	})
}

var statuses = []string{"open", "open", "reviewing", "fixing", "ignored", "provisionally_ignored", "fixed", "removed"}

// drawFacts generates new findings with histories, and extends the histories of stored ones.
func drawFacts(rt *rapid.T, w *world) []*fact {
	var facts []*fact
	if rapid.Bool().Draw(rt, "change stored ones") {
		for _, row := range w.server.Store.Reader.Finding.Query().Where(finding.DeploymentID(w.DeploymentID)).AllX(w.server.System(w.t)) {
			if rapid.IntRange(0, 4).Draw(rt, "touch") == 0 {
				facts = append(facts, &fact{
					id: row.ID, severity: pick(rt, "severity", "low", "medium", "high", "critical"), verdict: pick(rt, "verdict", "", "true_positive", "false_positive"),
					changes: drawChanges(rt, drawTime(rt, 60)),
				})
			}
		}
	}
	for range rapid.IntRange(1, 6).Draw(rt, "new") {
		f := &fact{
			project: pick(rt, "project", "acme/web", "acme/api", "acme/loose", "acme/old"), ref: pick(rt, "ref", main, dev, pull),
			rule: pick(rt, "rule", names(w.rules)...), kind: pick(rt, "kind", "sast", "ai_sast", "sca", "secrets"),
			severity:   pick(rt, "severity", "low", "medium", "high", "critical"),
			exposure:   pick(rt, "exposure", "", "unknown", "reachable", "always_reachable", "conditionally_reachable", "unreachable"),
			validation: pick(rt, "validation", "", "no_validator", "valid", "invalid", "error"),
			verdict:    pick(rt, "verdict", "", "true_positive", "false_positive"),
			policy:     pick(rt, "policy", "", "rule-board-audit", "rule-board-pr-comments", "rule-board-block"),
			changes:    drawChanges(rt, drawTime(rt, 60)),
		}
		facts = append(facts, f)
	}
	return facts
}

// drawChanges generates a history from a time on. Some changes share a second; some clocks go back slightly.
func drawChanges(rt *rapid.T, at int64) []change {
	list := []change{{at, pick(rt, "first", statuses...)}}
	for range rapid.IntRange(0, 4).Draw(rt, "changes") {
		at += rapid.SampledFrom([]int64{0, 1, 999_999, 1_000_000, -400_000, 3_600_000_000, 86_400_000_000, 5 * 86_400_000_000}).Draw(rt, "later")
		list = append(list, change{at, pick(rt, "to", statuses...)})
	}
	return list
}

// drawTime is often at or near midnight.
func drawTime(rt *rapid.T, days int) int64 {
	at := monday.AddDate(0, 0, rapid.IntRange(0, days).Draw(rt, "day"))
	return at.UnixMicro() + rapid.SampledFrom([]int64{0, -1, 1, 500_000, 12*3_600_000_000 + 1, 20 * 3_600_000_000}).Draw(rt, "time of day")
}

func pick(rt *rapid.T, what string, words ...string) string {
	return rapid.SampledFrom(words).Draw(rt, what)
}

// some draws a list that is usually empty.
func some[T any](rt *rapid.T, what string, of ...T) []T {
	if rapid.IntRange(0, 5).Draw(rt, "filter "+what) > 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.SampledFrom(of), 1, 2).Draw(rt, what)
}

func drawFilters(rt *rapid.T, w *world) *reportingv1.ReportFilters {
	since := monday.AddDate(0, 0, rapid.IntRange(-5, 50).Draw(rt, "since")).Add(rapid.SampledFrom([]time.Duration{0, 0, 7 * time.Hour, time.Second}).Draw(rt, "since time"))
	until := since.Add(time.Duration(rapid.IntRange(1, 40*24).Draw(rt, "hours")) * time.Hour)
	return &reportingv1.ReportFilters{
		TimePeriod:         &reportingv1.TimePeriod{Since: timestamppb.New(since), Until: timestamppb.New(until)},
		TimeBucketSize:     reportingv1.TimeBucketSize(rapid.IntRange(1, 3).Draw(rt, "bucket")),
		FindingTypes:       some[reportingv1.FindingType](rt, "types", 1, 2, 3),
		FindingSeverities:  some[reportingv1.FindingSeverity](rt, "severities", 1, 2, 3, 4),
		Projects:           some(rt, "projects", "acme/web", "acme/api", "ACME/web", "acme/old"),
		ProjectIds:         some(rt, "project ids", w.projects["acme/web"], w.projects["acme/loose"], 999_999),
		Tags:               some(rt, "tags", "pci", "edge", "none"),
		Confidence:         some[reportingv1.FindingConfidence](rt, "confidence", 1, 2, 3),
		Reachability:       some[reportingv1.FindingReachability](rt, "reachability", 1, 2, 3, 4, 5),
		Validity:           some[reportingv1.FindingValidity](rt, "validity", 1, 2, 3, 4),
		Teams:              some(rt, "teams", "platform", "web", fmt.Sprint(w.teams["storage"]), "none"),
		RuleIds:            some(rt, "rules", "sqli", "style", fmt.Sprint(w.rules["gosec/sqli"]), "none"),
		AiVerdicts:         some[reportingv1.Verdict](rt, "verdicts", 1, 2, 3),
		DeploymentStatuses: some[reportingv1.DeploymentStatus](rt, "deployment statuses", 1, 1, 2),
		PublicExposures:    some[reportingv1.PublicExposure](rt, "exposures", 1, 1, 3),
		FindingCategories:  some(rt, "categories", "security", "best-practice", "none"),
	}
}

// call requests a report and compares it.
func call[Q, A proto.Message](rt *rapid.T, ctx context.Context, method func(context.Context, Q, ...grpc.CallOption) (A, error), q Q, want A) {
	got, err := method(ctx, q)
	if err != nil {
		rt.Fatalf("%v: %v", q, err)
	}
	if !proto.Equal(got, want) {
		rt.Fatalf("%T:\n got %v\nwant %v\nof %v", want, got, want, q)
	}
}

func compareReports(rt *rapid.T, ctx context.Context, c reportingv1.ReportsServiceClient, id int64, r *reference) {
	product, severity := replay.product, func(f replay) string { return f.Severity }
	f := r.filters
	medians, bySeverity := &reportingv1.GetMedianOpenAgeByProductReportResponse{}, &reportingv1.GetMedianOpenAgeBySeverityReportResponse{}
	backlog, ofSeverity := &reportingv1.GetBacklogByProductReportResponse{}, &reportingv1.GetBacklogBySeverityReportResponse{}
	ofRule := &reportingv1.GetBacklogByRuleReportResponse{}
	for i, m := range r.medians(product) {
		medians.Buckets = append(medians.Buckets, &reportingv1.GetMedianOpenAgeByProductReportResponse_Bucket{
			TimePeriod: timePeriod(r.buckets[i]), Code: m["code"], Sca: m["sca"], Secrets: m["secrets"],
		})
	}
	for i, m := range r.medians(severity) {
		bySeverity.Buckets = append(bySeverity.Buckets, &reportingv1.GetMedianOpenAgeBySeverityReportResponse_Bucket{
			TimePeriod: timePeriod(r.buckets[i]), Low: m["low"], Medium: m["medium"], High: m["high"], Critical: m["critical"],
		})
	}
	for i, m := range r.backlog(product) {
		backlog.Buckets = append(backlog.Buckets, &reportingv1.GetBacklogByProductReportResponse_Bucket{
			TimePeriod: timePeriod(r.buckets[i]), Code: m["code"], Sca: m["sca"], Secrets: m["secrets"],
		})
	}
	for i, m := range r.backlog(severity) {
		ofSeverity.Buckets = append(ofSeverity.Buckets, &reportingv1.GetBacklogBySeverityReportResponse_Bucket{
			TimePeriod: timePeriod(r.buckets[i]), Low: m["low"], Medium: m["medium"], High: m["high"], Critical: m["critical"],
		})
	}
	for i, m := range r.backlog(func(f replay) string { return r.rules[f.RuleID].Name }) {
		ofRule.Buckets = append(ofRule.Buckets, &reportingv1.GetBacklogByRuleReportResponse_Bucket{TimePeriod: timePeriod(r.buckets[i]), Open: m})
	}
	call(rt, ctx, c.GetMedianOpenAgeByProductReport, &reportingv1.GetMedianOpenAgeByProductReportRequest{DeploymentId: id, Filters: f}, medians)
	call(rt, ctx, c.GetMedianOpenAgeBySeverityReport, &reportingv1.GetMedianOpenAgeBySeverityReportRequest{DeploymentId: id, Filters: f}, bySeverity)
	call(rt, ctx, c.GetBacklogByProductReport, &reportingv1.GetBacklogByProductReportRequest{DeploymentId: id, Filters: f}, backlog)
	call(rt, ctx, c.GetBacklogBySeverityReport, &reportingv1.GetBacklogBySeverityReportRequest{DeploymentId: id, Filters: f}, ofSeverity)
	call(rt, ctx, c.GetBacklogByRuleReport, &reportingv1.GetBacklogByRuleReportRequest{DeploymentId: id, Filters: f}, ofRule)
	compareActivity(rt, ctx, c, id, r)
	compareProjects(rt, ctx, c, id, r)
	compareGuardrails(rt, ctx, c, id, r)
	compareFindings(rt, ctx, c, id, r)
}

func compareActivity(rt *rapid.T, ctx context.Context, c reportingv1.ReportsServiceClient, id int64, r *reference) {
	totals := func(p bucket.Period) *reportingv1.GetFindingsActivityReportResponse_SummaryTotals {
		m := r.moves(p)
		return &reportingv1.GetFindingsActivityReportResponse_SummaryTotals{
			TotalNew: m["opened"], TotalFixed: m["fixed"], TotalIgnored: m["ignored"], TotalNetNew: m["net"], TotalProvisionallyIgnored: m["provisionally_ignored"],
		}
	}
	want := &reportingv1.GetFindingsActivityReportResponse{ThisPeriod: totals(r.period), PreviousPeriod: totals(r.period.Previous())}
	for _, b := range r.buckets {
		m := r.moves(b)
		want.Buckets = append(want.Buckets, &reportingv1.GetFindingsActivityReportResponse_Bucket{
			TimePeriod: timePeriod(b), Opened: m["opened"], Ignored: m["ignored"], Fixed: m["fixed"], Removed: m["removed"],
			ProvisionallyIgnored: m["provisionally_ignored"], Net: m["net"],
		})
	}
	want.TotalNew, want.TotalFixed, want.TotalIgnored = want.ThisPeriod.TotalNew, want.ThisPeriod.TotalFixed, want.ThisPeriod.TotalIgnored
	want.TotalNetNew, want.TotalProvisionallyIgnored = want.ThisPeriod.TotalNetNew, want.ThisPeriod.TotalProvisionallyIgnored
	call(rt, ctx, c.GetFindingsActivityReport, &reportingv1.GetFindingsActivityReportRequest{DeploymentId: id, Filters: r.filters}, want)
}

func compareProjects(rt *rapid.T, ctx context.Context, c reportingv1.ReportsServiceClient, id int64, r *reference) {
	products := &reportingv1.GetFindingsByProjectAndProductReportResponse{}
	severities := &reportingv1.GetFindingsByProjectAndSeverityReportResponse{}
	products.ByProject = map[string]*reportingv1.GetFindingsByProjectAndProductReportResponse_ProjectStats{}
	severities.ByProject = map[string]*reportingv1.GetFindingsByProjectAndSeverityReportResponse_ProjectStats{}
	funnel := &reportingv1.GetFindingsFunnelReportResponse{ByProduct: map[string]*reportingv1.GetFindingsFunnelReportResponse_FunnelStats{"code": {}, "sca": {}, "secrets": {}}}
	r.each(false, func(f replay) {
		if !open(f.at(r.period.Until)) {
			return
		}
		name := r.projects[f.ProjectID].Name
		if products.ByProject[name] == nil {
			products.ByProject[name] = &reportingv1.GetFindingsByProjectAndProductReportResponse_ProjectStats{}
			severities.ByProject[name] = &reportingv1.GetFindingsByProjectAndSeverityReportResponse_ProjectStats{}
		}
		p, v := products.ByProject[name], severities.ByProject[name]
		*map[string]*int32{"code": &p.Code, "sca": &p.Sca, "secrets": &p.Secrets}[f.product()]++
		*map[string]*int32{"low": &v.Low, "medium": &v.Medium, "high": &v.High, "critical": &v.Critical}[f.Severity]++
		harmless := word(f.AutotriageVerdict) == "false_positive" || f.IssueType == "sca" && word(f.Exposure) == "unreachable" ||
			f.IssueType == "secrets" && word(f.ValidationState) == "invalid"
		certain := word(f.AutotriageVerdict) == "true_positive" || f.IssueType == "sca" && strings.HasSuffix(word(f.Exposure), "reachable") ||
			f.IssueType == "secrets" && word(f.ValidationState) == "valid"
		of := funnel.ByProduct[f.product()]
		of.AllFindings++
		funnel.AllFindings++
		if !harmless {
			of.PossiblyExploitable++
			funnel.PossiblyExploitable++
			if certain && (f.Severity == "high" || f.Severity == "critical") {
				of.PriorityFindings++
				funnel.PriorityFindings++
			}
		}
	})
	call(rt, ctx, c.GetFindingsByProjectAndProductReport, &reportingv1.GetFindingsByProjectAndProductReportRequest{DeploymentId: id, Filters: r.filters}, products)
	call(rt, ctx, c.GetFindingsByProjectAndSeverityReport, &reportingv1.GetFindingsByProjectAndSeverityReportRequest{DeploymentId: id, Filters: r.filters}, severities)
	call(rt, ctx, c.GetFindingsFunnelReport, &reportingv1.GetFindingsFunnelReportRequest{DeploymentId: id, Filters: r.filters}, funnel)
}

func compareGuardrails(rt *rapid.T, ctx context.Context, c reportingv1.ReportsServiceClient, id int64, r *reference) {
	activity, adoption := &reportingv1.GetGuardrailsActivityReportResponse{}, &reportingv1.GetGuardrailsAdoptionReportResponse{}
	for _, b := range r.buckets {
		n := r.appeared(b)
		activity.Buckets = append(activity.Buckets, &reportingv1.GetGuardrailsActivityReportResponse_Bucket{
			TimePeriod: timePeriod(b), Silenced: n["silenced"], Open: n["open"], Fixed: n["fixed"], Ignored: n["ignored"], ProvisionallyIgnored: n["provisionally_ignored"],
		})
		adoption.Buckets = append(adoption.Buckets, &reportingv1.GetGuardrailsAdoptionReportResponse_Bucket{
			TimePeriod: timePeriod(b), ShownToDeveloperCount: n["all"] - n["silenced"], TotalCount: n["all"],
		})
		activity.TotalFixed += n["fixed"]
		activity.TotalOpened += n["all"]
		adoption.TotalShownToDeveloper += n["all"] - n["silenced"]
		adoption.TotalOpened += n["all"]
	}
	call(rt, ctx, c.GetGuardrailsActivityReport, &reportingv1.GetGuardrailsActivityReportRequest{DeploymentId: id, Filters: r.filters}, activity)
	call(rt, ctx, c.GetGuardrailsAdoptionReport, &reportingv1.GetGuardrailsAdoptionReportRequest{DeploymentId: id, Filters: r.filters}, adoption)
}

// compareFindings pages through the findings that one number counts.
func compareFindings(rt *rapid.T, ctx context.Context, c reportingv1.ReportsServiceClient, id int64, r *reference) {
	b := rapid.SampledFrom(r.buckets).Draw(rt, "bucket of the list")
	kind := rapid.IntRange(1, 8).Draw(rt, "report type")
	limit := int32(rapid.IntRange(1, 7).Draw(rt, "limit"))
	q := &reportingv1.GetReportFindingsRequest{
		DeploymentId: id, ReportType: reportingv1.ReportType(kind), Filters: r.filters, BucketStart: timestamppb.New(b.Since), Limit: limit,
	}
	behind := func(f replay) bool {
		moves := f.moves(b)
		switch q.GetReportType().String() {
		case "REPORT_TYPE_TOTAL_OPEN":
			return moves["opened"] > 0
		case "REPORT_TYPE_TOTAL_FIXED":
			return moves["fixed"] > 0
		case "REPORT_TYPE_TOTAL_IGNORED":
			return moves["ignored"] > 0
		case "REPORT_TYPE_TOTAL_PROVISIONALLY_IGNORED":
			return moves["provisionally_ignored"] > 0
		case "REPORT_TYPE_BACKLOG_ACTIVITY":
			return len(moves) > 0
		case "REPORT_TYPE_GUARDRAILS_ACTIVITY":
			return b.Contains(time.UnixMicro(f.events[0].at))
		}
		return open(f.at(b.Until))
	}
	var want, got []string
	totals := map[string]int32{}
	r.each(q.GetReportType() == reportingv1.ReportType_REPORT_TYPE_GUARDRAILS_ACTIVITY, func(f replay) {
		if behind(f) {
			want = append(want, fmt.Sprint(f.ID))
			totals[f.product()]++
		}
	})
	slices.Reverse(want)
	for {
		answer, err := c.GetReportFindings(ctx, q)
		if err != nil {
			rt.Fatalf("%v: %v", q, err)
		}
		if n := len(answer.GetFindings()); n > int(limit) || answer.GetTotal() != int32(len(want)) || answer.GetTotalCode() != totals["code"] ||
			answer.GetTotalSca() != totals["sca"] || answer.GetTotalSecrets() != totals["secrets"] {
			rt.Fatalf("%v: %d findings, totals %v, want %v of %d", q, n, answer, totals, len(want))
		}
		for _, f := range answer.GetFindings() {
			got = append(got, fmt.Sprint(f.GetId()))
		}
		if q.Cursor = answer.GetCursor(); q.Cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		rt.Fatalf("%v: got %v, want %v", q, got, want)
	}
}
