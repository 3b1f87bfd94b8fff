package services_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// clientMCP is the official MCP server: its login check, its list of findings, and the schema for writing rules.
func clientMCP(t *testing.T, w *clientWorld) {
	current := w.object(t, http.MethodGet, "/api/agent/deployments/current", "")
	want(t, current, "deployment.name", "acme-corp")
	_, slug := w.deployment(t)
	found := w.object(t, http.MethodGet, "/api/v1/deployments/"+slug+"/findings?issue_type=sca&dedup=True&page=0&page_size=100", "")
	first := member(t, found, "findings.0").(map[string]any)
	for _, name := range []string{"id", "ref", "first_seen_scan_id", "match_based_id", "repository", "line_of_code_url", "state", "status", "severity",
		"confidence", "categories", "created_at", "relevant_since", "rule_name", "rule_message", "location", "rule", "review_comments", "state_updated_at"} {
		if first[name] == nil {
			t.Errorf("%s is %v", name, first[name])
		}
	}

	answer := w.Do(t, "", http.MethodGet, "/api/schema_url", "") // without a credential
	if answer.Status != 200 || !strings.Contains(answer.Body, `{"schema_url":"`) {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(answer.Body, `{"schema_url":"`), `"}`)
	schema := w.Do(t, "", http.MethodGet, address[strings.LastIndex(address, "/"):], "")
	if schema.Status != 200 || !strings.Contains(schema.Body, `"rules"`) || !strings.Contains(schema.Body, `"pattern-either"`) {
		t.Errorf("%d %.200s", schema.Status, schema.Body)
	}
}

// clientCartography indexes the members without checking that they exist, and parses dates with microseconds.
func clientCartography(t *testing.T, w *clientWorld) {
	id, slug := w.deployment(t)
	for _, kind := range []string{"sast", "sca"} {
		seen := 0
		for page := 0; ; page++ {
			list := member(t, w.object(t, http.MethodGet, fmt.Sprintf("/api/v1/deployments/%s/findings?issue_type=%s&page=%d&ref=_default&dedup=true",
				slug, kind, page), ""), "findings").([]any)
			if len(list) == 0 {
				break
			}
			seen += len(list)
			for _, finding := range list {
				if _, err := time.Parse("2006-01-02T15:04:05.000000Z", member(t, finding, "relevant_since").(string)); err != nil {
					t.Error(err)
				}
				if kind == "sca" {
					for _, name := range []string{"reachability", "reachable_condition", "found_dependency.lockfile_line_url", "found_dependency.package"} {
						member(t, finding, name)
					}
				}
			}
		}
		if kind == "sca" && seen == 0 {
			t.Errorf("no findings of %s", kind)
		}
	}
	dependencies, cursor := 0, ""
	for {
		body := w.object(t, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/dependencies", id), fmt.Sprintf(`{"cursor":%q,"pageSize":1}`, cursor))
		dependencies += len(member(t, body, "dependencies").([]any))
		cursor = fmt.Sprint(member(t, body, "cursor"))
		if member(t, body, "hasMore") != true {
			break
		}
	}
	if dependencies == 0 {
		t.Error("no dependencies")
	}
}

// clientSteampipe pages until a body has less than 100 bytes.
func clientSteampipe(t *testing.T, w *clientWorld) {
	_, slug := w.deployment(t)
	for page := range 3 {
		body := w.Body(t, w.of.Token, http.MethodGet, fmt.Sprintf("/api/v1/deployments/%s/findings?page=%d&issue_type=sca", slug, page), "", 200)
		if len(body) < 100 {
			if page == 0 {
				t.Error("the first page counts as the end")
			}
			return
		}
	}
	t.Error("it never ends")
}
