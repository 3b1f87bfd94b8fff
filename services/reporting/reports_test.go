package reporting_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// reports maps golden file names to paths below /api/reporting/{deploymentId}.
var reports = map[string]string{
	"median_age_by_product": "reports/median-open-age/by-product", "median_age_by_severity": "reports/median-open-age/by-severity",
	"backlog_by_product": "reports/backlog/by-product", "backlog_by_rule": "reports/backlog/by-rule", "backlog_by_severity": "reports/backlog/by-severity",
	"activity": "reports/activity", "by_project_and_product": "reports/by-project/by-product", "by_project_and_severity": "reports/by-project/by-severity",
	"funnel": "reports/funnel", "guardrails_activity": "reports/guardrails-activity", "guardrails_adoption": "reports/guardrails-adoption",
	"overview": "reports/overview", "time_to_fix": "reports/time-to-fix",
}

func path(of apitest.Tenant, report string) string {
	return fmt.Sprintf("/api/reporting/%d/%s", of.DeploymentID, report)
}

// newAcme is a deployment of two projects with numbers small enough to count manually.
func newAcme(t testing.TB, s *apitest.Server, of apitest.Tenant) *world {
	t.Helper()
	w := newWorld(t, s, of)
	w.project("acme/web", main)
	w.project("acme/api", "")
	sast := func(severity, changes string) *fact {
		return &fact{project: "acme/web", ref: main, rule: "gosec/sqli", kind: "sast", severity: severity, changes: history(t, changes)}
	}
	library := &fact{project: "acme/api", ref: dev, rule: "trivy/old-lib", kind: "sca", severity: "critical", exposure: "reachable", changes: history(t, "-10.5d open")}
	key := &fact{project: "acme/api", ref: main, rule: "gitleaks/aws-key", kind: "secrets", severity: "high", validation: "invalid", changes: history(t, "1d open,2d provisionally_ignored")}
	noted := sast("low", "9d open,10d reviewing")
	noted.verdict = "false_positive"
	inPull := sast("high", "3d open,4d fixed")
	inPull.ref, inPull.policy = pull, "rule-board-block"
	silent := sast("high", "8d open,9d removed")
	silent.ref = pull
	w.add(sast("high", "-3d open"), sast("medium", "0d open,5d fixed,12d open"), sast("medium", "2d open,3d ignored"), sast("low", "2d open,20d removed"),
		library, key, noted, inPull, silent)
	return w
}

// may is three weeks and a day, by week.
const may = `{"filters":{"timePeriod":{"since":"2026-05-04T00:00:00Z","until":"2026-05-26T00:00:00Z"},"timeBucketSize":"TIME_BUCKET_SIZE_WEEK"}}`

func TestGoldenReports(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newAcme(t, s, s.Tenant)
		for name, report := range reports {
			answer := s.Do(t, s.Token, http.MethodPost, path(s.Tenant, report), may)
			if answer.Status != http.StatusOK {
				t.Fatalf("%s: %d %s", name, answer.Status, answer.Body)
			}
			apitest.Golden(t, name, answer.Body)
		}
		answer := s.Do(t, s.Token, http.MethodPost, path(s.Tenant, "findings"),
			`{"reportType":"REPORT_TYPE_BACKLOG_ACTIVITY","findingState":"AGGREGATE_ISSUE_STATE_FIXED","limit":1,`+may[1:])
		if answer.Status != http.StatusOK {
			t.Fatalf("findings: %d %s", answer.Status, answer.Body)
		}
		apitest.Golden(t, "findings", answer.Body)
		request := &reportingv1.GetMedianOpenAgeByProductReportRequest{}
		if err := decode(may, request); err != nil {
			t.Fatal(err)
		}
		request.DeploymentId = s.DeploymentID
		response, err := reportingv1.NewReportsServiceClient(s.Conn).GetMedianOpenAgeByProductReport(s.Context(t, s.Token), request)
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, s.Do(t, s.Token, http.MethodPost, path(s.Tenant, reports["median_age_by_product"]), may).Body)
	})
}

// The medians of newAcme, computed manually. Code is open since 3 days before the period; since day 0 (until day 5,
// again from day 12); since day 2 (until day 20); since day 9. SCA is open since 10 days and 12 hours before.
func TestMedianByHand(t *testing.T) {
	s := apitest.Start(t, nil)
	newAcme(t, s, s.Tenant)
	var got struct {
		Buckets []struct{ Code, Sca, Secrets int }
	}
	read(t, s, s.Token, path(s.Tenant, reports["median_age_by_product"]), may, &got)
	// Code on day 7: 10, 5. Day 14: 17, 2, 12, 5. Day 21: 24, 9, 12. Day 22: 25, 10, 13.
	want := "[{7 17 0} {8 24 0} {12 31 0} {13 32 0}]"
	if fmt.Sprint(got.Buckets) != want {
		t.Errorf("got %v, want %s", got.Buckets, want)
	}
}

// The mean of the two middle ages is exact before it becomes whole days, and buckets in the future are empty.
func TestMedianIsExact(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newWorld(t, s, s.Tenant)
		w.project("acme/web", main)
		for _, changes := range []string{"0.4d open", "1.4d open"} { // ages of 1.6 and 2.6 days on day 3
			w.add(&fact{project: "acme/web", ref: main, rule: "gosec/sqli", kind: "sast", severity: "low", changes: history(t, changes)})
		}
		now := time.Now().UTC().Truncate(24 * time.Hour)
		for _, c := range []struct {
			since, until time.Time
			want         string
		}{
			{time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 8, 0, 0, 0, 0, time.UTC), "[2 3]"},
			{now.AddDate(0, 0, 1), now.AddDate(0, 0, 3), "[0 0]"},
		} {
			since, until := c.since.Format(time.RFC3339), c.until.Format(time.RFC3339)
			body := fmt.Sprintf(`{"filters":{"timePeriod":{"since":%q,"until":%q},"timeBucketSize":"TIME_BUCKET_SIZE_DAY"}}`, since, until)
			product, severity := &reportingv1.GetMedianOpenAgeByProductReportRequest{}, &reportingv1.GetMedianOpenAgeBySeverityReportRequest{}
			if err := errors.Join(decode(body, product), decode(body, severity)); err != nil {
				t.Fatal(err)
			}
			product.DeploymentId, severity.DeploymentId = s.DeploymentID, s.DeploymentID
			client := reportingv1.NewReportsServiceClient(s.Conn)
			code, err := client.GetMedianOpenAgeByProductReport(s.Context(t, s.Token), product)
			if err != nil {
				t.Fatal(err)
			}
			low, err := client.GetMedianOpenAgeBySeverityReport(s.Context(t, s.Token), severity)
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, code, s.Do(t, s.Token, http.MethodPost, path(s.Tenant, reports["median_age_by_product"]), body).Body)
			apitest.Same(t, low, s.Do(t, s.Token, http.MethodPost, path(s.Tenant, reports["median_age_by_severity"]), body).Body)
			var byProduct, bySeverity []int32
			for i := range code.GetBuckets() {
				byProduct, bySeverity = append(byProduct, code.GetBuckets()[i].GetCode()), append(bySeverity, low.GetBuckets()[i].GetLow())
			}
			if fmt.Sprint(byProduct) != c.want || fmt.Sprint(bySeverity) != c.want {
				t.Errorf("%s to %s: %v and %v, want %s", since, until, byProduct, bySeverity, c.want)
			}
		}
		for _, report := range []string{"backlog_by_rule", "backlog_by_severity"} {
			body := fmt.Sprintf(`{"filters":{"timePeriod":{"since":%q,"until":%q}}}`, now.AddDate(0, 0, 1).Format(time.RFC3339), now.AddDate(0, 0, 3).Format(time.RFC3339))
			answer := s.Do(t, s.Token, http.MethodPost, path(s.Tenant, reports[report]), body)
			if answer.Status != http.StatusOK || strings.Contains(answer.Body, `"low":2`) || strings.Contains(answer.Body, "gosec") {
				t.Errorf("%s of the future: %d %s", report, answer.Status, answer.Body)
			}
		}
		futureIsEmpty(t, s, now)
	})
}

// futureIsEmpty requires the reports about the end of a period to be empty for a period in the future.
func futureIsEmpty(t *testing.T, s *apitest.Server, now time.Time) {
	t.Helper()
	period := &reportingv1.TimePeriod{Since: timestamppb.New(now.AddDate(0, 0, 1)), Until: timestamppb.New(now.AddDate(0, 0, 3))}
	filters, id := &reportingv1.ReportFilters{TimePeriod: period}, s.DeploymentID
	client, ctx := reportingv1.NewReportsServiceClient(s.Conn), s.Context(t, s.Token)
	product, err1 := client.GetFindingsByProjectAndProductReport(ctx, &reportingv1.GetFindingsByProjectAndProductReportRequest{DeploymentId: id, Filters: filters})
	severity, err2 := client.GetFindingsByProjectAndSeverityReport(ctx, &reportingv1.GetFindingsByProjectAndSeverityReportRequest{DeploymentId: id, Filters: filters})
	funnel, err3 := client.GetFindingsFunnelReport(ctx, &reportingv1.GetFindingsFunnelReportRequest{DeploymentId: id, Filters: filters})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if len(product.GetByProject()) != 0 || len(severity.GetByProject()) != 0 || funnel.GetAllFindings() != 0 || funnel.GetByProduct()["code"].GetAllFindings() != 0 {
		t.Errorf("of the future: %v %v %v", product, severity, funnel)
	}
	body := fmt.Sprintf(`{"filters":{"timePeriod":{"since":%q,"until":%q}}}`, period.Since.AsTime().Format(time.RFC3339), period.Until.AsTime().Format(time.RFC3339))
	for report, response := range map[string]proto.Message{"by_project_and_product": product, "by_project_and_severity": severity, "funnel": funnel} {
		apitest.Same(t, response, s.Do(t, s.Token, http.MethodPost, path(s.Tenant, reports[report]), body).Body)
	}
}

func read(t testing.TB, s *apitest.Server, token, path, body string, into any) {
	t.Helper()
	answer := s.Do(t, token, http.MethodPost, path, body)
	if answer.Status != http.StatusOK {
		t.Fatalf("POST %s: %d %s", path, answer.Status, answer.Body)
	}
	if err := json.Unmarshal([]byte(answer.Body), into); err != nil {
		t.Fatal(err)
	}
}

// The default period is the last 30 days, by day.
func TestDefaults(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newAcme(t, s, s.Tenant)
		var got struct {
			Buckets []struct{ Code, Sca, Secrets int }
		}
		for _, body := range []string{`{}`, `{"filters":{}}`, `{"filters":{"findingTypes":["FINDING_TYPE_UNSPECIFIED"],"timeBucketSize":"TIME_BUCKET_SIZE_UNSPECIFIED"}}`} {
			read(t, s, s.Token, path(s.Tenant, reports["backlog_by_product"]), body, &got)
			if n := len(got.Buckets); n != 31 || fmt.Sprint(got.Buckets[0]) != "{3 1 0}" || fmt.Sprint(got.Buckets[30]) != "{3 1 0}" {
				t.Errorf("%s: %d buckets: %v", body, n, got.Buckets)
			}
		}
		// The bucket of today ends now, and later buckets are empty.
		read(t, s, s.Token, path(s.Tenant, reports["backlog_by_product"]),
			`{"filters":{"timePeriod":{"since":"2026-05-01T00:00:00Z","until":"2056-05-01T00:00:00Z"},"timeBucketSize":"TIME_BUCKET_SIZE_MONTH"}}`, &got)
		today := (time.Now().UTC().Year()-2026)*12 + int(time.Now().UTC().Month()) - 5
		if n := len(got.Buckets); n != 360 || fmt.Sprint(got.Buckets[today]) != "{3 1 0}" || fmt.Sprint(got.Buckets[today+1]) != "{0 0 0}" || fmt.Sprint(got.Buckets[359]) != "{0 0 0}" {
			t.Errorf("%d buckets: %v", n, got.Buckets)
		}
	})
}

// The first bucket of the last 30 days begins slightly later than in the previous report: it counts as the same bucket.
func TestFindingsOfTheFirstBucket(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newAcme(t, s, s.Tenant)
		var report struct {
			Buckets []struct {
				TimePeriod struct{ Since, Until time.Time }
				Code, Sca  int
			}
		}
		read(t, s, s.Token, path(s.Tenant, reports["backlog_by_product"]), `{}`, &report)
		first := report.Buckets[0]
		for _, c := range []struct {
			start  time.Time
			status int
		}{
			{first.TimePeriod.Since, http.StatusOK}, {first.TimePeriod.Since.AddDate(0, 0, -1), http.StatusBadRequest},
			{first.TimePeriod.Until, http.StatusOK}, {first.TimePeriod.Until.Add(time.Hour), http.StatusBadRequest},
		} {
			body := fmt.Sprintf(`{"reportType":"REPORT_TYPE_OPEN_BACKLOG","bucketStart":%q}`, c.start.Format(time.RFC3339Nano))
			answer := s.Do(t, s.Token, http.MethodPost, path(s.Tenant, "findings"), body)
			total := fmt.Sprintf(`"total":%d,`, first.Code+first.Sca)
			if answer.Status != c.status || c.status == http.StatusOK && !strings.Contains(answer.Body, total) {
				t.Errorf("%s: %d %s, want %d and %s", body, answer.Status, answer.Body, c.status, total)
			}
		}
	})
}

var requestID = regexp.MustCompile(`"requestId":"[^"]*"`)

func TestRefused(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		age, list := path(s.Tenant, reports["median_age_by_product"]), path(s.Tenant, "findings")
		var all strings.Builder
		for _, c := range []struct {
			path, body, field string
		}{
			{age, `{"filters":{"timePeriod":{"since":"2026-05-02T00:00:00Z","until":"2026-05-01T00:00:00Z"}}}`, "filters.timePeriod"},
			{age, `{"filters":{"timePeriod":{"since":"2026-05-01T00:00:00Z","until":"2026-05-01T00:00:00Z"}}}`, "filters.timePeriod"},
			{age, `{"filters":{"timePeriod":{"since":"2020-05-01T00:00:00Z","until":"2026-05-01T00:00:00Z"},"timeBucketSize":"TIME_BUCKET_SIZE_DAY"}}`, "400 buckets"},
			{age, `{"filters":{"timePeriod":{"until":"2126-05-01T00:00:00Z"}}}`, "until"},
			{age, `{"filters":{"timePeriod":{"since":"yesterday"}}}`, "since"},
			{age, `{"filters":{"timeBucketSize":"TIME_BUCKET_SIZE_YEAR"}}`, "TIME_BUCKET_SIZE_YEAR"},
			{age, `{"filters":{"findingSeverities":["FINDING_SEVERITY_HUGE"]}}`, "FINDING_SEVERITY_HUGE"},
			{age, `{"filters":{"aiVerdicts":[9]}}`, "filters.aiVerdicts"},
			{age, `{"filters":{"projectIds":["x"]}}`, "projectIds"},
			{age, `{"filters":{"projectIds":["-1"]}}`, "filters.projectIds"},
			{age, `{"filters":[]}`, "filters"},
			{list, `{}`, "reportType"},
			{list, `{"reportType":"REPORT_TYPE_PROJECT","limit":-1}`, "limit"},
			{list, `{"reportType":"REPORT_TYPE_PROJECT","limit":1001}`, "limit"},
			{list, `{"reportType":"REPORT_TYPE_PROJECT","cursor":"nonsense"}`, "cursor"},
			{list, `{"reportType":"REPORT_TYPE_OPEN_BACKLOG","bucketStart":"2026-05-04T10:00:00Z"}`, "bucketStart"},
			{list, `{"reportType":"REPORT_TYPE_GUARDRAILS_ACTIVITY","guardrailsState":"gone"}`, "guardrailsState"},
		} {
			answer := s.Do(t, s.Token, http.MethodPost, c.path, c.body)
			if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, c.field) {
				t.Errorf("%s: %d %s, want 400 about %s", c.body, answer.Status, answer.Body, c.field)
			}
			all.WriteString(requestID.ReplaceAllString(answer.Body, `"requestId":""`) + "\n")
		}
		if strings.Contains(all.String(), "unknown error") {
			t.Error(all.String())
		}
	})
}

// Another tenant's deployment looks like a missing one, and its findings count nowhere.
func TestOtherTenant(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		newAcme(t, s, s.Tenant)
		rival := s.AddTenant(t, "rival")
		missing := apitest.Tenant{DeploymentID: 999_999}
		for name, report := range reports {
			theirs := s.Do(t, rival.Token, http.MethodPost, path(s.Tenant, report), may)
			none := s.Do(t, rival.Token, http.MethodPost, path(missing, report), may)
			if theirs.Status != http.StatusNotFound || none.Status != http.StatusNotFound {
				t.Errorf("%s: %d %d, want 404", name, theirs.Status, none.Status)
			}
			own := s.Do(t, rival.Token, http.MethodPost, path(rival, report), may)
			if own.Status != http.StatusOK || regexp.MustCompile(`":[1-9]`).MatchString(own.Body) {
				t.Errorf("%s of an empty deployment: %d %s", name, own.Status, own.Body)
			}
		}
		ids := fmt.Sprintf(`{"reportType":"REPORT_TYPE_PROJECT","filters":{"projectIds":["%d"]}}`, s.Store.Reader.Project.Query().FirstIDX(s.System(t)))
		if answer := s.Do(t, rival.Token, http.MethodPost, path(rival, "findings"), ids); answer.Status != http.StatusOK || !strings.Contains(answer.Body, `"findings":[]`) {
			t.Errorf("of another's project: %d %s", answer.Status, answer.Body)
		}
	})
}

// A caller limited to teams gets the numbers of their projects, with any filter.
func TestTeamsLimitReports(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newAcme(t, s, s.Tenant)
		member := s.AddUser(t, s.Tenant, "mia@acme.test", access.RoleMember)
		stranger := s.AddUser(t, s.Tenant, "sam@acme.test", access.RoleMember)
		w.team("api", "", "acme/api")
		w.member("mia@acme.test", "api")
		backlog := path(s.Tenant, reports["backlog_by_product"])
		for _, c := range []struct{ who, token, body, want string }{
			{"administrator", s.Token, may, "{3 1 0}"},
			{"member", member, may, "{0 1 0}"},
			{"member", member, strings.Replace(may, `"filters":{`, `"filters":{"projects":["acme/web"],`, 1), "{0 0 0}"},
			{"member", member, strings.Replace(may, `"filters":{`, `"filters":{"teams":["api"],`, 1), "{0 1 0}"},
			{"stranger", stranger, may, "{0 0 0}"},
		} {
			var got struct {
				Buckets []struct{ Code, Sca, Secrets int }
			}
			read(t, s, c.token, backlog, c.body, &got)
			if last := fmt.Sprint(got.Buckets[len(got.Buckets)-1]); last != c.want {
				t.Errorf("%s %s: got %s, want %s", c.who, c.body, last, c.want)
			}
		}
		var list struct{ Total, TotalSca int }
		read(t, s, member, path(s.Tenant, "findings"), `{"reportType":"REPORT_TYPE_PROJECT",`+may[1:], &list)
		if list.Total != 1 || list.TotalSca != 1 {
			t.Errorf("the member's findings: %+v", list)
		}
	})
}
