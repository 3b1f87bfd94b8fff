package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// issues reads all pages of a list of issues, as clients do: until the cursor is empty.
func (w *clientWorld) issues(t *testing.T, body string) (list []any) {
	t.Helper()
	cursor := ""
	for range 20 {
		page := w.object(t, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/issues", w.of.DeploymentID),
			fmt.Sprintf(`{"deploymentId":"%d","limit":1,"cursor":%q,%s}`, w.of.DeploymentID, cursor, body))
		for _, entry := range member(t, page, "issues").([]any) {
			list = append(list, member(t, entry, "issue"))
		}
		if cursor = member(t, page, "cursor").(string); cursor == "" {
			return list
		}
	}
	t.Fatal("the list does not end")
	return nil
}

// clientSecretsTriage lists the open secrets, ignores them with a reason and a note, and reads the result back.
func clientSecretsTriage(t *testing.T, shared *clientWorld) {
	w := newClientWorld(t, shared.Server, "acme-keys", "secrets")
	const secrets = `"issueType":"ISSUE_TYPE_SECRETS","sortBy":"SORT_BY_RELEVANT_SINCE","sortDirection":"SORT_DIRECTION_DESC"`
	open := w.issues(t, secrets+`,"filter":{"tab":"ISSUE_TAB_OPEN"}`)
	if len(open) < 2 {
		t.Fatalf("%v", open)
	}
	ids := make([]string, len(open))
	for i, issue := range open {
		for _, name := range []string{"repository.name", "repository.id", "ref", "filePath", "line", "severity", "createdAt", "ruleDisplayName",
			"secretsAttributes.secretType", "secretsAttributes.validationState"} {
			member(t, issue, name)
		}
		ids[i] = member(t, issue, "id").(string)
		shown := w.object(t, http.MethodGet, fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%s?includeCodeSnippet=true", w.of.DeploymentID, ids[i]), "")
		want(t, shown, "codeSnippet", "")
		want(t, shown, "codeSnippets", []any{})
	}
	changed := w.object(t, http.MethodPatch, fmt.Sprintf("/api/agent/deployments/%d/findings/v2", w.of.DeploymentID), fmt.Sprintf(
		`{"deploymentId":"%d","issueType":"ISSUE_TYPE_SECRETS","filter":{"ids":["%s"]},
		"params":{"triageState":"FINDING_TRIAGE_STATE_IGNORED","triageReason":"FINDING_TRIAGE_REASON_FALSE_POSITIVE","note":"a test key"}}`,
		w.of.DeploymentID, strings.Join(ids, `","`)))
	want(t, changed, "issueCount", float64(len(ids)))
	want(t, changed, "updatedCount", float64(len(ids)))
	if left := w.issues(t, secrets+`,"filter":{"tab":"ISSUE_TAB_OPEN"}`); len(left) != 0 {
		t.Errorf("still open: %v", left)
	}
	ignored := w.issues(t, secrets+`,"includeActivityHistory":true,"filter":{"tab":"ISSUE_TAB_IGNORED"}`)
	if len(ignored) != len(ids) {
		t.Fatalf("%v", ignored)
	}
	for _, issue := range ignored {
		want(t, issue, "triageState", "FINDING_TRIAGE_STATE_IGNORED")
		want(t, issue, "triageReason", "FINDING_TRIAGE_REASON_FALSE_POSITIVE")
		want(t, issue, "note", "a test key")
		want(t, issue, "aggregateState", "AGGREGATE_ISSUE_STATE_IGNORED_APP")
		want(t, issue, "activityHistory.0.historyType", "HISTORY_TYPE_TRIAGE")
		want(t, issue, "activityHistory.0.note", "a test key")
	}
}

// clientOnboarding finds the projects, tags those that a search matches, and checks that each is scanned.
func clientOnboarding(t *testing.T, shared *clientWorld) {
	w := newClientWorld(t, shared.Server, "acme-new", "results")
	agent := fmt.Sprintf("/api/agent/deployments/%d/repos", w.of.DeploymentID)
	v2 := fmt.Sprintf("/api/v2/deployments/%d/projects", w.of.DeploymentID)
	var projects []any
	for token := ""; ; {
		page := w.object(t, http.MethodPost, v2+"/list", fmt.Sprintf(
			`{"pageSize":100,"pageToken":%q,"filter":{"names":["acme/"],"statuses":["PROJECT_STATUS_UNINITIALIZED","PROJECT_STATUS_ACTIVE"]}}`, token))
		projects = append(projects, member(t, page, "projects").([]any)...)
		if token = member(t, page, "pageToken").(string); token == "" {
			break
		}
	}
	if len(projects) != 1 {
		t.Fatalf("%v", projects)
	}
	id := fmt.Sprintf("%.0f", member(t, projects[0], "id"))
	want(t, projects[0], "name", "acme/web")
	want(t, projects[0], "latestScanId", float64(w.scanID))
	found := w.object(t, http.MethodPost, agent+"/search", `{"pageSize":100,"filters":{"search":"web","archived":false}}`)
	want(t, found, "repos.0.id", id)
	edited := w.object(t, http.MethodPatch, agent, fmt.Sprintf(
		`{"deploymentId":"%d","changes":[{"repoId":%q,"change":{"updateTags":true,"tags":["onboarded","team-web"]}}]}`, w.of.DeploymentID, id))
	want(t, edited, "updatedRepoNames", []any{"acme/web"})
	again := w.object(t, http.MethodPost, agent+"/search", `{"pageSize":100,"filters":{"ids":["`+id+`"]}}`)
	if tags := member(t, again, "repos.0.tags").([]any); len(tags) != 2 {
		t.Errorf("%v", tags)
	}
	scans := w.object(t, http.MethodPost, v2+"/"+id+"/scans/list", `{"limit":1,"filters":{"statuses":["SCAN_STATUS_COMPLETED"]}}`)
	want(t, scans, "scans.0.id", fmt.Sprint(w.scanID))
	want(t, scans, "scans.0.status", "SCAN_STATUS_COMPLETED")
}

// clientSBOM polls the top-level status, and reads the document from the result of the task.
func clientSBOM(t *testing.T, w *clientWorld) {
	id, _ := w.deployment(t)
	found := w.object(t, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/repos/search", id), `{"pageSize":1}`)
	started := w.Body(t, w.of.Token, http.MethodPost, fmt.Sprintf("/api/sca/deployments/%d/sbom_async", id), fmt.Sprintf(
		`{"deploymentId":%d,"repositoryId":%q,"ref":"refs/heads/main","sbomOutputFormat":"SBOM_OUTPUT_FORMAT_JSON",
		"formatVersion":{"format":"SBOM_FORMAT_CYCLONEDX","cyclonedxVersion":"SBOM_CYCLONE_DX_VERSION_V1_5","version":"1.5"}}`,
		id, member(t, found, "repos.0.id")), http.StatusAccepted)
	var task struct{ TaskTokenJwt string }
	if err := json.Unmarshal([]byte(started), &task); err != nil || task.TaskTokenJwt == "" {
		t.Fatalf("%v %s", err, started)
	}
	var result map[string]any
	apitest.Eventually(t, "the task ends", func() bool {
		result = w.object(t, http.MethodGet, "/api/tasks/v2/"+task.TaskTokenJwt, "")
		return member(t, result, "status") != "TASK_STATUS_IN_PROGRESS"
	})
	want(t, result, "status", "TASK_STATUS_COMPLETED")
	want(t, result, "taskResult.status", "TASK_STATUS_COMPLETED")
	var document map[string]any
	if err := json.Unmarshal([]byte(member(t, result, "taskResult.resultString").(string)), &document); err != nil {
		t.Fatalf("the result is no document: %v: %v", err, result)
	}
	want(t, document, "bomFormat", "CycloneDX")
	if list := member(t, document, "components").([]any); len(list) == 0 {
		t.Errorf("no components: %v", document)
	}
}
