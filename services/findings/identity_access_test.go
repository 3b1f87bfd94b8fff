package findings_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/teammember"
	"github.com/palisade/palisade/ent/user"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func TestIdentityChangesOverGRPC(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMerge(t, s)
		client, ctx := findingsv1.NewFindingIdentityServiceClient(s.Conn), s.Context(t, s.Token)
		merged, err := client.MergeFindings(ctx, &findingsv1.MergeFindingsRequest{DeploymentId: s.DeploymentID, FindingId: l.findings["new"], Into: l.findings["old"]})
		if err != nil || merged.GetChange().GetOtherId() != l.findings["new"] {
			t.Fatalf("%v %v", merged, err)
		}
		_, err = client.SplitFinding(ctx, &findingsv1.SplitFindingRequest{DeploymentId: s.DeploymentID, FindingId: l.findings["new"]})
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("split of a merged one: %v", err)
		}
		undo := &findingsv1.UndoIdentityChangeRequest{DeploymentId: s.DeploymentID, IdentityChangeId: merged.GetChange().GetId(), Note: "no"}
		undone, err := client.UndoIdentityChange(ctx, undo)
		if err != nil || undone.GetChange().GetUndoneAt() == nil || len(undone.GetFindings()) != 2 {
			t.Fatalf("%v %v", undone, err)
		}
		if _, err = client.UndoIdentityChange(ctx, undo); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("second undo: %v", err)
		}
		list, err := client.ListIdentityChanges(ctx, &findingsv1.ListIdentityChangesRequest{DeploymentId: s.DeploymentID})
		if err != nil || len(list.GetChanges()) != 1 {
			t.Fatalf("%v %v", list, err)
		}
		apitest.Same(t, list, s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/identity-changes", s.DeploymentID)))

		trail := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?objectKind=identity_change", s.DeploymentID))
		for _, part := range []string{"FindingIdentityService/MergeFindings", "FindingIdentityService/UndoIdentityChange", `"changes":[{"kind":"identity_change","id":"1"`} {
			if !strings.Contains(trail, part) {
				t.Errorf("the audit trail has no %s: %s", part, trail)
			}
		}
	})
}

// Members of a team change identities in its projects only, and need more than the read role.
func TestIdentityChangesOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMerge(t, s)
		mia := s.AddUser(t, s.Tenant, "mia@acme.test", access.RoleMember)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			id, err := tx.User.Query().Where(user.Email("mia@acme.test")).OnlyID(ctx)
			if err != nil {
				return err
			}
			team, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			err = tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetProjectID(l.projects["acme/web"]).SetCreatedAt(1).Exec(ctx)
			if err != nil {
				return err
			}
			return tx.TeamMember.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetUserID(id).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		send := func(status int, method, path, body string) {
			t.Helper()
			if got := s.Do(t, mia, method, fmt.Sprintf("/api/v1/deployments/%d/%s", s.DeploymentID, path), body); got.Status != status {
				t.Errorf("%s %s: %d %s, want %d", method, path, got.Status, got.Body, status)
			}
		}
		merge, body := fmt.Sprintf("findings/%d/merge", l.findings["new"]), fmt.Sprintf(`{"into":%d}`, l.findings["old"])
		send(http.StatusNotFound, "GET", fmt.Sprintf("findings/%d/identity", l.findings["api"]), "")
		send(http.StatusNotFound, "POST", fmt.Sprintf("findings/%d/split", l.findings["api"]), "{}")
		send(http.StatusNotFound, "POST", merge, fmt.Sprintf(`{"into":%d}`, l.findings["api"]))
		send(http.StatusOK, "POST", merge, body)
		send(http.StatusOK, "POST", "identity-changes/1/undo", "{}")
		send(http.StatusOK, "POST", fmt.Sprintf("findings/%d/split", l.findings["old-dev"]), "{}")
		err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.TeamMember.Update().Where(teammember.Role("TEAM_ROLE_MEMBER")).SetRole("TEAM_ROLE_READONLY").Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		send(http.StatusOK, "GET", fmt.Sprintf("findings/%d/identity", l.findings["new"]), "")
		send(http.StatusNotFound, "POST", merge, body)
		send(http.StatusNotFound, "POST", "identity-changes/2/undo", "{}")
	})
}

// Concurrent identity changes, triage and scans of one project are serialized.
func TestIdentityChangesAtOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMerge(t, s)
		results := make(chan int, 8)
		for range cap(results) {
			go func() {
				path := fmt.Sprintf("/api/v1/deployments/%d/findings/%d/merge", s.DeploymentID, l.findings["new"])
				results <- s.Try(t, s.Token, http.MethodPost, path, fmt.Sprintf(`{"into":%d}`, l.findings["old"])).Status
			}()
		}
		codes := map[int]int{}
		for range cap(results) {
			codes[<-results]++
		}
		if codes[200] != 1 || codes[400] != cap(results)-1 {
			t.Errorf("answers of eight equal merges: %v", codes)
		}
		if n := s.Store.Reader.IdentityChange.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d changes", n)
		}
	})
}
