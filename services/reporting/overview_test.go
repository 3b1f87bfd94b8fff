package reporting_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/reporting/bucket"
)

// fixTimes lists how long the findings of a severity were open that were fixed in a period; of all with "".
func (r *reference) fixTimes(p bucket.Period, severity string) *reportingv1.TimeToFix {
	var times []int64
	r.each(false, func(f replay) {
		if severity != "" && f.Severity != severity {
			return
		}
		before, opened := "", int64(0)
		for _, e := range f.events {
			switch {
			case open(e.to) && !open(before):
				opened = e.at / 1_000_000
			case e.to == "fixed" && open(before) && p.Contains(time.UnixMicro(e.at)):
				times = append(times, e.at/1_000_000-opened)
			}
			before = e.to
		}
	})
	slices.Sort(times)
	out := &reportingv1.TimeToFix{Fixed: int32(len(times))}
	if n := len(times); n > 0 {
		out.MedianSeconds = (times[(n-1)/2] + times[n/2]) / 2
		for i, at := range times { // the first that nine of ten do not exceed
			if (i+1)*10 >= n*9 {
				out.P90Seconds = at
				break
			}
		}
	}
	return out
}

func compareOverview(rt *rapid.T, ctx context.Context, c reportingv1.OverviewReportsServiceClient, id int64, r *reference) {
	fixes := func(p bucket.Period) *reportingv1.GetTimeToFixReportResponse_Bucket {
		return &reportingv1.GetTimeToFixReportResponse_Bucket{
			TimePeriod: timePeriod(p), All: r.fixTimes(p, ""), Low: r.fixTimes(p, "low"), Medium: r.fixTimes(p, "medium"),
			High: r.fixTimes(p, "high"), Critical: r.fixTimes(p, "critical"),
		}
	}
	want := &reportingv1.GetTimeToFixReportResponse{ThisPeriod: fixes(r.period), PreviousPeriod: fixes(r.period.Previous())}
	for _, b := range r.buckets {
		want.Buckets = append(want.Buckets, fixes(b))
	}
	call(rt, ctx, c.GetTimeToFixReport, &reportingv1.GetTimeToFixReportRequest{DeploymentId: id, Filters: r.filters}, want)
	call(rt, ctx, c.GetOverviewReport, &reportingv1.GetOverviewReportRequest{DeploymentId: id, Filters: r.filters}, r.overview())
}

// overview is the overview by definition: each number from the other reports of the reference.
func (r *reference) overview() *reportingv1.GetOverviewReportResponse {
	counts := func(m map[string]int32) *reportingv1.SeverityCounts {
		return &reportingv1.SeverityCounts{Low: m["low"], Medium: m["medium"], High: m["high"], Critical: m["critical"], Total: m["low"] + m["medium"] + m["high"] + m["critical"]}
	}
	at := func(p bucket.Period) *reference {
		of := *r
		of.period, of.buckets = p, []bucket.Period{p}
		return &of
	}
	period := func(p bucket.Period) *reportingv1.GetOverviewReportResponse_Period {
		m := r.moves(p)
		return &reportingv1.GetOverviewReportResponse_Period{
			TimePeriod: timePeriod(p), Open: counts(at(p).backlog(func(f replay) string { return f.Severity })[0]),
			MedianOpenAge: at(p).medians(func(replay) string { return "" })[0][""],
			Opened:        m["opened"], Fixed: m["fixed"], Ignored: m["ignored"], ProvisionallyIgnored: m["provisionally_ignored"], Removed: m["removed"], Net: m["net"],
			TimeToFix: r.fixTimes(p, ""),
		}
	}
	out := &reportingv1.GetOverviewReportResponse{ThisPeriod: period(r.period), ComparedPeriod: period(r.period.Previous())}
	name := func(f replay) string { return r.projects[f.ProjectID].Name }
	before := at(r.period.Previous()).backlog(name)[0]
	for _, p := range r.projects {
		open := at(r.period).backlog(func(f replay) string { return name(f) + "/" + f.Severity })[0]
		of := counts(map[string]int32{"low": open[p.Name+"/low"], "medium": open[p.Name+"/medium"], "high": open[p.Name+"/high"], "critical": open[p.Name+"/critical"]})
		if of.GetTotal() > 0 {
			out.Projects = append(out.Projects, &reportingv1.GetOverviewReportResponse_ProjectCounts{ProjectId: p.ID, Name: p.Name, Open: of, OpenBefore: before[p.Name]})
		}
	}
	slices.SortFunc(out.GetProjects(), func(a, b *reportingv1.GetOverviewReportResponse_ProjectCounts) int {
		return cmp.Or(cmp.Compare(b.GetOpen().GetTotal(), a.GetOpen().GetTotal()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// The overview of newAcme, computed manually: open before the period are a high finding and a library; the library's
// project has no primary branch.
func TestOverviewByHand(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newAcme(t, s, s.Tenant)
		request := &reportingv1.GetOverviewReportRequest{}
		if err := decode(may, request); err != nil {
			t.Fatal(err)
		}
		request.DeploymentId = s.DeploymentID
		got, err := reportingv1.NewOverviewReportsServiceClient(s.Conn).GetOverviewReport(s.Context(t, s.Token), request)
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, got, s.Do(t, s.Token, http.MethodPost, path(s.Tenant, reports["overview"]), may).Body)
		got.GetThisPeriod().TimePeriod, got.GetComparedPeriod().TimePeriod = nil, nil
		for _, p := range got.GetProjects() {
			p.ProjectId = 0
		}
		want := &reportingv1.GetOverviewReportResponse{}
		err = protojson.Unmarshal([]byte(`{
			"thisPeriod": {"open": {"low": 1, "medium": 1, "high": 1, "critical": 1, "total": 4}, "medianOpenAge": 19, "opened": 6, "fixed": 1, "ignored": 1,
				"provisionallyIgnored": 1, "removed": 1, "net": 2, "timeToFix": {"fixed": 1, "medianSeconds": 432000, "p90Seconds": 432000}},
			"comparedPeriod": {"open": {"high": 1, "critical": 1, "total": 2}, "medianOpenAge": 6, "opened": 2, "net": 2, "timeToFix": {}},
			"projects": [{"name": "acme/web", "open": {"low": 1, "medium": 1, "high": 1, "total": 3}, "openBefore": 1},
				{"name": "acme/api", "open": {"critical": 1, "total": 1}, "openBefore": 1}]}`), want)
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	})
}

// Any two periods can be compared, and the numbers of a period do not depend on what it is compared with.
func TestOverviewComparesAnyPeriods(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newAcme(t, s, s.Tenant)
		var first, second struct{ ThisPeriod, ComparedPeriod any }
		week := `{"filters":{"timePeriod":{"since":"2026-05-04T00:00:00Z","until":"2026-05-11T00:00:00Z"}},"compareWith":{"since":"2026-05-11T00:00:00Z","until":"2026-05-18T00:00:00Z"}}`
		read(t, s, s.Token, path(s.Tenant, reports["overview"]), week, &first)
		read(t, s, s.Token, path(s.Tenant, reports["overview"]),
			`{"filters":{"timePeriod":{"since":"2026-05-11T00:00:00Z","until":"2026-05-18T00:00:00Z"}},"compareWith":{"since":"2026-05-04T00:00:00Z","until":"2026-05-11T00:00:00Z"}}`, &second)
		if a, b := jsonOf(t, first.ThisPeriod), jsonOf(t, second.ComparedPeriod); a != b {
			t.Errorf("the first week is %s, compared %s", a, b)
		}
		if a, b := jsonOf(t, first.ComparedPeriod), jsonOf(t, second.ThisPeriod); a != b {
			t.Errorf("the second week is %s, compared %s", b, a)
		}
		answer := s.Do(t, s.Token, http.MethodPost, path(s.Tenant, reports["overview"]),
			`{"compareWith":{"since":"2026-05-18T00:00:00Z","until":"2026-05-11T00:00:00Z"}}`)
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "compareWith") {
			t.Errorf("a period that ends before it begins: %d %s", answer.Status, answer.Body)
		}
	})
}

func jsonOf(t testing.TB, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
