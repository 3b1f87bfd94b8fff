package scans_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/user"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// An empty report closes findings. It is accepted from callers that see the project, from tokens of administrators, and
// for new projects from their creator.
func TestUploadsOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		full := sarifOf(t, run{Tool: "gosec", Results: []result{{Rule: "r1", File: "a.go", Line: 1}}})
		nothing := sarifOf(t, run{Tool: "gosec"})
		s.Upload(t, "acme/hidden", "main", full)
		s.Upload(t, "acme/ours", "main", full)
		dev := memberOf(t, s, "acme/ours")
		ofDev := s.AddToken(t, s.Tenant, access.TokenSpec{UserID: dev, Name: "dev", Role: access.RoleMember, Scopes: []access.Scope{access.ScopeAgent}})
		ofChief := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "ci", Role: access.RoleMember, Scopes: []access.Scope{access.ScopeAgent}})
		send := func(who, token, name string, report []byte, want int) {
			t.Helper()
			answer := s.Send(t, token, http.MethodPost, reports+"?project="+name+"&ref=main", bytes.NewReader(report))
			if answer.Status != want || want == http.StatusForbidden && !strings.Contains(answer.Body, "add the project to a team") {
				t.Errorf("%s sends %s: %d %s, want %d", who, name, answer.Status, answer.Body, want)
			}
		}
		open := func(name string) int {
			return s.Store.Reader.Finding.Query().Where(finding.Status("open"), func(q *sql.Selector) {
				p := sql.Table(project.Table)
				q.Where(sql.In(q.C(finding.FieldProjectID), sql.Dialect(q.Dialect()).Select(p.C(project.FieldID)).From(p).Where(sql.EQ(p.C(project.FieldName), name))))
			}).CountX(s.System(t))
		}
		send("a member's token", ofDev, "acme/hidden", nothing, http.StatusForbidden)
		if open("acme/hidden") != 1 {
			t.Error("an upload into a hidden project has closed its finding")
		}
		send("a member's token", ofDev, "acme/ours", nothing, http.StatusOK)
		send("a member's token", ofDev, "acme/new", full, http.StatusOK)
		send("its next report", ofDev, "acme/new", full, http.StatusOK)
		send("an administrator's token", ofChief, "acme/hidden", full, http.StatusOK)
		send("an administrator's token", ofChief, "acme/later", full, http.StatusOK)
		send("a member's token", ofDev, "acme/later", nothing, http.StatusForbidden)
		scansOfTeams(t, s, ofDev, ofChief)
	})
}

// scansOfTeams: the scanner protocol accepts no scan of a hidden project, and no data for a scan that another caller
// opened. It does not list ignored findings of a hidden project.
func scansOfTeams(t *testing.T, s *apitest.Server, ofDev, ofChief string) {
	t.Helper()
	scan := func(token, name string, dry bool) apitest.Answer {
		return s.Do(t, token, http.MethodPost, "/api/cli/scans", fmt.Sprintf(`{"scan_metadata":{"cli_version":"1.140.0","unique_id":%q,"dry_run":%v},
			"project_metadata":{"semgrep_version":"1.140.0","repository":%q,"branch":"refs/heads/main","commit":"3f2a"},"project_config":{}}`, uuid.NewString(), dry, name))
	}
	if answer := scan(ofDev, "acme/hidden", false); answer.Status != http.StatusForbidden {
		t.Errorf("a scan of a hidden project: %d %s", answer.Status, answer.Body)
	}
	answer := scan(ofChief, "acme/hidden", false)
	var opened struct {
		Info struct{ ID any } `json:"info"`
	}
	if err := json.Unmarshal([]byte(answer.Body), &opened); err != nil || opened.Info.ID == nil {
		t.Fatalf("%v %s", err, answer.Body)
	}
	for _, what := range []string{"results", "complete", "error"} {
		path := fmt.Sprintf("/api/agent/scans/%v/%s", opened.Info.ID, what)
		if answer := s.Do(t, ofDev, http.MethodPost, path, "{}"); answer.Status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		content, err := blob.Encode(&storev1.FindingContent{MatchBasedId: "secret-print"})
		if err != nil {
			return err
		}
		return tx.Finding.Update().SetTriageState("ignored").SetTriageReason("no_time").SetContent(content).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]bool{ofDev: false, ofChief: true} {
		if body := scan(token, "acme/hidden", true).Body; strings.Contains(body, "secret-print") != want {
			t.Errorf("ignored findings of a hidden project: want them shown: %v: %s", want, body)
		}
	}
}

// memberOf creates a user who is in a team with one project.
func memberOf(t *testing.T, s *apitest.Server, name string) int64 {
	t.Helper()
	s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)
	dev, err := s.Store.Reader.User.Query().Where(user.Email("dev@acme.test")).OnlyID(s.System(t))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		team, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("ours").SetSlug("ours").SetCreatedAt(store.Now()).SetUpdatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		err = tx.TeamMember.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetUserID(dev).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(store.Now()).Exec(ctx)
		if err != nil {
			return err
		}
		ours, err := tx.Project.Query().Where(project.Name(name)).OnlyID(ctx)
		if err != nil {
			return err
		}
		return tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetProjectID(ours).SetCreatedAt(store.Now()).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dev
}
