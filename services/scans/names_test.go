package scans_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// TestNamesOfUploads: names that would collide with paths or look like another name are rejected or normalised.
func TestNamesOfUploads(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := string(sarifOf(t, run{Tool: "gosec", Results: []result{sqli}}))
		send := func(project, ref string) apitest.Answer {
			path := "/api/v1/deployments/" + s.Slug + "/reports?" + url.Values{"project": {project}, "ref": {ref}}.Encode()
			return s.Do(t, s.Token, http.MethodPost, path, report)
		}
		for _, name := range []string{"..", "a/../b", " ", "a//b", "a\u202eb", "a\u200bb", "a\x1bb", "x/tags", "x/managed-scan"} {
			if got := send(name, "main"); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "project") {
				t.Errorf("project %q: %d %s", name, got.Status, got.Body)
			}
		}
		for _, ref := range []string{"a..b", "../x", "a b", "a/", "x.lock"} {
			if got := send("acme/web", ref); got.Status != http.StatusBadRequest || !strings.Contains(got.Body, "must") {
				t.Errorf("ref %q: %d %s", ref, got.Status, got.Body)
			}
		}
		for _, name := range []string{"Gr\u00fcn", "Gru\u0308n", " Gr\u00fcn "} {
			if got := send(name, "refs/pull/7/merge"); got.Status != http.StatusOK || !strings.Contains(got.Body, "\"project\":\"Gr\u00fcn\"") {
				t.Errorf("%q: %d %s", name, got.Status, got.Body)
			}
		}
		if n := s.Store.Reader.Project.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d projects, want 1", n)
		}
	})
}

// TestOldNamesStay: a project from before the rules for names still accepts reports.
func TestOldNamesStay(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		ctx := s.System(t)
		of := s.Store.Reader.Deployment.Query().FirstX(ctx).ID
		err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Project.Create().SetDeploymentID(of).SetName("x/tags").SetNameKey("x/tags").SetCreatedAt(store.Now()).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Upload(t, "x/tags", "main", sarifOf(t, run{Tool: "gosec", Results: []result{sqli}}))
		if n := s.Store.Reader.Project.Query().CountX(ctx); n != 1 {
			t.Errorf("%d projects, want 1", n)
		}
	})
}

// TestNamesOfScanners: the scanner protocol has the same rules.
func TestNamesOfScanners(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		for field, value := range map[string]string{"repository": "..", "repo_display_name": "x/tags", "branch": "refs/heads/a..b"} {
			body := recorded(t, "create_1.97", with(uuid.NewString(), "scan_metadata", "unique_id"), with("", "project_metadata", "repo_display_name"), with(value, "project_metadata", field))
			if got := c.send(t, http.MethodPost, cliScans, body); got.Status != http.StatusBadRequest {
				t.Errorf("%s %q: %d %s", field, value, got.Status, got.Body)
			}
		}
	})
}
