package scans_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
)

// namesOf are the names of all projects, by id.
func namesOf(t *testing.T, s *apitest.Server) string {
	t.Helper()
	return strings.Join(s.Store.Reader.Project.Query().Order(ent.Asc(project.FieldID)).Select(project.FieldName).StringsX(s.System(t)), " ")
}

// Another letter case in the name of a project reaches the known project. Projects of earlier versions that differ only
// in letter case stay apart.
func TestLetterCaseOfProjectNames(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := sarifOf(t, run{Tool: "t", Results: []result{{Rule: "r", File: "a.go", Code: "x()", Line: 1}}})
		s.Upload(t, "Acme/Web", "main", report)
		if got := s.Upload(t, "acme/WEB", "main", report); !strings.Contains(got, `"created":0,"updated":0,"unchanged":1`) {
			t.Errorf("another spelling: %s", got)
		}
		var uploads sync.WaitGroup
		for _, name := range []string{"acme/api", "Acme/Api", "ACME/API", "acme/Api"} {
			uploads.Go(func() {
				s.Try(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/reports?ref=main&project="+name, string(report))
			})
		}
		uploads.Wait()
		if got := namesOf(t, s); !strings.EqualFold(got, "acme/web acme/api") {
			t.Errorf("projects: %s", got)
		}
		newScanner(s).create(t, func(body object) {
			about, _ := body["project_metadata"].(object)
			about["repository"], about["repo_display_name"], about["repo_id"] = "ACME/api", "", ""
		})
		if got := namesOf(t, s); !strings.EqualFold(got, "acme/web acme/api") {
			t.Errorf("projects after a scan: %s", got)
		}
		for _, path := range []string{"projects/ACME%2Fweb", "removed-findings?project=acme/web"} {
			if got := s.Get(t, "/api/v1/deployments/acme/"+path); strings.Contains(got, "not found") {
				t.Errorf("%s: %s", path, got)
			}
		}

		err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Project.Create().SetDeploymentID(s.DeploymentID).SetName("acme/web").SetNameKey("acme/web").SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Upload(t, "acme/web", "main", report); !strings.Contains(got, `"created":1`) {
			t.Errorf("the other of a pair: %s", got)
		}
		for _, name := range []string{"Acme/Web", "ACME/web"} { // exactly, and the oldest
			if got := s.Upload(t, name, "main", report); !strings.Contains(got, `"unchanged":1`) {
				t.Errorf("%s of a pair: %s", name, got)
			}
		}
	})
}
