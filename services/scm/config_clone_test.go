package scm_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// repository returns the repository of a new project.
func (c configCaller) repository(t testing.TB, name, url string) (clone.Source, error) {
	t.Helper()
	var id int64
	err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Project.Create().SetDeploymentID(c.DeploymentID).SetName(name).SetNameKey(strings.ToLower(name)).
			SetURL("https://uploads.acme.test/x").SetRepositoryURL(url).SetCreatedAt(store.Now()).Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.connections(t).Repository(tenant.NewContext(t.Context(), c.DeploymentID), id)
}

func (c configCaller) connections(t testing.TB) *scm.Connections {
	t.Helper()
	guard, err := egress.New(egress.Config{Allow: "127.0.0.1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := secret.Open(c.Config.KeyPath(), false)
	if err != nil {
		t.Fatal(err)
	}
	return scm.NewConnections(c.Store, keyring, guard, c.Config.EntraURL, c.URL)
}

func TestRepositoryOfAProject(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		gitLab, _ := s.gitLab(t, "")
		s.create(t, "SCM_TYPE_GITLAB_SELFMANAGED", gitLab.URL+"/code", "acme", "glpat-of-a-path", "")
		for name, c := range map[string]struct{ url, want, user string }{
			"acme/platform/api": {gitLab.URL + "/acme/platform/api", gitLab.URL + "/acme/platform/api.git", "oauth2"},
			"renamed":           {gitLab.URL + "/Acme/Platform/web.git/", gitLab.URL + "/Acme/Platform/web.git", "oauth2"},
			"below a path":      {gitLab.URL + "/code/acme/web?a=b#c", gitLab.URL + "/code/acme/web.git", "oauth2"},
		} {
			got, err := s.repository(t, name, c.url)
			if err != nil || got.URL != c.want || got.Username != c.user || got.Password == "" {
				t.Errorf("%s: %s %s %v", name, got.URL, got.Username, err)
			}
		}
		for name, url := range map[string]string{
			"acme/other":          gitLab.URL + "/acme/other",
			"acme/platformish":    gitLab.URL + "/acme/platformish/web",
			"plain text":          strings.Replace(gitLab.URL, "http://", "https://", 1) + "/acme/platform/api",
			"somebody in the URL": strings.Replace(gitLab.URL, "http://", "http://u:p@", 1) + "/acme/platform/api",
			"dots":                gitLab.URL + "/acme/platform/../../root/secret",
			"hidden dots":         gitLab.URL + "/acme/platform/%2e%2e/%2e%2e/root/secret",
			"another host":        "https://git.acme.test/acme/platform/x",
		} {
			got, err := s.repository(t, name, url)
			var refused *clone.Error
			if !errors.As(err, &refused) || !refused.Permanent || !strings.Contains(refused.Text, "no source-code host is configured for project "+name) || got.Password != "" {
				t.Errorf("%s: %s %v", name, got.URL, err)
			}
		}
	})
}

// A project's name and the URL of an upload are never used to find code: only the binding counts.
func TestUnboundProjectIsNotReached(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		gitLab, _ := s.gitLab(t, "")
		upload := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember, Scopes: []access.Scope{access.ScopeAgent}})
		for _, name := range []string{"acme/platform/api", "mine"} {
			body := fmt.Sprintf(`{"scan_metadata":{"cli_version":"1.140.0","unique_id":%q},"project_metadata":{"semgrep_version":"1.140.0","repository":%q,
				"repo_url":%q,"branch":"refs/heads/main","commit":"3f2a"},"project_config":{}}`, uuid.NewString(), name, gitLab.URL+"/acme/platform/api")
			if answer := s.Do(t, upload, http.MethodPost, "/api/cli/scans", body); answer.Status != http.StatusOK {
				t.Fatalf("%d %s", answer.Status, answer.Body)
			}
			row := s.project(t, name)
			if row.URL != gitLab.URL+"/acme/platform/api" || row.RepositoryURL != "" {
				t.Fatalf("%s: %q, bound to %q", name, row.URL, row.RepositoryURL)
			}
			source, err := s.connections(t).Repository(tenant.NewContext(t.Context(), s.DeploymentID), row.ID)
			var refused *clone.Error
			if !errors.As(err, &refused) || !refused.Permanent || !strings.Contains(refused.Text, "set repository_url of the project") || source.Password != "" {
				t.Errorf("%s: %+v %v", name, source, err)
			}
			path := "/api/v1/deployments/" + s.Slug + "/projects/" + name
			bind := fmt.Sprintf(`{"repository_url":%q}`, gitLab.URL+"/acme/platform/api")
			member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
			if answer := s.Do(t, member, http.MethodPatch, path, bind); answer.Status != http.StatusForbidden {
				t.Errorf("a member binds: %d %s", answer.Status, answer.Body)
			}
			for _, wrong := range []string{"git@x:acme/web", "https://u:p@git.acme.test/a/b", "https://git.acme.test/a/../b", "https://git.acme.test/a?b=c", "https://git.acme.test/"} {
				if answer := s.Do(t, s.Token, http.MethodPatch, path, fmt.Sprintf(`{"repository_url":%q}`, wrong)); answer.Status != http.StatusBadRequest {
					t.Errorf("%s: %d %s", wrong, answer.Status, answer.Body)
				}
			}
			if answer := s.Do(t, s.Token, http.MethodPatch, path, bind); answer.Status != http.StatusOK || !strings.Contains(answer.Body, `"repository_url":"`) {
				t.Errorf("an administrator binds: %d %s", answer.Status, answer.Body)
			}
			if source, err = s.connections(t).Repository(tenant.NewContext(t.Context(), s.DeploymentID), row.ID); err != nil || source.Password == "" {
				t.Errorf("%s: %v", name, err)
			}
			if answer := s.Do(t, s.Token, http.MethodPatch, path, `{"repository_url":""}`); answer.Status != http.StatusOK || s.project(t, name).RepositoryURL != "" {
				t.Errorf("end of a binding: %d %s", answer.Status, answer.Body)
			}
		}
	})
}

// A connection without a token reads with its application's credential.
func TestRepositoryWithAnApplication(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	eachConfig(t, func(t *testing.T, s configCaller) {
		h := hosttest.NewGitHub(t)
		h.AppKey, h.Scopes = &key.PublicKey, nil
		id, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", "", "")
		var refused *clone.Error
		if _, err := s.repository(t, "acme/early", h.URL+"/acme/early"); !errors.As(err, &refused) || !refused.Permanent || !strings.Contains(refused.Text, "accessToken") {
			t.Errorf("got %v", err)
		}
		s.installApp(t, h, key, id)
		got, err := s.repository(t, "acme/web", h.URL+"/acme/web")
		if err != nil || got.Username != "x-access-token" || got.Password != h.Token {
			t.Errorf("%+v %v", got, err)
		}
		s.notesInstallation(t, h, id)
	})
}

// notesInstallation: opening a host stores what it says about the application, without a webhook and without a check.
func (c configCaller) notesInstallation(t *testing.T, h *hosttest.GitHub, id int64) {
	t.Helper()
	open := func() (*ent.ScmConfig, *ent.ScmApp) {
		t.Helper()
		_, _ = c.connections(t).Open(tenant.NewContext(t.Context(), c.DeploymentID), c.row(t, id))
		return c.row(t, id), c.Store.Reader.ScmApp.Query().OnlyX(c.System(t))
	}
	config, app := open()
	if !config.Installed || app.InstallationID != "8801" || !app.CodeAccess {
		t.Errorf("%+v %+v", config, app)
	}
	if again, _ := open(); again.UpdatedAt != config.UpdatedAt {
		t.Error("the same state was written again")
	}
	h.Answer(hosttest.Status(404, `{"message":"Not Found"}`))
	if config, app = open(); config.Installed || app.InstallationID != "" || app.CodeAccess {
		t.Errorf("not installed any more: %+v %+v", config, app)
	}
	h.Answer(hosttest.Status(500, `{"message":"Server Error"}`))
	open()
	h.Answer(nil)
	if config, app = open(); !config.Installed || app.InstallationID != "8801" || !app.CodeAccess {
		t.Errorf("installed again: %+v %+v", config, app)
	}
}
