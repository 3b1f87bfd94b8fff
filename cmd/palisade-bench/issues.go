package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// numbersBar is the limit of the 95th percentile of numbers, filter values and groups, in milliseconds.
const numbersBar = 100

// issueFilters are fields of the filter of issues, each with values that select many or few findings.
var issueFilters = []string{
	`"tab":"ISSUE_TAB_OPEN"`, `"severities":["SEVERITY_CRITICAL","SEVERITY_LOW"]`, `"repositoryNames":["bench/project-07"]`, `"refs":["main"]`,
	`"rules":["go.lang.security.injection.rule-007"]`, `"categories":["security"]`, `"confidences":["CONFIDENCE_HIGH"]`,
	`"policySlugs":["rule-board-block"]`, `"aiVerdicts":["VERDICT_TRUE_POSITIVE"]`, `"triageReasons":["FINDING_TRIAGE_REASON_FALSE_POSITIVE"]`,
	`"since":"2020-01-01T00:00:00Z"`, `"clickToFixPrStates":["CLICK_TO_FIX_PR_STATE_OPEN"]`, `"aiSensitivities":["payments"]`,
	`"reachabilities":["REACHABILITY_REACHABLE"]`, `"validationStates":["VALIDATION_STATE_CONFIRMED_VALID"]`,
}

// issueOrders are the orders of issues.
var issueOrders = []string{"SEVERITY", "REF", "REPO", "RULE", "RELEVANT_SINCE", "STATE"}

// issueLists returns lists with any two filters, each pair in one of the orders, and every order alone.
func issueLists(deploymentID int64) (list []*filterCase) {
	add := func(order, direction, filter string) {
		list = append(list, &filterCase{path: fmt.Sprintf("/api/agent/deployments/%d/issues", deploymentID),
			body: fmt.Sprintf(`{"limit":50,"sortBy":"SORT_BY_%s","sortDirection":"SORT_DIRECTION_%s","filter":{%s}}`, order, direction, filter)})
	}
	for _, order := range issueOrders {
		add(order, "ASC", "")
		add(order, "DESC", "")
	}
	n := 0
	for i, one := range issueFilters {
		for _, other := range issueFilters[i+1:] {
			add(issueOrders[n%len(issueOrders)], []string{"DESC", "ASC"}[n/len(issueOrders)%2], one+","+other)
			n++
		}
	}
	return list
}

// issueNumbers returns numbers, filter values and groups of all findings, and with each filter.
func issueNumbers(deploymentID int64) (list []*filterCase) {
	for _, path := range []string{"issue_counts", "issue_filters", "issues/search"} {
		for _, filter := range append([]string{""}, issueFilters...) {
			list = append(list, &filterCase{path: fmt.Sprintf("/api/agent/deployments/%d/%s", deploymentID, path), body: `{"filter":{` + filter + `}}`})
		}
	}
	return list
}

// measureIssues requests issues, their numbers, filter values and groups.
func (b *bench) measureIssues(ctx context.Context) ([]row, error) {
	deploymentID, err := b.deploymentID(ctx)
	if err != nil {
		return nil, err
	}
	lists, err := b.measureLists(ctx, "slowest list of issues", filterBar, issueLists(deploymentID))
	if err != nil {
		return nil, err
	}
	numbers, err := b.measureLists(ctx, "slowest numbers, filter values or groups", numbersBar, issueNumbers(deploymentID))
	for i := range numbers {
		numbers[i].what = strings.Replace(numbers[i].what, "list: ", "numbers: ", 1)
	}
	return slices.Concat(lists, numbers), err
}
