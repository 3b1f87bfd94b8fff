package findings_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestDevelopersMayNotIgnore: triagePermission of a product says whether developers may ignore its findings.
func TestDevelopersMayNotIgnore(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
		ignore := `{"issue_type":"sast","new_triage_state":"ignored","new_triage_reason":"false_positive","issue_ids":` + idList(t, l, "a") + `}`
		reopen := `{"issue_type":"sast","new_triage_state":"reopened","issue_ids":` + idList(t, l, "a") + `}`
		issues := findingsv1.NewIssuesServiceClient(s.Conn)
		for _, permission := range []string{"TRIAGE_PERMISSION_NONE", "TRIAGE_PERMISSION_REQUEST", "TRIAGE_PERMISSION_IGNORE"} {
			allowed := permission == "TRIAGE_PERMISSION_IGNORE"
			putSAST(t, s, permission)
			got := s.Do(t, member, http.MethodPost, triagePath, ignore)
			if want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[allowed]; got.Status != want {
				t.Errorf("%s: a member ignores: %d %s", permission, got.Status, got.Body)
			}
			if !allowed && !strings.Contains(got.Body, "developers may not ignore sast findings") {
				t.Errorf("%s: %s", permission, got.Body)
			}
			for _, state := range []string{"ignored", "provisionally_ignored"} {
				_, err := findingsv1.NewTriageServiceClient(s.Conn).BulkTriage(s.Context(t, member), &findingsv1.BulkTriageRequest{
					DeploymentSlug: "acme", IssueType: "sast", IssueIds: l.ids(t, "a"), NewTriageState: state,
				})
				if want := map[bool]codes.Code{true: codes.OK, false: codes.PermissionDenied}[allowed]; status.Code(err) != want {
					t.Errorf("%s: a member's %s over gRPC: %v", permission, state, err)
				}
			}
			provisional := `{"issueType":"ISSUE_TYPE_SAST","filter":{"ids":` + idList(t, l, "b") + `},"params":{"triageState":"FINDING_TRIAGE_STATE_PROVISIONALLY_IGNORED"}}`
			answer := s.Do(t, member, http.MethodPatch, bulkPath(s.Tenant), provisional)
			if want := map[bool]int{true: http.StatusForbidden, false: http.StatusOK}[permission == "TRIAGE_PERMISSION_NONE"]; answer.Status != want {
				t.Errorf("%s: a member's provisional update: %d %s", permission, answer.Status, answer.Body)
			}
			if ignored := stored(t, s, l, "b").Status == "provisionally_ignored"; ignored != allowed {
				t.Errorf("%s: b is provisionally ignored: %v", permission, ignored)
			}
			if permission == "TRIAGE_PERMISSION_REQUEST" {
				if got := exceptions(t, s, l, member, ""); got != "b REQUESTED API" {
					t.Errorf("the requests are %q", got)
				}
				// Another token decides, although the same administrator created both.
				s.Body(t, s.Token, http.MethodPost, exceptionsPath(s.Tenant, "/review"), `{"requestIds":["1"],"decision":"EXCEPTION_DECISION_APPROVE"}`, http.StatusOK)
				if got := stored(t, s, l, "b").Status; got != "ignored" {
					t.Errorf("the approved exception is %s", got)
				}
			}
			for caller, body := range map[string]string{s.Token: ignore, member: reopen} {
				if got := s.Do(t, caller, http.MethodPost, triagePath, body); got.Status != http.StatusOK {
					t.Errorf("%s: %s: %d %s", permission, body, got.Status, got.Body)
				}
			}
			issue, err := issues.GetIssue(s.Context(t, member), &findingsv1.GetIssueRequest{DeploymentId: s.DeploymentID, IssueId: l.ids(t, "a")[0]})
			if err != nil || issue.GetTriagePermission().String() != permission {
				t.Errorf("the issue shows %v (%v), want %s", issue.GetTriagePermission(), err, permission)
			}
		}
	})
}

// TestTriagePermissionOfTeams: issues show what the caller's role in the teams of the project allows.
func TestTriagePermissionOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		mia := memberOf(t, s, l, "acme/web")
		for _, c := range []struct{ role, want string }{
			{"TEAM_ROLE_MANAGER", "TRIAGE_PERMISSION_IGNORE"}, {"TEAM_ROLE_MEMBER", "TRIAGE_PERMISSION_IGNORE"}, {"TEAM_ROLE_READONLY", "TRIAGE_PERMISSION_NONE"},
		} {
			err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				return tx.TeamMember.Update().SetRole(c.role).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			base := fmt.Sprintf("/api/agent/deployments/%d/issues", s.DeploymentID)
			for _, body := range []string{
				s.Body(t, mia, http.MethodGet, fmt.Sprintf("%s/v2/%d", base, l.ids(t, "b")[0]), "", http.StatusOK),
				s.Body(t, mia, http.MethodPost, base, `{"filter":{"ids":`+idList(t, l, "b")+`}}`, http.StatusOK),
			} {
				if !strings.Contains(body, `"triagePermission":"`+c.want+`"`) {
					t.Errorf("%s: want %s in %s", c.role, c.want, body)
				}
			}
		}
	})
}

func putSAST(t *testing.T, s *apitest.Server, permission string) {
	t.Helper()
	stored, err := proto.Marshal(&deploymentsv1.DeploymentProductConfig{Sast: &deploymentsv1.SastProductConfig{
		Enabled: true, TriagePermission: deploymentsv1.TriagePermission(deploymentsv1.TriagePermission_value[permission]),
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Deployment.UpdateOneID(s.DeploymentID).SetProducts(stored).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}
