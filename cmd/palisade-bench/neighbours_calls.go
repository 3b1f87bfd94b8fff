package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// rule creates a notification rule in a deployment.
func (f *fairness) rule(ctx context.Context, who account, name, path string) error {
	c := who.client(f.server, 1)
	defer c.close()
	return c.call(ctx, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", who.id), object{"notificationRule": object{
		"name": name, "channel": "webhook", "is_enabled": true,
		"config": object{"url": f.hosts.base + path, "secret": "a-secret-of-the-benchmark"},
	}}, nil)
}

// publish publishes the workflows of a deployment.
func (f *fairness) publish(ctx context.Context, who account) error {
	c := who.client(f.server, 1)
	defer c.close()
	items := make([]int, nestedItems)
	step := func(name, kind, next string, more object) object {
		out := object{"name": name, "type": kind}
		if next != "" {
			out["next"] = []string{next}
		}
		for key, value := range more {
			out[key] = value
		}
		return out
	}
	fork := func(name, join string) object {
		return object{"with": object{"output": items}, "foreach": "steps." + name + ".output", "matchingJoin": join}
	}
	for name, steps := range map[string][]object{
		workflowOneStep: {step("only", "linear", "", nil)},
		workflowNested: {
			step("outer", "foreach", "inner", fork("outer", "outer-end")),
			step("inner", "foreach", "leaf", fork("inner", "inner-end")),
			step("leaf", "linear", "inner-end", nil), step("inner-end", "join", "outer-end", nil), step("outer-end", "join", "", nil),
		},
	} {
		definition, err := json.Marshal(object{"name": name, "targetType": "deployment", "displayName": name, "description": "Of the benchmark.", "steps": steps})
		if err != nil {
			return err
		}
		if err := c.call(ctx, http.MethodPut, who.workflows("registry"), object{"definition": string(definition)}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (a account) workflows(below string) string {
	return fmt.Sprintf("/api/workflows/v1/deployments/%d/%s", a.id, below)
}

func (a account) jobs(below string) string { return a.workflows("jobs" + below) }

// trigger starts a run.
func (f *fairness) trigger(ctx context.Context, c *client, who account, workflow string) (job string, err error) {
	var answer struct{ Summary struct{ JobID string } }
	err = c.call(ctx, http.MethodPost, who.jobs(""), object{"workflowType": workflow}, &answer)
	return answer.Summary.JobID, err
}

// state returns the state of a run.
func (f *fairness) state(ctx context.Context, c *client, who account, job string) (string, error) {
	var answer struct{ Metadata struct{ Status string } }
	err := c.call(ctx, http.MethodGet, who.jobs("/id/"+job+"/overview"), nil, &answer)
	return answer.Metadata.Status, err
}

// openFindings returns the ids of the newest open findings.
func (c *client) openFindings(ctx context.Context, most int) (ids []int64, err error) {
	var answer struct {
		Findings []struct {
			ID int64 `json:"id"`
		} `json:"findings"`
	}
	if err := c.call(ctx, http.MethodGet, c.findingsPath(pageQuery{Status: "open", Size: most}), nil, &answer); err != nil {
		return nil, err
	}
	for _, found := range answer.Findings {
		ids = append(ids, found.ID)
	}
	return ids, nil
}

// scan uploads results with the protocol of semgrep ci. It does not wait until the server has stored them.
func (c *client) scan(ctx context.Context, project string, results, number int) error {
	var opened struct{ Info struct{ ID int64 } }
	err := c.call(ctx, http.MethodPost, "/api/cli/scans", object{
		"project_metadata": object{"repository": project, "branch": "refs/heads/main", "commit": fmt.Sprintf("%040x", number), "on": "push", "is_full_scan": true, "is_code_scan": true},
		"scan_metadata":    object{"cli_version": "1.97.0", "unique_id": uuid.NewString(), "requested_products": []string{}, "dry_run": false},
	}, &opened)
	if err != nil {
		return err
	}
	findings := make([]object, results)
	for i := range findings {
		line := 1 + i*3
		id := fmt.Sprintf("%032x_%d", i, number%2)
		findings[i] = object{
			"check_id": "bench.rule", "path": fmt.Sprintf("src/file-%d.py", i%50), "line": line, "column": 1, "end_line": line, "end_column": 9,
			"message": "Query built from input", "severity": 2, "index": i, "commit_date": "2026-11-20T21:57:51", "syntactic_id": id, "match_based_id": id,
			"metadata": object{}, "is_blocking": false,
		}
	}
	path := fmt.Sprintf("/api/agent/scans/%d/", opened.Info.ID)
	if err := c.call(ctx, http.MethodPost, path+"results", object{"findings": findings, "ignores": []object{}, "token": nil, "searched_paths": []string{}, "renamed_paths": []string{}, "rule_ids": []string{"bench.rule"}}, nil); err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path+"complete", object{"exit_code": 0, "stats": object{"findings": results}}, nil)
}
