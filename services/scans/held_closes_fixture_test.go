package scans_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/user"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// manyResults are n results in n files.
func manyResults(n int) []result {
	list := make([]result, n)
	for i := range list {
		list[i] = result{Rule: "sqli", File: fmt.Sprintf("src/f%d.go", i), Line: i + 1, Code: fmt.Sprintf("query(%d)", i)}
	}
	return list
}

// manyOf is a report of gosec with the first n of many results.
func manyOf(t testing.TB, n int) []byte {
	return sarifOf(t, run{Tool: "gosec", Results: manyResults(n)})
}

// wantHeld uploads a report to main, and compares how many findings it fixed and how many closes it held.
func wantHeld(t testing.TB, what string, s *apitest.Server, report []byte, fixed, held int32, query ...string) *scansv1.UploadReportResponse {
	t.Helper()
	r := upload(t, s, "main", report, query...)
	if r.GetFixed() != fixed || r.GetHeldCloses() != held {
		t.Errorf("%s: %d fixed and %d held, want %d and %d", what, r.GetFixed(), r.GetHeldCloses(), fixed, held)
	}
	return r
}

// held calls the API of held closes over HTTP, and requires a status. A 200 is decoded into out.
func held(t testing.TB, s *apitest.Server, token string, status int, method, path, body string, out proto.Message) apitest.Answer {
	t.Helper()
	answer := s.Do(t, token, method, "/api/v1/deployments/"+s.Slug+"/"+path, body)
	if answer.Status != status {
		t.Fatalf("%s %s: %d %s, want %d", method, path, answer.Status, answer.Body, status)
	}
	if status == http.StatusOK && out != nil {
		if err := protojson.Unmarshal([]byte(answer.Body), out); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, answer.Body)
		}
	}
	return answer
}

// holds lists all held closes, newest first: id state findings/open waiting by.
func holds(t testing.TB, s *apitest.Server) (list []string) {
	t.Helper()
	out := &scansv1.ListHeldClosesResponse{}
	held(t, s, s.Token, http.StatusOK, http.MethodGet, "held-closes", "", out)
	for _, c := range out.GetHeldCloses() {
		list = append(list, fmt.Sprintf("%d %s %d/%d %d %s", c.GetId(), c.GetState(), c.GetFindings(), c.GetOpen(), c.GetWaiting(), c.GetActorKind()))
	}
	return list
}

// statesOf counts the findings by state.
func statesOf(t testing.TB, s *apitest.Server) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, f := range s.Store.Reader.Finding.Query().AllX(s.System(t)) {
		counts[f.State]++
	}
	return counts
}

// limits changes the limits of the deployment or a project.
func limits(t testing.TB, s *apitest.Server, body string) {
	t.Helper()
	held(t, s, s.Token, http.StatusOK, http.MethodPatch, "close-limits", body, &scansv1.UpdateCloseLimitsResponse{})
}

// webReader adds a user who may only read the first project, and returns a token.
func webReader(t testing.TB, s *apitest.Server) string {
	t.Helper()
	token := s.AddUser(t, s.Tenant, "mia@acme.test", access.RoleMember)
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		id, err := tx.User.Query().Where(user.Email("mia@acme.test")).OnlyID(ctx)
		if err != nil {
			return err
		}
		team, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
		if err != nil {
			return err
		}
		if err := tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetProjectID(1).SetCreatedAt(1).Exec(ctx); err != nil {
			return err
		}
		return tx.TeamMember.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetUserID(id).SetRole("TEAM_ROLE_READONLY").SetCreatedAt(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}
