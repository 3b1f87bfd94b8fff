package ignores_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apitest"
)

const web = "acme/web"

func TestStoredFindings(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.upload(t, web, "app/a.go", "vendor/b.go", "vendor/ours/c.go", "#vendor/d.go")
		s.upload(t, "acme/other", "vendor/x.go")
		before := s.findings(t, web)

		s.set(t, "vendor/*", "!vendor/ours/")
		s.wantStates(t, web, "app/a.go unresolved open -", "vendor/b.go muted ignored vendor/*", "vendor/d.go muted ignored -",
			"vendor/ours/c.go unresolved open -")
		s.wantStates(t, "acme/other", "vendor/x.go muted ignored vendor/*")
		id := before["vendor/b.go"].ID
		if got := s.Get(t, "/api/v1/deployments/acme/findings?status=open"); strings.Contains(got, "vendor/b.go") || !strings.Contains(got, "app/a.go") {
			t.Errorf("the list of open findings: %s", got)
		}

		// Scans do not touch them, with and without a result. A new finding is ignored at once.
		s.upload(t, web, "app/a.go", "vendor/b.go", "vendor/ours/c.go", "#vendor/d.go", "vendor/new.go")
		s.upload(t, web, "app/a.go", "vendor/ours/c.go", "#vendor/d.go")
		s.upload(t, web, "app/a.go", "vendor/ours/c.go", "#vendor/d.go")
		s.wantStates(t, web, "app/a.go unresolved open -", "vendor/b.go muted ignored vendor/*", "vendor/d.go muted ignored -",
			"vendor/new.go muted ignored vendor/*", "vendor/ours/c.go unresolved open -")

		// Another pattern takes over. Then they come back.
		s.set(t, "vendor/")
		s.set(t)
		s.wantStates(t, web, "app/a.go unresolved open -", "vendor/b.go unresolved open -", "vendor/d.go muted ignored -",
			"vendor/new.go unresolved open -", "vendor/ours/c.go unresolved open -")
		want := []string{
			"created  open scan: ", "path_ignored open ignored policy: ignored by the policy pattern `vendor/*`",
			"path_ignored ignored ignored policy: ignored by the policy pattern `vendor/`",
			"path_returned ignored open policy: no longer ignored by the policy pattern `vendor/`",
		}
		if got := s.history(t, id); !slices.Equal(got, want) {
			t.Errorf("the history is %q", got)
		}
		if got := s.history(t, s.findings(t, web)["vendor/new.go"].ID); got[0] != "created  ignored scan: ignored by the policy pattern `vendor/*`" {
			t.Errorf("the history of the new finding is %q", got)
		}
		// What a scan no longer reports is closed again.
		s.upload(t, web, "app/a.go")
		if got := s.states(t, web); !strings.Contains(got, "vendor/b.go fixed fixed -") {
			t.Errorf("got %s", got)
		}
	})
}

// TestScansBeforeTheJob: a scan that sees other patterns than the stored findings applies them.
func TestScansBeforeTheJob(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.upload(t, web, "vendor/a.go", "#vendor/b.go", "app/c.go")
		s.store(t, "vendor/")
		s.upload(t, web, "vendor/a.go", "vendor/b.go", "app/c.go")
		s.wantStates(t, web, "app/c.go unresolved open -", "vendor/a.go muted ignored vendor/", "vendor/b.go muted ignored vendor/")
		s.store(t)
		s.upload(t, web, "vendor/a.go", "#vendor/b.go", "app/c.go")
		s.wantStates(t, web, "app/c.go unresolved open -", "vendor/a.go unresolved open -", "vendor/b.go muted ignored -")
		want := []string{
			"created  ignored scan: ", "path_ignored ignored ignored scan: ignored by the policy pattern `vendor/`", "muted ignored ignored scan: checked",
		}
		if got := s.history(t, s.findings(t, web)["vendor/b.go"].ID); !slices.Equal(got, want) {
			t.Errorf("the history is %q", got)
		}
	})
}

// store changes the patterns of code behind the back of the job.
func (s caller) store(t testing.TB, patterns ...string) {
	t.Helper()
	err := s.Store.Write(s.own(t), func(ctx context.Context, tx *ent.Tx) error {
		if _, err := tx.PathIgnore.Delete().Exec(ctx); err != nil || len(patterns) == 0 {
			return err
		}
		return tx.PathIgnore.Create().SetProduct("sast").SetPatterns(patterns).SetUpdatedAt(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDecisionsOfPeople: a policy overwrites no decision.
func TestDecisionsOfPeople(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.upload(t, web, "vendor/a.go", "vendor/b.go", "vendor/c.go")
		found := s.findings(t, web)
		triage := func(path, state string) {
			t.Helper()
			body := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":%q}`, found[path].ID, state)
			s.Body(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", body, 200)
		}
		triage("vendor/a.go", "reopened")
		triage("vendor/b.go", "fixing")
		s.set(t, "vendor/")
		s.wantStates(t, web, "vendor/a.go muted open vendor/", "vendor/b.go muted fixing vendor/", "vendor/c.go muted ignored vendor/")
		triage("vendor/c.go", "reopened")
		s.wantStates(t, web, "vendor/a.go muted open vendor/", "vendor/b.go muted fixing vendor/", "vendor/c.go muted open vendor/")
		s.set(t)
		s.wantStates(t, web, "vendor/a.go unresolved open -", "vendor/b.go unresolved fixing -", "vendor/c.go unresolved open -")
	})
}

// TestProjectPatterns: patterns of a project apply to its findings alone.
func TestProjectPatterns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.upload(t, web, "vendor/a.go", "gen/b.go", "app/c.go")
		s.upload(t, "acme/other", "vendor/a.go", "gen/b.go")
		patch := func(body string) string {
			t.Helper()
			answer := s.Body(t, s.Token, http.MethodPatch, "/api/v1/deployments/acme/projects/"+web, body, 200)
			s.applied(t)
			return answer
		}
		answer := patch(`{"ignored_files":["vendor/"],"product_ignored_files":{"sast":["gen/"],"sca":["app/"]}}`)
		if !strings.Contains(answer, `"product_ignored_files":{"sast":["gen/"],"sca":["app/"],"secrets":[]}`) {
			t.Errorf("got %s", answer)
		}
		repo := s.Get(t, fmt.Sprintf("/api/agent/deployments/%s/repos/%d", s.Slug, s.findings(t, web)["app/c.go"].ProjectID))
		if !strings.Contains(repo, `"productIgnoredFiles":{"sast":["gen/"],"sca":["app/"],"secrets":[]}`) {
			t.Errorf("got %s", repo)
		}
		s.wantStates(t, web, "app/c.go unresolved open -", "gen/b.go muted ignored gen/", "vendor/a.go muted ignored vendor/")
		s.wantStates(t, "acme/other", "gen/b.go unresolved open -", "vendor/a.go unresolved open -")
		patch(`{"ignored_files":[],"product_ignored_files":{},"update_mask":"ignored_files,product_ignored_files"}`)
		s.wantStates(t, web, "app/c.go unresolved open -", "gen/b.go unresolved open -", "vendor/a.go unresolved open -")
		bad := s.Body(t, s.Token, http.MethodPatch, "/api/v1/deployments/acme/projects/"+web, `{"product_ignored_files":{"sca":["ok","[a"]}}`, 400)
		if !strings.Contains(bad, "product_ignored_files.sca[1] must be a pattern") {
			t.Errorf("got %s", bad)
		}
	})
}

func TestPreview(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.upload(t, web, "app/a.go", "vendor/b.go", "vendor/ours/c.go", "#vendor/d.go", "gen/e.go")
		s.upload(t, "acme/other", "vendor/x.go")
		s.set(t, "gen/", "app/")
		body := `{"productIgnores":[` + listOf("SAST", "vendor/*", "!vendor/ours/", "gen/", "none") + "," + listOf("SCA", "vendor/") + `]}`
		got := s.do(t, http.MethodPost, ":preview", body, 200)
		apitest.Golden(t, "preview", got)
		before := s.states(t, web)
		s.applied(t)
		if s.states(t, web) != before {
			t.Error("a preview changed something")
		}
		// What it says is what happens.
		s.set(t, "vendor/*", "!vendor/ours/", "gen/", "none")
		s.wantStates(t, web, "app/a.go unresolved open -", "gen/e.go muted ignored gen/", "vendor/b.go muted ignored vendor/*",
			"vendor/d.go muted ignored -", "vendor/ours/c.go unresolved open -")
	})
}

// TestIssueSaysWhy: the details of an issue and the change feed name the pattern.
func TestIssueSaysWhy(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.upload(t, web, "vendor/a.go")
		s.set(t, "vendor/")
		id := s.findings(t, web)["vendor/a.go"].ID
		issue := s.Get(t, fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%d", s.DeploymentID, id))
		var shown struct {
			Context struct {
				Suppression struct{ Kind, Justification string }
			}
			ActivityHistory []struct{ Title, Note string }
		}
		var answer struct{ Issue json.RawMessage }
		raw := []byte(issue)
		if json.Unmarshal(raw, &answer) == nil && len(answer.Issue) > 0 {
			raw = answer.Issue
		}
		if err := json.Unmarshal(raw, &shown); err != nil {
			t.Fatal(err)
		}
		const why = "ignored by the policy pattern `vendor/`"
		if got := shown.Context.Suppression; got.Kind != "policy" || got.Justification != why {
			t.Errorf("the suppression is %+v", got)
		}
		if !slices.Contains(shown.ActivityHistory, struct{ Title, Note string }{"Ignored by a policy", why}) {
			t.Errorf("the history is %+v", shown.ActivityHistory)
		}
	})
}

// TestApplyAndRemove: patterns that go leave the store as it was.
func TestApplyAndRemove(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		number := 0
		rapid.Check(t, func(r *rapid.T) {
			number++
			name := fmt.Sprintf("acme/p%d", number)
			file := rapid.Custom(func(r *rapid.T) string {
				return rapid.SampledFrom([]string{"", "#"}).Draw(r, "suppressed") + rapid.SampledFrom([]string{"app", "vendor", "gen"}).Draw(r, "dir") +
					rapid.SampledFrom([]string{"/a", "/b", "/c"}).Draw(r, "name") + rapid.SampledFrom([]string{".go", ".js"}).Draw(r, "type")
			})
			files := rapid.SliceOfNDistinct(file, 1, 12, func(f string) string { return strings.TrimPrefix(f, "#") }).Draw(r, "files")
			s.upload(t, name, files...)
			closed := rapid.IntRange(0, len(files)-1).Draw(r, "closed")
			s.upload(t, name, files[closed:]...)
			before := s.findings(t, name)
			patterns := rapid.SliceOfN(rapid.SampledFrom([]string{"vendor/", "*.js", "!*.js", "gen/*", "!gen/a*", "a.*", "/app"}), 1, 4).Draw(r, "patterns")
			s.set(t, patterns...)
			s.set(t)
			for path, f := range s.findings(t, name) {
				if want := before[path]; want.String() != f.String() || !reflect.DeepEqual(want.Content, f.Content) {
					r.Errorf("%q: %s was\n%s\nis\n%s", patterns, path, want, f)
				}
			}
		})
	})
}
