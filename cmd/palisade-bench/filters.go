package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	// filterBar is the limit of the 95th percentile of any list, in milliseconds.
	filterBar = 50
	// worstShown is the number of slowest lists with a row of their own.
	worstShown = 5
)

// filterCase is a list with a combination of its documented parameters.
type filterCase struct {
	path string // below the deployments of the first API, or from /api/
	body string // of a POST
	wait sample // milliseconds, in request order
}

// singleFilters are the documented parameters of the findings list, one at a time.
var singleFilters = []string{
	"", "status=open", "status=ignored", "status=fixed", "status=reviewing", "severities=critical", "severities=low,medium",
	"repos=bench/project-07", "repository_ids=1", "repository_ids=1,2&status=open", "repos=bench/project-01&repos=bench/project-02", "repos=bench/none", "ref=main", "ref=release",
	"ref=_default", "ref=nothing", "policies=rule-board-block", "policies=rule-board-audit", "rules=go.lang.security.injection.rule-007",
	"rules=nothing", "categories=security", "categories=nothing", "confidence=high", "confidence=low", "autotriage_verdict=true_positive",
	"component_tags=payments", "click_to_fix_pr_state=open", "click_to_fix_pr_state=merged", "dedup=true", "since=4e9", "since=1",
	"status=ignored&triage_reasons=false_positive", "issue_type=sca", "issue_type=ai_sast", "issue_type=sca&exposures=reachable",
	"issue_type=sca&exposures=unreachable,unknown", "issue_type=sca&transitivities=direct", "issue_type=sca&is_malicious=true",
	"issue_type=sca&is_malicious=false",
}

// pairedFilters are combined in pairs: combinations that people use, and that no single index serves.
var pairedFilters = []string{
	"status=open", "severities=critical", "repos=bench/project-07", "ref=main", "rules=go.lang.security.injection.rule-007",
	"confidence=high", "policies=rule-board-block", "dedup=true",
}

// rareFilters match few or no rows of many.
var rareFilters = []string{
	"status=fixed&severities=critical", "status=reviewing&severities=low&dedup=true", "repos=bench/project-07&rules=nothing",
	"status=open&component_tags=payments&severities=critical", "status=ignored&confidence=high&severities=high&ref=release",
	"autotriage_verdict=false_positive&status=open&repos=bench/project-03", "page=40", "page=40&status=open&severities=high", "page_size=3000&page=3",
	"page_size=3000&status=open&severities=critical",
}

// filterCases returns all measured lists.
func filterCases(deploymentID int64) []*filterCase {
	var list []*filterCase
	findings := func(query string) {
		if !strings.Contains(query, "page_size") {
			query = "page_size=100&" + query
		}
		list = append(list, &filterCase{path: "/" + deployment + "/findings?" + strings.TrimSuffix(query, "&")})
	}
	for _, query := range slices.Concat(singleFilters, rareFilters) {
		findings(query)
	}
	for i, one := range pairedFilters {
		for _, other := range pairedFilters[i+1:] {
			findings(one + "&" + other)
		}
	}
	id := fmt.Sprintf("/%d", deploymentID)
	return append(list,
		&filterCase{path: "/" + deployment + "/projects?page_size=100"},
		&filterCase{path: id + "/secrets?limit=100"},
		&filterCase{path: id + "/secrets?limit=100&status=FINDING_STATUS_OPEN"},
		&filterCase{path: id + "/secrets?limit=100&status=FINDING_STATUS_FIXED"},
		&filterCase{path: id + "/secrets?limit=100&severity=SEVERITY_HIGH&since=2020-01-01T00:00:00Z"},
		&filterCase{path: id + "/secrets?limit=100&validation_state=VALIDATION_STATE_CONFIRMED_VALID&repo=bench/project-07"},
		&filterCase{path: id + "/scans/search", body: `{"limit":100}`},
		&filterCase{path: id + "/scans/search", body: `{"limit":100,"branch":"refs/heads/release"}`},
		&filterCase{path: id + "/scans/search", body: `{"limit":100,"branch":"nothing"}`},
		&filterCase{path: id + "/scans/search", body: `{"limit":100,"products":["PRODUCT_SAST"],"statuses":["SCAN_STATUS_COMPLETED"],"is_full_scan":true}`},
		&filterCase{path: id + "/scans/search", body: `{"limit":100,"repository_id":"1","since":"2020-01-01T00:00:00Z","total_time":{"min":0,"max":1e6}}`},
	)
}

// measureFilters requests each list of findings, projects, secrets and scans.
func (b *bench) measureFilters(ctx context.Context) ([]row, error) {
	deploymentID, err := b.deploymentID(ctx)
	if err != nil {
		return nil, err
	}
	return b.measureLists(ctx, "slowest list of findings, projects, secrets or scans", filterBar, filterCases(deploymentID))
}

// deploymentID returns the id of the measured deployment.
func (b *bench) deploymentID(ctx context.Context) (id int64, err error) {
	return id, b.db.QueryRowContext(ctx, "SELECT MIN(id) FROM deployments").Scan(&id)
}

// askLists requests each list repeatedly, in turns, and sorts the slowest first.
func (b *bench) askLists(ctx context.Context, c *client, requests int, cases []*filterCase) error {
	for n := range requests {
		if n%5 == 0 {
			b.progress("lists, %d of %d requests each", n, requests)
		}
		for _, one := range cases {
			began := time.Now()
			if err := c.list(ctx, one); err != nil {
				return fmt.Errorf("%s: %w", one.name(), err)
			}
			one.wait = append(one.wait, micros(time.Since(began))/1000)
		}
	}
	slices.SortFunc(cases, func(a, b *filterCase) int { return cmp.Compare(b.p95(), a.p95()) })
	return nil
}

// measureLists reports the slowest lists.
func (b *bench) measureLists(ctx context.Context, what string, limit float64, cases []*filterCase) ([]row, error) {
	if err := b.askLists(ctx, b.client, b.listRequests, cases); err != nil {
		return nil, err
	}
	over := 0
	for _, c := range cases {
		if c.p95() > limit {
			over++
		}
	}
	// The 95th percentile of twenty requests excludes one, possibly the first, which has cold caches.
	cold := slices.MaxFunc(cases, func(a, b *filterCase) int { return cmp.Compare(a.wait[0], b.wait[0]) })
	rows := []row{{
		what: what + ": p95", value: sample{cases[0].p95()}, unit: millis, bar: within(limit, "ms"),
		note: fmt.Sprintf("of %d lists, each %d times; %d are over the bar; half of them are below %.1f ms; slowest first request: %.1f ms, %s",
			len(cases), b.listRequests, over, cases[len(cases)/2].p95(), cold.wait[0], cold.name()),
	}}
	for _, c := range cases[:min(worstShown, len(cases))] {
		rows = append(rows, row{what: "list: " + c.name(), value: sample{c.p95()}, unit: millis, note: fmt.Sprintf("p95; first request %.1f ms", c.wait[0])})
	}
	return rows, nil
}

// name returns the parameters of the list, without the common ones.
func (c *filterCase) name() string {
	return strings.TrimPrefix(strings.ReplaceAll(c.path, "page_size=100&", ""), "/") + c.body
}

func (c *filterCase) p95() float64 {
	sorted := slices.Sorted(slices.Values(c.wait))
	return sorted[(len(sorted)*95+99)/100-1]
}

// list requests a list and reads the whole response.
func (c *client) list(ctx context.Context, f *filterCase) error {
	method, body := "GET", io.Reader(nil)
	if f.body != "" {
		method, body = "POST", strings.NewReader(f.body)
	}
	path := f.path
	if !strings.HasPrefix(path, "/api/") {
		path = "/api/v1/deployments" + path
	}
	response, err := c.send(ctx, method, path, "", body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
