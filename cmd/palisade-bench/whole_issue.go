package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// issueBar is the limit of the 95th percentile of one issue with its snippets, flow and history, in milliseconds.
	issueBar = 5
	// tracedResults is the number of findings with flows, and tracedSteps of the steps of each flow.
	tracedResults, tracedSteps = 200, 20
)

// measureIssue requests issues one after the other, each with code, flow and history.
func (b *bench) measureIssue(ctx context.Context) ([]row, error) {
	const project = "bench/traced"
	report, err := makeTracedReport()
	if err != nil {
		return nil, err
	}
	if err := b.create(ctx, project, "main", "", report, tracedResults); err != nil {
		return nil, err
	}
	ids, err := b.ids(ctx, "SELECT id FROM findings WHERE project_id = (SELECT MAX(id) FROM projects WHERE name = '"+project+"') ORDER BY id")
	if err != nil {
		return nil, err
	}
	for _, state := range []string{"reviewing", "fixing", "reopened"} { // a history
		if _, err := b.client.triage(ctx, ids, state); err != nil {
			return nil, err
		}
	}
	deploymentID, err := b.deploymentID(ctx)
	if err != nil {
		return nil, err
	}
	var figures sample
	for range b.rounds {
		one := filterCase{}
		for _, id := range ids {
			began := time.Now()
			path := fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%d?includeCodeSnippet=true&includeIsArchived=true", deploymentID, id)
			if err := b.client.get(path, "", 0)(ctx); err != nil {
				return nil, err
			}
			one.wait = append(one.wait, micros(time.Since(began))/1000)
		}
		figures = append(figures, one.p95())
	}
	return []row{{
		what: "one issue with snippets, flow and history: p95", value: figures, unit: millis, bar: within(issueBar, "ms"),
		note: fmt.Sprintf("%d issues, %d steps each, one connection", len(ids), tracedSteps),
	}}, nil
}

// makeTracedReport returns a report of findings with flows.
func makeTracedReport() ([]byte, error) {
	random := rand.New(rand.NewPCG(7, 7))
	place := func() object {
		line := 1 + random.IntN(2000)
		return object{"physicalLocation": object{
			"artifactLocation": object{"uri": fmt.Sprintf("services/%s/%s.go", word(random), word(random))},
			"region":           object{"startLine": line, "endLine": line, "snippet": object{"text": sentence(random, 12)}},
		}}
	}
	results := make([]object, tracedResults)
	for i := range results {
		steps := make([]object, tracedSteps)
		for n := range steps {
			steps[n] = object{"location": place()}
		}
		results[i] = makeResult(random, 0)
		results[i]["codeFlows"] = []object{{"threadFlows": []object{{"locations": steps}}}}
	}
	return json.Marshal(object{"version": "2.1.0", "runs": []object{{
		"tool": object{"driver": object{"name": "benchscan", "rules": []object{}}}, "results": results,
	}}})
}
