package scm_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

const noConfigs = `{"configs":[],"cursor":""}`

func TestConfigLife(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		if got := s.Get(t, s.path("")); got != noConfigs {
			t.Errorf("before the first: %s", got)
		}
		h := hosttest.NewGitHub(t)
		id, created := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL+"/", "acme", h.Token,
			`,"sourceId":"terraform","autoScan":true,"autoScanSettings":{"diffEnabled":true},"deploymentId":"999999"`)
		goldenBody(t, "create_scm_config", h.URL, created)
		goldenBody(t, "check_scm_config", h.URL, s.Get(t, s.path("/%d/check", id)))
		list := s.Get(t, s.path(""))
		goldenBody(t, "list_scm_config", h.URL, list)
		searched := s.do(t, http.MethodPost, s.path("/search"), `{"filter":{"namespace":"CM","type":"SCM_TYPE_GITHUB_ENTERPRISE","statusOk":true}}`, http.StatusOK)
		if searched != list {
			t.Errorf("search %s\nlist   %s", searched, list)
		}
		listed, err := s.configs.ListScmConfig(s.Context(t, s.Token), &scmv1.ListScmConfigRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, listed, list)
		found, err := s.configs.SearchScmConfig(s.Context(t, s.Token), &scmv1.SearchScmConfigRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, found, list)
		patched := s.do(t, http.MethodPatch, s.path("/%d", id), `{"autoScan":false,"useNetworkBroker":true}`, http.StatusOK)
		goldenBody(t, "patch_scm_config", h.URL, patched)
		again, err := s.configs.PatchScmConfig(s.Context(t, s.Token), &scmv1.PatchScmConfigRequest{DeploymentId: s.DeploymentID, ConfigId: id})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, again, patched)
		if got := s.do(t, http.MethodDelete, s.path("/%d", id), "", http.StatusNoContent); got != "" {
			t.Errorf("deleted: %q", got)
		}
		if got := s.Get(t, s.path("")); got != noConfigs {
			t.Errorf("after the last: %s", got)
		}
		got := s.do(t, http.MethodGet, s.path("/%d/check", id), "", http.StatusNotFound)
		apitest.Golden(t, "scm_config_not_found", got)
	})
}

func TestCreateOverGRPC(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		made, err := s.configs.CreateScmConfig(s.Context(t, s.Token), &scmv1.CreateScmConfigRequest{
			DeploymentId: s.DeploymentID, Type: scmv1.ScmType_SCM_TYPE_GITHUB, Namespace: "octo-org",
		})
		if err != nil || made.GetConfig().GetBaseUrl() != "https://github.com" || made.GetConfig().GetHasAccessToken() {
			t.Fatalf("%v, %v", made, err)
		}
		_, err = s.configs.DeleteScmConfig(s.Context(t, s.Token), &scmv1.DeleteScmConfigRequest{DeploymentId: s.DeploymentID, ConfigId: made.GetConfig().GetId()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.configs.DeleteScmConfig(s.Context(t, s.Token), &scmv1.DeleteScmConfigRequest{DeploymentId: s.DeploymentID, ConfigId: made.GetConfig().GetId()})
		if status.Code(err) != codes.NotFound {
			t.Errorf("deleted twice: %v", err)
		}
	})
}

func TestInvalidConfigs(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		for body, want := range map[string]string{
			`{}`:                         `type`,
			`{"namespace":"acme"}`:       `type is required`,
			`{"type":"SCM_TYPE_GITHUB"}`: `namespace`,
			`{"type":"SCM_TYPE_GITHUB","namespace":""}`:                                                                         `namespace`,
			`{"type":"SCM_TYPE_GITHUB","namespace":"` + strings.Repeat("a", 256) + `"}`:                                         `namespace`,
			`{"type":"SCM_TYPE_GITHUB","namespace":"acme/web"}`:                                                                 `namespace must be one organization or user of GitHub`,
			`{"type":"SCM_TYPE_GITLAB","namespace":"acme/../x"}`:                                                                `namespace`,
			`{"type":"SCM_TYPE_GITLAB","namespace":"/acme"}`:                                                                    `namespace`,
			`{"type":"SCM_TYPE_GITLAB","namespace":"ac me"}`:                                                                    `namespace`,
			`{"type":"SCM_TYPE_GITLAB","namespace":"acme?x"}`:                                                                   `namespace`,
			`{"type":"SCM_TYPE_FORGEJO","namespace":"acme"}`:                                                                    `SCM_TYPE_FORGEJO`,
			`{"type":"SCM_TYPE_UNSPECIFIED","namespace":"acme"}`:                                                                `type`,
			`{"type":77,"namespace":"acme"}`:                                                                                    `type`,
			`{"type":"SCM_TYPE_GITLAB_SELFMANAGED","namespace":"acme"}`:                                                         `baseUrl is required for SCM_TYPE_GITLAB_SELFMANAGED`,
			`{"type":"SCM_TYPE_GITLAB_SELFMANAGED","namespace":"acme","baseUrl":"http://git.acme.test"}`:                        `baseUrl must be an https:// URL`,
			`{"type":"SCM_TYPE_GITLAB_SELFMANAGED","namespace":"acme","baseUrl":"https://u:hunter2@git.acme.test"}`:             `without user and password`,
			`{"type":"SCM_TYPE_GITLAB_SELFMANAGED","namespace":"acme","baseUrl":"https://git.acme.test?private_token=x"}`:       `without a query`,
			`{"type":"SCM_TYPE_GITLAB_SELFMANAGED","namespace":"acme","baseUrl":"git.acme.test"}`:                               `baseUrl must be an https:// URL`,
			`{"type":"SCM_TYPE_GITLAB_SELFMANAGED","namespace":"acme","baseUrl":"https://10.1.2.3"}`:                            `public host`,
			`{"type":"SCM_TYPE_GITLAB","namespace":"acme","baseUrl":"https://git.acme.test"}`:                                   `baseUrl of SCM_TYPE_GITLAB must be https://gitlab.com`,
			`{"type":"SCM_TYPE_GITHUB","namespace":"acme","baseUrl":"https://git.acme.test/` + strings.Repeat("a", 2048) + `"}`: `baseUrl`,
			`{"type":"SCM_TYPE_GITHUB","namespace":"acme","sourceId":"` + strings.Repeat("a", 256) + `"}`:                       `sourceId`,
			`{"type":"SCM_TYPE_GITHUB","namespace":"acme","accessToken":"` + strings.Repeat("a", 4097) + `"}`:                   `accessToken`,
			`{"type":"SCM_TYPE_GITHUB","namespace":"acme","scmConfigId":"-1"}`:                                                  `scmConfigId`,
			`{"type":"SCM_TYPE_GITHUB","namespace":"acme","autoScan":"maybe"}`:                                                  ``,
			`{"type":"SCM_TYPE_GITHUB","namespace":"acme",`:                                                                     ``,
		} {
			got := s.do(t, http.MethodPost, s.path(""), body, http.StatusBadRequest)
			if !strings.Contains(got, want) || strings.Contains(got, "hunter2") {
				t.Errorf("%s: %s, want %q", body, got, want)
			}
		}
		s.do(t, http.MethodPost, s.path(""), `{"type":"SCM_TYPE_GITHUB","namespace":"acme","scmConfigId":"999"}`, http.StatusNotFound)
		if got := s.Get(t, s.path("")); got != noConfigs {
			t.Errorf("something was stored: %s", got)
		}
		_, id := s.gitHub(t, "")
		for body, want := range map[string]string{
			`{"namespace":" "}`: `namespace`, `{"namespace":"a/b"}`: `GitHub`, `{"autoScan":"x"}`: ``, `{"accessToken":[7]}`: `accessToken`,
		} {
			if got := s.do(t, http.MethodPatch, s.path("/%d", id), body, http.StatusBadRequest); !strings.Contains(got, want) {
				t.Errorf("patch %s: %s", body, got)
			}
		}
		for _, query := range []string{"?limit=501", "?limit=-1", "?limit=x", "?sortBy=SCM_CONFIG_SORT_BY_COLOUR", "?sortDirection=UP", "?cursor=x"} {
			s.do(t, http.MethodGet, s.path("%s", query), "", http.StatusBadRequest)
		}
		for _, body := range []string{`{"limit":"501"}`, `{"filter":{"type":"SCM_TYPE_X"}}`, `{"filter":{"namespace":"` + strings.Repeat("a", 256) + `"}}`, `{"cursor":"AAAA"}`} {
			s.do(t, http.MethodPost, s.path("/search"), body, http.StatusBadRequest)
		}
	})
}

func TestDuplicateConfigs(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		for _, namespace := range []string{"acme", "ACME"} {
			got := s.do(t, http.MethodPost, s.path(""), fmt.Sprintf(`{"type":"SCM_TYPE_GITHUB_ENTERPRISE","namespace":%q,"baseUrl":%q}`, namespace, h.URL), http.StatusConflict)
			if !strings.Contains(got, "is connected already") {
				t.Error(got)
			}
		}
		second, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "globex", "", "")
		s.do(t, http.MethodPatch, s.path("/%d", second), `{"namespace":"acme"}`, http.StatusConflict)
		s.do(t, http.MethodPatch, s.path("/%d", id), `{"namespace":"Acme"}`, http.StatusOK)
		other := s.AddTenant(t, "umbrella")
		body := fmt.Sprintf(`{"type":"SCM_TYPE_GITHUB_ENTERPRISE","namespace":"acme","baseUrl":%q}`, h.URL)
		if got := s.Do(t, other.Token, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", other.DeploymentID), body); got.Status != http.StatusCreated {
			t.Errorf("another tenant: %d %s", got.Status, got.Body)
		}
		var wait sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range 8 {
			wait.Go(func() {
				answer := s.Do(t, s.Token, http.MethodPost, s.path(""), `{"type":"SCM_TYPE_GITHUB","namespace":"initech"}`)
				mu.Lock()
				defer mu.Unlock()
				statuses[answer.Status]++
			})
		}
		wait.Wait()
		if statuses[http.StatusCreated] != 1 || statuses[http.StatusConflict] != 7 {
			t.Errorf("eight at once: %v", statuses)
		}
	})
}

// TestOtherTenantsConfigs requires that another tenant's configuration behaves like a missing one in all requests.
func TestOtherTenantsConfigs(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		_, id := s.gitHub(t, `,"subscribe":true`)
		other := s.AddTenant(t, "umbrella")
		before := s.Get(t, s.path(""))
		for method, paths := range map[string][]string{
			http.MethodGet:    {"configs/%d/check", "subscriptions/%d"},
			http.MethodPatch:  {"configs/%d"},
			http.MethodDelete: {"configs/%d", "subscriptions/%d"},
			http.MethodPost:   {"configs/%d/_sync", "subscriptions/%d/rotate_secret"},
			http.MethodPut:    {"subscriptions/%d"},
		} {
			for _, path := range paths {
				body := ""
				if method != http.MethodGet && method != http.MethodDelete {
					body = fmt.Sprintf(`{"deploymentId":"%d","namespace":"stolen","accessToken":""}`, s.DeploymentID)
				}
				var texts []string
				for _, config := range []int64{id, 999999} {
					answer := s.Body(t, other.Token, method, fmt.Sprintf("/api/scm/deployments/%d/"+path, other.DeploymentID, config), body, http.StatusNotFound)
					texts = append(texts, strings.ReplaceAll(answer, fmt.Sprint(config), "N"))
				}
				if texts[0] != texts[1] {
					t.Errorf("%s %s tells the two apart: %q", method, path, texts)
				}
			}
		}
		borrow := fmt.Sprintf(`{"type":"SCM_TYPE_GITHUB","namespace":"acme","scmConfigId":"%d"}`, id)
		if got := s.Do(t, other.Token, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", other.DeploymentID), borrow); got.Status != http.StatusNotFound {
			t.Errorf("borrowed another tenant's token: %d %s", got.Status, got.Body)
		}
		if after := s.Get(t, s.path("")); after != before {
			t.Errorf("changed:\nbefore %s\nafter  %s", before, after)
		}
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		for path, want := range map[string]int{s.path(""): 200, s.subscriptions(id, ""): 200, s.path("/%d/check", id): 403} {
			if got := s.Do(t, reader, http.MethodGet, path, ""); got.Status != want {
				t.Errorf("read-only %s: %d, want %d", path, got.Status, want)
			}
		}
	})
}

func TestPatchChangesOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, `,"autoScan":true,"autoScanSettings":{"diffEnabled":true}`)
		s.Get(t, s.path("/%d/check", id))
		got := configOf(t, s.do(t, http.MethodPatch, s.path("/%d", id), `{"autoScanSettings":{}}`, http.StatusOK))
		if !got.AutoScan || !got.AutoScanSettings.DiffEnabled || !got.HasAccessToken || got.Status == nil || !got.Status.OK || got.ScmID != "7001" {
			t.Errorf("nothing was named: %+v", got)
		}
		var wait sync.WaitGroup
		for _, body := range []string{`{"autoScan":false}`, `{"useNetworkBroker":true}`, `{"autoScanSettings":{"diffEnabled":false}}`, `{"accessToken":"another-token"}`} {
			wait.Go(func() { s.do(t, http.MethodPatch, s.path("/%d", id), body, http.StatusOK) })
		}
		wait.Wait()
		got = s.read(t, id)
		if got.AutoScan || !got.UseNetworkBroker || got.AutoScanSettings.DiffEnabled || !got.HasAccessToken {
			t.Errorf("a change was lost: %+v", got)
		}
		if got.Status != nil || got.TokenScopes != nil {
			t.Errorf("what was found with the old token is still shown: %+v", got)
		}
		for _, body := range []string{`{"accessToken":"","namespace":""}`, `{"accessToken":null}`, ``} {
			if got := configOf(t, s.do(t, http.MethodPatch, s.path("/%d", id), body, http.StatusOK)); !got.HasAccessToken || got.Namespace != "acme" {
				t.Errorf("%s changed something: %+v", body, got)
			}
		}
		none := ""
		removed, err := s.configs.PatchScmConfig(s.Context(t, s.Token), &scmv1.PatchScmConfigRequest{DeploymentId: s.DeploymentID, ConfigId: id, AccessToken: &none})
		if err != nil || removed.GetConfig().GetHasAccessToken() {
			t.Errorf("removed over gRPC: %v, %v", removed, err)
		}
		s.do(t, http.MethodPatch, s.path("/%d", id), fmt.Sprintf(`{"accessToken":%q}`, h.Token), http.StatusOK)
		if body := s.Get(t, s.path("/%d/check", id)); !strings.Contains(body, `"ok":true`) {
			t.Errorf("with the new token: %s", body)
		}
	})
}

func TestBorrowedToken(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		h, id := s.gitHub(t, "")
		second, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "globex", "", fmt.Sprintf(`,"scmConfigId":"%d"`, id))
		if body := s.Get(t, s.path("/%d/check", second)); !strings.Contains(body, `"ok":true`) {
			t.Errorf("with the other's token: %s", body)
		}
		body := fmt.Sprintf(`{"type":"SCM_TYPE_GITHUB","namespace":"acme","scmConfigId":"%d"}`, id)
		if got := s.do(t, http.MethodPost, s.path(""), body, http.StatusBadRequest); !strings.Contains(got, "must be a connection to the same host") {
			t.Error(got)
		}
	})
}

func TestConfigPages(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		names := []string{"delta", "Alpha", "charlie", "bravo", "echo"}
		for _, name := range names {
			s.create(t, "SCM_TYPE_GITLAB", "", name, "", "")
		}
		byName := slices.Sorted(slices.Values(names))
		reversed := slices.Clone(byName)
		slices.Reverse(reversed)
		for query, want := range map[string][]string{
			"": names, "sortBy=SCM_CONFIG_SORT_BY_NAME": byName, "sortBy=SCM_CONFIG_SORT_BY_NAME&sortDirection=SORT_DIRECTION_DESC": reversed,
			"sortBy=SCM_CONFIG_SORT_BY_LAST_SUCCESSFUL_SYNC_AT": names, "sortBy=SCM_CONFIG_SORT_BY_ID&sortDirection=SORT_DIRECTION_DESC": {"echo", "bravo", "charlie", "Alpha", "delta"},
		} {
			if got := s.walk(t, query); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		cursor := cursorOf(t, s.Get(t, s.path("?limit=2&sortBy=SCM_CONFIG_SORT_BY_NAME")))
		for _, query := range []string{"", "&sortBy=SCM_CONFIG_SORT_BY_ID", "&sortBy=SCM_CONFIG_SORT_BY_NAME&sortDirection=SORT_DIRECTION_DESC"} {
			if got := s.do(t, http.MethodGet, s.path("?cursor=%s%s", cursor, query), "", http.StatusBadRequest); !strings.Contains(got, "INVALID_CURSOR") {
				t.Errorf("the cursor of another list: %s", got)
			}
		}
		search := s.do(t, http.MethodPost, s.path("/search"), `{"filter":{"namespace":"a"},"limit":2}`, http.StatusOK)
		if cursorOf(t, search) == "" || strings.Contains(search, "echo") {
			t.Error(search)
		}
		if got := s.do(t, http.MethodPost, s.path("/search"), `{"filter":{"statusOk":true}}`, http.StatusOK); got != noConfigs {
			t.Errorf("none was checked: %s", got)
		}
	})
}
