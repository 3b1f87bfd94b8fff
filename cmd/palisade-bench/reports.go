package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Limits of reports over a million findings, as times instead of ratios, because people wait for them.
const (
	warmBar    = 20   // milliseconds of a report
	coldBar    = 2000 // the first report after a start, which reads all findings
	advanceBar = 50   // additional time of a report after an upload of advanceResults
)

const (
	// reportProjects is the number of projects in the store for reports, each with findings on its main branch and on
	// another.
	reportProjects = 200
	// advanceResults is the number of results uploaded between two reports.
	advanceResults = 5000
	// warmRequests is the number of requests per report and round; their median counts.
	warmRequests = 9
)

// halfYear is 26 weeks in weekly buckets. Histories cover the two years before its end.
const halfYear = `"timePeriod":{"since":"2026-01-05T00:00:00Z","until":"2026-07-06T00:00:00Z"},"timeBucketSize":"TIME_BUCKET_SIZE_WEEK"`

// aReport is a measured report.
type aReport struct{ what, path, body string }

func measuredReports() []aReport {
	few := make([]string, 20)
	for i := range few {
		few[i] = fmt.Sprintf(`"bench/report-%03d"`, i)
	}
	filters := `{"filters":{` + halfYear + `}}`
	return []aReport{
		{"median open age by product, 26 weeks", "reports/median-open-age/by-product", filters},
		{"median open age, 20 projects", "reports/median-open-age/by-product", `{"filters":{"projects":[` + strings.Join(few, ",") + `],` + halfYear + `}}`},
		{"median open age, high and critical", "reports/median-open-age/by-severity", `{"filters":{"findingSeverities":["FINDING_SEVERITY_HIGH","FINDING_SEVERITY_CRITICAL"],` + halfYear + `}}`},
		{"backlog by rule, 26 weeks", "reports/backlog/by-rule", filters},
		{"activity, 26 weeks", "reports/activity", filters},
		{"by project and product", "reports/by-project/by-product", filters},
		{"funnel", "reports/funnel", filters},
		{"guardrails activity, 26 weeks", "reports/guardrails-activity", filters},
	}
}

// reportFigures has the figures of the rounds, in milliseconds.
type reportFigures struct {
	cold, advance sample
	warm          []sample // of measuredReports
}

// measureReports creates a separate store. In each round it starts a server on it, and requests a first report, each
// report several times, and one after an upload. It supports only SQLite: except for the first read, reports are
// computed in memory.
func (b *bench) measureReports(ctx context.Context) (rows []row, err error) {
	if b.reportFindings == 0 || b.db.postgres() {
		return nil, nil
	}
	data := filepath.Join(b.dir, "reports")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(data)) }()
	settings := childSettings{Data: data, Token: b.token}
	b.progress("reports: fill %d findings", b.reportFindings)
	if err := b.fillStore(ctx, settings, func(db *database) error { return b.fillReports(ctx, db) }); err != nil {
		return nil, err
	}
	figures := &reportFigures{warm: make([]sample, len(measuredReports()))}
	for n := range b.rounds {
		b.progress("reports, round %d of %d", n+1, b.rounds)
		if err := b.reportRound(ctx, settings, n, figures); err != nil {
			return nil, err
		}
	}
	return figures.rows(b.reportFindings), nil
}

func (b *bench) reportRound(ctx context.Context, settings childSettings, n int, figures *reportFigures) (err error) {
	server, err := start(ctx, rolePalisade, settings, b.stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	c := newClient(server.ready.HTTP, b.token, 1)
	defer c.close()
	reports := measuredReports()
	cold, err := c.report(ctx, reports[0])
	if err != nil {
		return err
	}
	figures.cold = append(figures.cold, cold)
	for i, r := range reports {
		var took sample
		for range warmRequests {
			one, err := c.report(ctx, r)
			if err != nil {
				return err
			}
			took = append(took, one)
		}
		figures.warm[i] = append(figures.warm[i], took.median())
	}
	report, err := makeReport(uint64(5000+n), advanceResults)
	if err != nil {
		return err
	}
	answer, err := c.upload(ctx, "bench/report-000", "main", fmt.Sprintf("round-%d", n), report)
	if err != nil {
		return err
	}
	if answer.Created != advanceResults {
		return fmt.Errorf("upload between reports: %+v", answer)
	}
	after, err := c.report(ctx, reports[0])
	if err != nil {
		return err
	}
	figures.advance = append(figures.advance, max(0, after-figures.warm[0][n]))
	return nil
}

// report requests a report and returns its duration in milliseconds.
func (c *client) report(ctx context.Context, r aReport) (float64, error) {
	began := time.Now()
	response, err := c.send(ctx, "POST", "/api/reporting/1/"+r.path, "", strings.NewReader(r.body))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return micros(time.Since(began)) / 1000, err
}

func (f *reportFigures) rows(findings int) []row {
	rows := []row{{
		what: "first report, cold", value: f.cold, unit: millis, bar: within(coldBar, "ms"), note: fmt.Sprintf("reads %d findings and their events", findings),
	}}
	for i, r := range measuredReports() {
		rows = append(rows, row{what: r.what, value: f.warm[i], unit: millis, bar: within(warmBar, "ms")})
	}
	return append(rows, row{
		what: fmt.Sprintf("report after an upload of %d", advanceResults), value: f.advance, unit: millis, bar: within(advanceBar, "ms"),
		note: "longer than before it",
	})
}
