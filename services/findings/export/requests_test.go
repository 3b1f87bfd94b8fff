package export_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/exceptionrequest"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// letRequest makes developers request exceptions.
func letRequest(t testing.TB, s *apitest.Server) {
	t.Helper()
	stored, err := proto.Marshal(&deploymentsv1.DeploymentProductConfig{Sast: &deploymentsv1.SastProductConfig{
		Enabled: true, TriagePermission: deploymentsv1.TriagePermission_TRIAGE_PERMISSION_REQUEST,
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

// join makes a user an administrator of another deployment.
func join(t testing.TB, s *apitest.Server, of apitest.Tenant, email string) {
	t.Helper()
	id := s.Store.Reader.User.Query().Where(user.Email(email)).OnlyIDX(s.System(t))
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Membership.Create().SetDeploymentID(of.DeploymentID).SetUserID(id).SetRole(string(access.RoleAdmin)).SetCreatedAt(store.Now()).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestImportedRequests: requests for exceptions are on the server that a file is imported into. Open ones can be
// approved there, but not by who made them.
func TestImportedRequests(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		letRequest(t, s)
		s.Upload(t, "acme/web", "main", []byte(code))
		dev := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)
		request := func(id int64, note string) {
			t.Helper()
			s.Body(t, dev, http.MethodPatch, fmt.Sprintf("/api/agent/deployments/%d/findings/v2", s.DeploymentID), fmt.Sprintf(`{"issueType":"ISSUE_TYPE_SAST",
				"filter":{"ids":["%d"]},"params":{"triageState":"FINDING_TRIAGE_STATE_IGNORED","triageReason":"FINDING_TRIAGE_REASON_FALSE_POSITIVE","note":%q}}`, id, note), http.StatusOK)
		}
		review := func(of apitest.Tenant, token, decision string, want int) string {
			t.Helper()
			id := s.Store.Reader.ExceptionRequest.Query().Where(exceptionrequest.DeploymentID(of.DeploymentID), exceptionrequest.State("requested")).OnlyIDX(s.System(t))
			return s.Body(t, token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/exception-requests/review", of.DeploymentID),
				fmt.Sprintf(`{"requestIds":["%d"],"decision":"EXCEPTION_DECISION_%s","note":"seen"}`, id, decision), want)
		}
		first := latestOn(t, s, "main") - 2
		request(first, "please")
		review(s.Tenant, s.Token, "REJECT", http.StatusOK)
		request(first+1, "test data")
		review(s.Tenant, s.Token, "APPROVE", http.StatusOK)
		request(first, "really") // stays open
		file := export(t, s, s.Tenant, s.Token, ndjson).text
		for _, text := range []string{`"requester":"dev@acme.test"`, `"reviewNote":"seen"`, `"note":"really"`} {
			if !strings.Contains(file, text) {
				t.Errorf("the file lacks %s", text)
			}
		}
		for _, name := range []string{"knows the requester", "knows nobody"} {
			of := s.AddTenant(t, strings.ReplaceAll(name, " ", "-"))
			if name == "knows the requester" {
				join(t, s, of, "dev@acme.test")
			}
			for range 2 {
				load(t, s, of, file, http.StatusOK)
			}
			if again := export(t, s, of, of.Token, ndjson).text; again != file {
				t.Errorf("%s: %s", name, difference(file, again))
			}
			list := s.Body(t, of.Token, http.MethodGet, fmt.Sprintf("/api/agent/deployments/%d/exception-requests", of.DeploymentID), "", http.StatusOK)
			if strings.Count(list, `"requesterLogin":"dev@acme.test"`) != 3 || strings.Count(list, "STATE_REQUESTED") != 1 || strings.Count(list, `"reviewNote":"seen"`) != 2 {
				t.Errorf("%s: %s", name, list)
			}
			issues := s.Body(t, of.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/issues", of.DeploymentID), `{"issueType":"ISSUE_TYPE_SAST"}`, http.StatusOK)
			if strings.Count(issues, `"requesterLogin":"dev@acme.test"`) != 2 {
				t.Errorf("%s: the findings do not show their requests: %s", name, issues)
			}
			if name == "knows nobody" {
				join(t, s, of, "dev@acme.test")
			}
			if got := review(of, dev, "APPROVE", http.StatusForbidden); !strings.Contains(got, "your own") {
				t.Errorf("%s: %s", name, got)
			}
			review(of, of.Token, "APPROVE", http.StatusOK)
		}
		invalid := s.AddTenant(t, "invalid")
		for text, c := range map[string]struct{ with, want string }{
			`"state":"requested"`:                     {`"state":"x"`, "exceptionRequests[1].state must be one of requested"},
			`"source":"platform"`:                     {`"source":"x"`, "exceptionRequests[0].source must be one of scm_comment"},
			`"requesterKind":"user"`:                  {`"requesterKind":"x"`, "exceptionRequests[0].requesterKind must be one of"},
			`"state":"rejected","source"`:             {`"state":"requested","source"`, "exceptionRequests[0].reviewedAt must be set unless the request is open"},
			`"state":"requested","source":"platform"`: {`"state":"approved","source":"platform"`, "exceptionRequests[1].reviewedAt must be set unless"},
		} {
			if got := load(t, s, invalid, strings.ReplaceAll(file, text, c.with), http.StatusBadRequest); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s", c.with, got)
			}
		}
	})
}
