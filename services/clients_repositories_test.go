package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// clientReportGenerator writes the slug of the deployment with underscores.
func clientReportGenerator(t *testing.T, w *clientWorld) {
	_, slug := w.deployment(t)
	projects := w.object(t, http.MethodGet, "/api/v1/deployments/"+slug+"/projects?page=0&page_size=100", "")
	id := member(t, projects, "projects.0.id").(float64)
	for _, name := range []string{strings.ReplaceAll(slug, "-", "_"), slug, fmt.Sprint(w.of.DeploymentID)} {
		repo := w.object(t, http.MethodGet, fmt.Sprintf("/api/agent/deployments/%s/repos/%.0f", name, id), "")
		want(t, repo, "repo.id", fmt.Sprintf("%.0f", id))
		want(t, repo, "repo.name", "acme/web")
		want(t, repo, "repo.latestScan.exitCode", "1")
		want(t, repo, "repo.latestScan.id", fmt.Sprint(w.scanID))
		want(t, repo, "repo.primaryRef.ref", "refs/heads/main")
		want(t, repo, "repo.primaryRef.isOverride", false)
		want(t, repo, "repo.defaultRef.id", fmt.Sprintf("%.0f:refs/heads/main", id))
	}
	for path, text := range map[string]string{
		fmt.Sprintf("/api/agent/deployments/acme/repos/%.0f", id):      "deployment not found", // of another deployment
		fmt.Sprintf("/api/agent/deployments/%s/repos/%d", slug, 99999): "repository 99999 not found",
	} {
		if answer := w.Do(t, w.of.Token, http.MethodGet, path, ""); answer.Status != 404 || !strings.Contains(answer.Body, text) {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
}

// clientGHESUtil lists what is set up, and starts managed scans, which are not there yet. It reads message, then error.
func clientGHESUtil(t *testing.T, w *clientWorld) {
	id, _ := w.deployment(t)
	search := fmt.Sprintf("/api/agent/deployments/%d/repos/search", id)
	set := w.object(t, http.MethodPost, search, fmt.Sprintf(`{"deploymentId":"%d","pageSize":100,"cursor":"","filters":{"setup":true}}`, id))
	want(t, set, "repos.0.name", "acme/web")
	want(t, set, "cursor", "")
	none := w.object(t, http.MethodPost, search, `{"filters":{"setup":false}}`)
	if list := member(t, none, "repos").([]any); len(list) != 0 {
		t.Errorf("%v", list)
	}

	list := w.object(t, http.MethodPost, fmt.Sprintf("/api/v2/deployments/%d/projects/list", id),
		`{"pageSize":3000,"pageToken":"","filter":{"statuses":["PROJECT_STATUS_ACTIVE","PROJECT_STATUS_UNINITIALIZED"]}}`)
	want(t, list, "projects.0.name", "acme/web")
	want(t, list, "pageToken", "")
	project := member(t, list, "projects.0.id").(float64)
	changed := w.object(t, http.MethodPatch, fmt.Sprintf("/api/agent/deployments/%d/repos", id),
		fmt.Sprintf(`{"deploymentId":%d,"changes":[{"repoId":"%.0f","change":{"updateTags":false,"managedScans":{"diffScan":true,"fullScan":true}}}]}`, id, project))
	want(t, changed, "updatedRepoNames.0", "acme/web")

	run := w.object(t, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/scans/run", id), fmt.Sprintf(`{"deploymentId":%d,"scanConfigs":[{"repoId":1}]}`, id))
	if tasks, refused := member(t, run, "tasks").([]any), member(t, run, "errors").([]any); len(tasks) != 0 || len(refused) != 1 {
		t.Errorf("%v", run)
	}
}

// clientAssetService decodes strictly: ids are strings, scmLastSyncedAt is a number if it is there.
func clientAssetService(t *testing.T, w *clientWorld) {
	id, _ := w.deployment(t)
	body := w.Body(t, w.of.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/repos/search", id), `{"pageSize":500}`, 200)
	var page struct {
		Repos []struct {
			ID, Name, URL, DefaultBranch, FirstScanID, ScmType string
			IsSetup, IsArchived, IsDisconnected, HasCodeAccess bool
			ScmLastSyncedAt                                    float64
			AuthorizedScopes                                   []string
			PrimaryRef                                         struct {
				ID, Ref    string
				IsOverride bool
			}
			DefaultRef, LastScannedRef struct{ ID, Ref string }
			LatestFullScaScanAt        string
			ScaInfo                    struct{ DependencyCounts map[string]any }
			Tags                       []any
		}
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if len(page.Repos) != 1 {
		t.Fatal(body)
	}
	repo := page.Repos[0]
	if repo.FirstScanID != fmt.Sprint(w.scanID) || !repo.IsSetup || repo.LastScannedRef.Ref != "refs/heads/main" || len(repo.Tags) != 2 ||
		len(repo.AuthorizedScopes) != 5 || repo.LatestFullScaScanAt == "" || len(repo.ScaInfo.DependencyCounts) == 0 || repo.URL != "https://github.com/acme/web" {
		t.Errorf("%s", body)
	}
}
