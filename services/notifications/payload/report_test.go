package payload

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
)

func sampleReport(project string) Report {
	day := func(n int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 5, n, 0, 0, 0, 0, time.UTC))
	}
	open := func(critical, low int32) *reportingv1.SeverityCounts {
		return &reportingv1.SeverityCounts{Critical: critical, Low: low, Total: critical + low}
	}
	return Report{
		DeploymentID: 1, Name: "Weekly\nreport", Zone: time.UTC, TenantName: "acme", SentAt: day(18).AsTime(),
		Link: `https://palisade.acme.test/console/acme/overview?a=1&b="2"`,
		Overview: &reportingv1.GetOverviewReportResponse{
			ThisPeriod: &reportingv1.GetOverviewReportResponse_Period{
				TimePeriod: &reportingv1.TimePeriod{Since: day(11), Until: day(18)}, Open: open(2, 5), Fixed: 3, Net: 1,
				TimeToFix: &reportingv1.TimeToFix{Fixed: 3, MedianSeconds: 2*86400 + 5*3600},
			},
			ComparedPeriod: &reportingv1.GetOverviewReportResponse_Period{TimePeriod: &reportingv1.TimePeriod{Since: day(10), Until: day(11)}, Open: open(1, 9)},
			Projects:       []*reportingv1.GetOverviewReportResponse_ProjectCounts{{Name: project, Open: open(2, 5), OpenBefore: 10}},
		},
	}
}

func TestReportTexts(t *testing.T) {
	t.Parallel()
	body := sampleReport("acme/web").Body()
	subject, text := Describe(body)
	if subject != "Weekly report: 7 open findings (-3)" {
		t.Errorf("subject %q", subject)
	}
	table := HTML(body)
	for _, want := range []string{"11 May 2026 to 17 May 2026", "10 May 2026", "2 d 5 h", "acme/web", "Median time to fix"} {
		if !strings.Contains(text, want) || !strings.Contains(table, want) {
			t.Errorf("%q is missing in one of\n%s\n%s", want, text, table)
		}
	}
	if !strings.Contains(text, "(-3)  acme/web") || !strings.Contains(text, `overview?a=1&b="2"`) || !strings.Contains(table, `href="https://palisade.acme.test/console/acme/overview?a=1&amp;b=&#34;2&#34;"`) {
		t.Errorf("change or link:\n%s\n%s", text, table)
	}
}

// Names of projects and rules are texts of strangers.
func TestReportEscapes(t *testing.T) {
	t.Parallel()
	report := sampleReport(`</table><img src=x onerror=alert(1)>`)
	report.Name = `"><script>alert(1)</script>`
	table := HTML(report.Body())
	if table == "" || strings.Contains(table, "<img") || strings.Contains(table, "<script") || strings.Count(table, "</table>") != 2 {
		t.Errorf("not escaped: %s", table)
	}
}

func TestOnlyReportsHaveHTML(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`[]`, `{"palisade_message":{"html":"<b>x</b>"}}`, `{"palisade_report":{"html":`, ``} {
		if html := HTML([]byte(body)); html != "" {
			t.Errorf("%s has %s", body, html)
		}
	}
}
