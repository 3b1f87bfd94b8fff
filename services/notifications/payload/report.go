package payload

import (
	"fmt"
	"strings"
	"time"

	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
)

// reportKey is the only key of a report on a schedule.
const reportKey = "palisade_report"

// Report is a report on a schedule.
type Report struct {
	DeploymentID int64
	// Name is the name of the rule that sends it.
	Name     string
	Overview *reportingv1.GetOverviewReportResponse
	// Zone is the time zone of the schedule, for the dates in the text.
	Zone *time.Location
	// Link leads to the same numbers in the console.
	Link   string
	SentAt time.Time
	// TenantName is the slug of the deployment.
	TenantName string
}

// Body is the body of the message: one object. The contract has no such message.
func (r Report) Body() []byte {
	wrapper := openObject(nil)
	wrapper.key(reportKey)
	o := openObject(wrapper.out)
	o.number("deployment_id", r.DeploymentID)
	o.text("name", r.Name)
	o.text("link", r.Link)
	o.key("report")
	o.out = r.Overview.AppendJSON(o.out)
	o.text("title", r.title())
	o.text("message", r.text())
	o.text("html", r.html())
	o.text("sent_at", formatTime(r.SentAt))
	o.text("tenant_name", r.TenantName)
	wrapper.out = o.close()
	return wrapper.close()
}

func (r Report) title() string {
	now, before := r.Overview.GetThisPeriod().GetOpen().GetTotal(), r.Overview.GetComparedPeriod().GetOpen().GetTotal()
	return fmt.Sprintf("%s: %d open findings (%s)", oneLine(r.Name), now, change(now-before))
}

// change describes the difference to the period before.
func change(by int32) string {
	if by == 0 {
		return "as before"
	}
	return fmt.Sprintf("%+d", by)
}

// reportLine is a number of both periods.
type reportLine struct{ name, now, before string }

// lines are the numbers of the report, the same in the text and in the table.
func (r Report) lines() []reportLine {
	now, before := r.Overview.GetThisPeriod(), r.Overview.GetComparedPeriod()
	number := func(name string, of func(*reportingv1.GetOverviewReportResponse_Period) int32) reportLine {
		return reportLine{name, fmt.Sprint(of(now)), fmt.Sprint(of(before))}
	}
	type period = reportingv1.GetOverviewReportResponse_Period
	return []reportLine{
		number("Open at the end", func(p *period) int32 { return p.GetOpen().GetTotal() }),
		number("  critical", func(p *period) int32 { return p.GetOpen().GetCritical() }),
		number("  high", func(p *period) int32 { return p.GetOpen().GetHigh() }),
		number("  medium", func(p *period) int32 { return p.GetOpen().GetMedium() }),
		number("  low", func(p *period) int32 { return p.GetOpen().GetLow() }),
		number("Median open age in days", (*period).GetMedianOpenAge),
		number("Opened", (*period).GetOpened),
		number("Fixed", (*period).GetFixed),
		number("Ignored", func(p *period) int32 { return p.GetIgnored() + p.GetProvisionallyIgnored() }),
		number("Removed", (*period).GetRemoved),
		{"Median time to fix", fixTime(now.GetTimeToFix()), fixTime(before.GetTimeToFix())},
	}
}

// fixTime is a median in the two largest units.
func fixTime(t *reportingv1.TimeToFix) string {
	if t.GetFixed() == 0 {
		return "-"
	}
	d := time.Duration(t.GetMedianSeconds()) * time.Second
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d min", d/time.Minute)
}

// dates formats a period. Its last day is the one before the midnight that it ends with.
func (r Report) dates(p *reportingv1.TimePeriod) string {
	day := func(t time.Time) string { return t.In(r.Zone).Format("2 January 2006") }
	first, last := day(p.GetSince().AsTime()), day(p.GetUntil().AsTime().Add(-time.Second))
	if first == last {
		return first
	}
	return first + " to " + last
}

func (r Report) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, compared with %s (%s)\n\n", r.dates(r.Overview.GetThisPeriod().GetTimePeriod()),
		r.dates(r.Overview.GetComparedPeriod().GetTimePeriod()), r.Zone)
	for _, line := range r.lines() {
		fmt.Fprintf(&out, "%-24s %12s %12s\n", line.name, line.now, line.before)
	}
	if projects := r.Overview.GetProjects(); len(projects) > 0 {
		out.WriteString("\nProjects with the most open findings\n")
		for _, p := range projects {
			fmt.Fprintf(&out, "%6d (%s)  %s\n", p.GetOpen().GetTotal(), change(p.GetOpen().GetTotal()-p.GetOpenBefore()), oneLine(p.GetName()))
		}
	}
	fmt.Fprintf(&out, "\nThe same numbers, with charts: %s\n", r.Link)
	return out.String()
}
