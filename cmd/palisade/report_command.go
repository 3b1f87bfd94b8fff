package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// reportKind is a report of the API that the command supports.
type reportKind struct {
	name, short, unit string
	by                []string            // values of --by, the default first; none for reports of one kind
	path              map[string]string   // by value of --by, path below /reports/
	series            map[string][]string // by value of --by, fields of a bucket; none: the map "open"
}

var (
	productFields  = []string{"code", "sca", "secrets"}
	severityFields = []string{"low", "medium", "high", "critical"}
	reportKinds    = []reportKind{
		{
			"median-open-age", "Median age of open findings, in whole days, at the end of each bucket", "days", []string{"product", "severity"},
			map[string]string{"product": "median-open-age/by-product", "severity": "median-open-age/by-severity"},
			map[string][]string{"product": productFields, "severity": severityFields},
		},
		{
			"backlog", "Number of open findings at the end of each bucket", "open findings", []string{"product", "severity", "rule"},
			map[string]string{"product": "backlog/by-product", "severity": "backlog/by-severity", "rule": "backlog/by-rule"},
			map[string][]string{"product": productFields, "severity": severityFields},
		},
		{
			"activity", "Findings that entered and left the backlog in each bucket", "findings", nil, map[string]string{"": "activity"},
			map[string][]string{"": {"opened", "ignored", "fixed", "removed", "provisionallyIgnored", "net"}},
		},
		{
			"funnel", "Open findings, and how many remain after removing less urgent ones", "open findings", nil, map[string]string{"": "funnel"},
			map[string][]string{"": {"allFindings", "possiblyExploitable", "internetExposed", "priorityFindings"}},
		},
	}
)

// reportOptions are the flags of a report.
type reportOptions struct {
	client               clientFlags
	output, by           string
	since, until, bucket string
	lists                map[string]*[]string // values by filter field
}

// reportLists are the list filters.
var reportLists = []struct{ flag, field, prefix, doc string }{
	{"project", "projects", "", "names of projects, case-sensitive"},
	{"project-id", "projectIds", "", "ids of projects"},
	{"tag", "tags", "", "tags of projects"},
	{"team", "teams", "", "names or ids of teams, each with the teams below it"},
	{"rule", "ruleIds", "", "names or ids of rules"},
	{"category", "findingCategories", "", "categories of rules"},
	{"type", "findingTypes", "FINDING_TYPE_", "code, sca, secrets"},
	{"severity", "findingSeverities", "FINDING_SEVERITY_", "low, medium, high, critical"},
	{"verdict", "aiVerdicts", "VERDICT_", "true_positive, false_positive, no_verdict"},
}

func newReport(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Show how findings change over time, as a chart, table, CSV or JSON",
		Long: `Reports are computed from the history of the findings: a past day does not change later. For a project with a
primary branch, only that branch counts. The default output is a chart on a terminal, and a table elsewhere.`,
		Example: `  palisade report median-open-age --by severity --since 90d --bucket week
  palisade report backlog --by rule --project acme/web -o csv > backlog.csv
  palisade report activity --since 2026-05-01 --until 2026-06-01 -o json
  palisade report funnel --team platform`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, kind := range reportKinds {
		cmd.AddCommand(newReportKind(std, kind))
	}
	return cmd
}

func newReportKind(std streams, kind reportKind) *cobra.Command {
	o := reportOptions{lists: map[string]*[]string{}}
	cmd := &cobra.Command{
		Use: kind.name, Short: kind.short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, std, kind) },
	}
	o.client.add(cmd)
	flags := cmd.Flags()
	output := "chart"
	if !isTerminal(std.out) || kind.name == "funnel" {
		output = "table"
	}
	flags.StringVarP(&o.output, "output", "o", output, "chart, table, csv or json")
	if len(kind.by) > 0 {
		flags.StringVar(&o.by, "by", kind.by[0], strings.Join(kind.by, ", "))
	}
	flags.StringVar(&o.since, "since", "", "start: 90d, 2026-05-04, 2026-05-04T10:20:30Z (default 30 days before the end)")
	flags.StringVar(&o.until, "until", "", "end (default now)")
	flags.StringVar(&o.bucket, "bucket", "", "day, week or month (default by the length of the period)")
	for _, list := range reportLists {
		o.lists[list.field] = flags.StringSlice(list.flag, nil, list.doc)
	}
	return cmd
}

func (o *reportOptions) run(cmd *cobra.Command, std streams, kind reportKind) error {
	if err := oneOf("output", o.output, "chart", "table", "csv", "json"); err != nil {
		return err
	}
	if len(kind.by) > 0 {
		if err := oneOf("by", o.by, kind.by...); err != nil {
			return err
		}
	}
	body, err := o.body(std.now())
	if err != nil {
		return err
	}
	c, err := o.client.newClient(std)
	if err != nil {
		return err
	}
	id, err := c.deploymentID(cmd.Context(), o.client.deployment)
	if err != nil {
		return err
	}
	path := append([]string{"api", "reporting", id, "reports"}, strings.Split(kind.path[o.by], "/")...)
	req, err := c.request(cmd.Context(), http.MethodPost, nil, bytes.NewReader(body), path...)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	var answer json.RawMessage
	if err := c.do(req, &answer); err != nil {
		return err
	}
	if o.output == "json" {
		return printJSON(std.out, answer)
	}
	t, err := readReport(answer, kind.series[o.by])
	if err != nil {
		return err
	}
	switch o.output {
	case "csv":
		return t.writeCSV(std.out)
	case "chart":
		if kind.name != "funnel" {
			return t.draw(std, kind.unit)
		}
	}
	return t.writeTable(std.out)
}

// body returns the request. Enum words are the API's in lower case without their prefix; the server validates them.
func (o *reportOptions) body(now time.Time) ([]byte, error) {
	period := map[string]string{}
	for _, end := range []struct{ flag, text string }{{"since", o.since}, {"until", o.until}} {
		if end.text == "" {
			continue
		}
		epoch, err := parseMoment(end.text, now)
		if err != nil {
			return nil, usagef("--%s: got %q, want a time ago (7d, 12h), a date (2026-05-04), a time (2026-05-04T10:20:30Z) or epoch seconds", end.flag, printable(end.text))
		}
		seconds, err := strconv.ParseFloat(epoch, 64)
		if err != nil {
			return nil, usagef("--%s: got %q, want epoch seconds", end.flag, printable(end.text))
		}
		period[end.flag] = time.UnixMicro(int64(seconds * 1e6)).UTC().Format(time.RFC3339Nano)
	}
	filters := map[string]any{"timePeriod": period}
	if o.bucket != "" {
		if err := oneOf("bucket", o.bucket, "day", "week", "month"); err != nil {
			return nil, err
		}
		filters["timeBucketSize"] = "TIME_BUCKET_SIZE_" + strings.ToUpper(o.bucket)
	}
	for _, list := range reportLists {
		words := slices.Clone(*o.lists[list.field])
		if len(words) == 0 {
			continue
		}
		if list.prefix != "" {
			for i, word := range words {
				words[i] = list.prefix + strings.ToUpper(word)
			}
		}
		filters[list.field] = words
	}
	return json.Marshal(map[string]any{"filters": filters})
}
