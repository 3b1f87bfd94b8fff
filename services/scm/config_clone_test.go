package scm_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// repository asks where the code of a new project is.
func (c configCaller) repository(t testing.TB, name, url string) (clone.Source, error) {
	t.Helper()
	guard, err := egress.New(egress.Config{Allow: "127.0.0.1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := secret.Open(c.Config.KeyPath(), false)
	if err != nil {
		t.Fatal(err)
	}
	var id int64
	err = c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Project.Create().SetDeploymentID(c.DeploymentID).SetName(name).SetNameKey(strings.ToLower(name)).SetURL(url).SetCreatedAt(store.Now()).Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return scm.NewConnections(c.Store, keyring, guard, c.URL).Repository(tenant.NewContext(t.Context(), c.DeploymentID), id)
}

func TestRepositoryOfAProject(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		gitLab, _ := s.gitLab(t, "")
		s.create(t, "SCM_TYPE_GITLAB_SELFMANAGED", gitLab.URL+"/code", "acme", "glpat-of-a-path", "")
		for name, c := range map[string]struct{ url, want, user string }{
			"acme/platform/api":      {gitLab.URL + "/acme/platform/api", gitLab.URL + "/acme/platform/api.git", "oauth2"},
			"renamed":                {gitLab.URL + "/Acme/Platform/web.git/", gitLab.URL + "/Acme/Platform/web.git", "oauth2"},
			"acme/platform/nameless": {"", gitLab.URL + "/acme/platform/nameless.git", "oauth2"},
			"below a path":           {gitLab.URL + "/code/acme/web?a=b#c", gitLab.URL + "/code/acme/web.git", "oauth2"},
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
			"unknown":             "",
		} {
			got, err := s.repository(t, name, url)
			var refused *clone.Error
			if !errors.As(err, &refused) || !refused.Permanent || !strings.Contains(refused.Text, "no source-code host is configured for project "+name) || got.Password != "" {
				t.Errorf("%s: %s %v", name, got.URL, err)
			}
		}
	})
}

// A connection without a token reads with a credential of its application.
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
	})
}
