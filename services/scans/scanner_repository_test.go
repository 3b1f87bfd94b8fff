package scans_test

import (
	"context"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// TestScanOfARenamedRepository: the id that the CI system tells leads to the project of the repository, before the
// source-code host has told its new name, and away from the project of another one.
func TestScanOfARenamedRepository(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		const host = "https://git.acme.test/"
		for name, id := range map[string]string{"acme/web": "1", "acme/api": "2"} {
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				return tx.Project.Create().SetDeploymentID(s.DeploymentID).SetName(name).SetNameKey(name).SetRepositoryURL(host + name).SetBoundBy("sync").
					SetRepositoryID(id).SetCreatedAt(store.Now()).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		scanner := newScanner(s)
		for _, c := range []struct{ what, repository, display, id, url, want string }{
			{"the known name", "acme/web", "", "1", host + "acme/web", "acme/web"},
			{"a new name", "acme/site", "", "1", host + "acme/site", "acme/web"},
			{"the name of another repository", "acme/api", "", "3", host + "acme/api", "acme/api~3"},
			{"the name of another repository, renamed", "acme/api", "", "1", host + "acme/api", "acme/web"},
			{"a part", "acme/site", "acme/site/cmd", "1", host + "acme/site", "acme/site/cmd"},
			{"another host", "acme/moved", "", "1", "https://elsewhere.example.com/acme/moved", "acme/moved"},
			{"another host with a known name", "acme/web", "", "9", "https://elsewhere.example.com/acme/web", "acme/web"},
			{"no id", "acme/fresh", "", "", host + "acme/fresh", "acme/fresh"},
			{"an id that is none", "acme/web", "", "1; 2", host + "acme/web", "acme/web"},
		} {
			id := scanner.create(t, func(body object) {
				about, _ := body["project_metadata"].(object)
				about["repository"], about["repo_display_name"], about["repo_id"], about["repo_url"] = c.repository, c.display, c.id, c.url
			})
			row := s.Store.Reader.Scan.Query().Where(scan.ID(id)).OnlyX(s.System(t))
			if got := s.Store.Reader.Project.Query().Where(project.ID(row.ProjectID)).OnlyX(s.System(t)); got.Name != c.want {
				t.Errorf("%s: project %s, want %s", c.what, got.Name, c.want)
			}
		}
		for _, row := range s.Store.Reader.Project.Query().AllX(s.System(t)) {
			if row.RepositoryID != nil && !strings.HasSuffix(row.RepositoryURL, row.Name) || row.RepositoryURL == "" && row.RepositoryID != nil {
				t.Errorf("a scan stored an id with %s", row.Name)
			}
		}
	})
}
