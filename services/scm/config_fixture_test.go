package scm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmconfig"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// configCaller sends requests as the first administrator.
type configCaller struct {
	*apitest.Server
	configs scmv1.ScmServiceClient
	hooks   scmv1.ScmSubscriptionsServiceClient
}

// eachConfig runs a test on both databases. Loopback hosts may be called.
func eachConfig(t *testing.T, test func(t *testing.T, s configCaller)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		server := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
		test(t, configCaller{server, scmv1.NewScmServiceClient(server.Conn), scmv1.NewScmSubscriptionsServiceClient(server.Conn)})
	})
}

// path is the path of a deployment's SCM configurations.
func (c configCaller) path(more string, args ...any) string {
	return fmt.Sprintf("/api/scm/deployments/%d/configs", c.DeploymentID) + fmt.Sprintf(more, args...)
}

// subscriptions is the path of a configuration's webhooks.
func (c configCaller) subscriptions(id int64, more string) string {
	return fmt.Sprintf("/api/scm/deployments/%d/subscriptions/%d%s", c.DeploymentID, id, more)
}

// do sends a request, requires a status and returns the body, without the request id of errors.
func (c configCaller) do(t testing.TB, method, path, body string, want int) string {
	t.Helper()
	return c.Body(t, c.Token, method, path, body, want)
}

// create creates a configuration and returns its id and the answer.
func (c configCaller) create(t testing.TB, kind, baseURL, namespace, token, more string) (int64, string) {
	t.Helper()
	body := fmt.Sprintf(`{"type":%q,"namespace":%q,"baseUrl":%q,"accessToken":%q%s}`, kind, namespace, baseURL, token, more)
	answer := c.do(t, http.MethodPost, c.path(""), body, http.StatusCreated)
	return configOf(t, answer).ID, answer
}

// gitHub starts a GitHub server and connects the deployment to its organization.
func (c configCaller) gitHub(t testing.TB, more string) (*hosttest.GitHub, int64) {
	t.Helper()
	h := hosttest.NewGitHub(t)
	id, _ := c.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", h.Token, more)
	return h, id
}

// gitLab starts a GitLab server and connects the deployment to its group.
func (c configCaller) gitLab(t testing.TB, more string) (*hosttest.GitLab, int64) {
	t.Helper()
	h := hosttest.NewGitLab(t)
	id, _ := c.create(t, "SCM_TYPE_GITLAB_SELFMANAGED", h.URL, "acme/platform", h.Token, more)
	return h, id
}

// connection holds the fields of a configuration that tests read.
type connection struct {
	ID                   int64 `json:",string"`
	Type, Namespace      string
	SourceID             string
	ScmID                string
	AutoScan             bool
	UseNetworkBroker     bool
	HasAccessToken       bool
	LastSuccessfulSyncAt string
	AutoScanSettings     struct{ DiffEnabled bool }
	Status               *struct {
		OK    bool
		Error string
	}
	TokenScopes   map[string]bool
	Subscriptions []struct {
		ScmURL string
		Events []string
	}
}

func configOf(t testing.TB, body string) connection {
	t.Helper()
	var answer struct{ Config connection }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return answer.Config
}

// read returns a configuration from the list.
func (c configCaller) read(t testing.TB, id int64) connection {
	t.Helper()
	var answer struct{ Configs []connection }
	body := c.Get(t, c.path(""))
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	for _, config := range answer.Configs {
		if config.ID == id {
			return config
		}
	}
	t.Fatalf("configuration %d is not in %s", id, body)
	return connection{}
}

// row reads a configuration from the table.
func (c configCaller) row(t testing.TB, id int64) *ent.ScmConfig {
	t.Helper()
	row, err := c.Store.Reader.ScmConfig.Query().Where(scmconfig.ID(id)).Only(c.System(t))
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// goldenBody compares a body with the host's address of this run replaced.
func goldenBody(t testing.TB, name, hostURL, body string) {
	t.Helper()
	apitest.Golden(t, name, strings.ReplaceAll(body, hostURL, "https://git.acme.test"))
}

func cursorOf(t testing.TB, body string) string {
	t.Helper()
	var answer struct{ Cursor string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Cursor
}

// walk reads a list in pages of two and returns the namespaces.
func (c configCaller) walk(t testing.TB, query string) (names []string) {
	t.Helper()
	cursor := ""
	for range 10 {
		var answer struct{ Configs []connection }
		body := c.Get(t, c.path("?limit=2&cursor=%s&%s", cursor, query))
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatal(err)
		}
		for _, config := range answer.Configs {
			names = append(names, config.Namespace)
		}
		if cursor = cursorOf(t, body); cursor == "" {
			return names
		}
	}
	t.Fatalf("%s does not end: %q", query, names)
	return nil
}
