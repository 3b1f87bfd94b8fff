package findings_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/token"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func exceptionsPath(of apitest.Tenant, more string) string {
	return fmt.Sprintf("/api/agent/deployments/%d/exception-requests%s", of.DeploymentID, more)
}

// exceptions lists requests as "finding state source".
func exceptions(t testing.TB, s *apitest.Server, l *fixture, token, query string) string {
	t.Helper()
	var page struct {
		Requests []struct {
			ID        string
			FindingID int64 `json:",string"`
			State     string
			Source    string
		}
	}
	body := s.Body(t, token, http.MethodGet, exceptionsPath(s.Tenant, query), "", http.StatusOK)
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	var out []string
	for _, r := range page.Requests {
		for label, id := range l.findings {
			if id == r.FindingID {
				out = append(out, label+" "+strings.TrimPrefix(r.State, "FINDING_EXCEPTION_REQUEST_STATE_")+" "+strings.TrimPrefix(r.Source, "FINDING_EXCEPTION_REQUEST_SOURCE_"))
			}
		}
	}
	return strings.Join(out, ", ")
}

const ignoreSAST = `{"issueType":"ISSUE_TYPE_SAST","filter":{"ids":%s},"params":{"triageState":"FINDING_TRIAGE_STATE_IGNORED",` +
	`"triageReason":"FINDING_TRIAGE_REASON_FALSE_POSITIVE","note":"test data"}}`

// TestExceptionRequests: where developers request exceptions, ignoring findings requests one for each identity. An
// administrator approves or rejects.
func TestExceptionRequests(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		putSAST(t, s, "TRIAGE_PERMISSION_REQUEST")
		member := s.AddUser(t, s.Tenant, "dev@acme.test", access.RoleMember)
		request := fmt.Sprintf(ignoreSAST, idList(t, l, "a a-dev b c"))
		shown := bulk(t, s, member, http.MethodPost, bulkPath(s.Tenant, "preview"), request)
		if shown.UpdatedCount != 0 || *shown.NumIgnored != 0 || *shown.NumExceptionsRequested != 4 || *shown.NumSkipped != 0 {
			t.Errorf("preview: %+v", shown)
		}
		apitest.Golden(t, "bulk_update_requested", s.Body(t, member, http.MethodPatch, bulkPath(s.Tenant), request, http.StatusOK))
		if got := exceptions(t, s, l, member, ""); got != "c REQUESTED SEMGREP_APPSEC_PLATFORM, b REQUESTED SEMGREP_APPSEC_PLATFORM, a REQUESTED SEMGREP_APPSEC_PLATFORM" {
			t.Errorf("requests: %s", got)
		}
		wantEvents(t, s, l, "a-dev", "exception_requested|open|open|false_positive|test data|user")
		if shown := bulk(t, s, member, http.MethodPost, bulkPath(s.Tenant, "preview"), request); len(shown.Examples) != 0 || *shown.NumSkipped != 4 {
			t.Errorf("a preview of skipped findings: %+v", shown)
		}
		again := bulk(t, s, member, http.MethodPatch, bulkPath(s.Tenant), request)
		if again.UpdatedCount != 0 || *again.NumExceptionsRequested != 0 || *again.NumSkipped != 4 {
			t.Errorf("requested again: %+v", again)
		}
		// Other states, and products without approval, need none. Products that developers may not ignore are skipped.
		if done := bulk(t, s, member, http.MethodPatch, bulkPath(s.Tenant), `{"issueType":"ISSUE_TYPE_SAST","params":{"note":"n"}}`); done.NumSkipped != nil || done.UpdatedCount == 0 {
			t.Errorf("a note: %+v", done)
		}
		mixed := bulk(t, s, member, http.MethodPatch, bulkPath(s.Tenant), `{"filter":{"ids":`+idList(t, l, "a a-sca")+`},"params":{"triageState":"FINDING_TRIAGE_STATE_IGNORED"}}`)
		if *mixed.NumIgnored != 1 || *mixed.NumExceptionsRequested != 0 || *mixed.NumSkipped != 1 || mixed.UpdatedCount != 1 {
			t.Errorf("two products: %+v", mixed)
		}
		if page := s.Get(t, "/api/notifications/in-app/deployments/"+fmt.Sprint(s.DeploymentID)); strings.Count(page, "Exceptions are requested") != 1 {
			t.Errorf("notifications: %s", page)
		}

		// Only administrators decide, and not about their own requests.
		if answer := s.Do(t, member, http.MethodPost, exceptionsPath(s.Tenant, "/review"), `{"requestIds":["1"],"decision":"EXCEPTION_DECISION_APPROVE"}`); answer.Status != http.StatusForbidden {
			t.Errorf("a member approves: %d %s", answer.Status, answer.Body)
		}
		client := findingsv1.NewExceptionRequestsServiceClient(s.Conn)
		review := func(decision findingsv1.ExceptionDecision, ids ...int64) (*findingsv1.ReviewExceptionRequestsResponse, error) {
			return client.ReviewExceptionRequests(s.Context(t, s.Token), &findingsv1.ReviewExceptionRequestsRequest{
				DeploymentId: s.DeploymentID, RequestIds: ids, Decision: decision, Note: "seen",
			})
		}
		list, err := client.ListExceptionRequests(s.Context(t, s.Token), &findingsv1.ListExceptionRequestsRequest{DeploymentId: s.DeploymentID})
		if err != nil || len(list.GetRequests()) != 3 {
			t.Fatalf("%v %v", list, err)
		}
		of := map[int64]int64{}
		for _, r := range list.GetRequests() {
			of[r.GetFindingId()] = r.GetId()
		}
		approved, err := review(findingsv1.ExceptionDecision_EXCEPTION_DECISION_APPROVE, of[l.findings["a"]], of[l.findings["b"]])
		if err != nil || len(approved.GetChangeIds()) != 1 || len(approved.GetRequests()) != 2 {
			t.Fatalf("%v %v", approved, err)
		}
		wantEvents(t, s, l, "b", "exception_requested|open|open|false_positive|test data|user", "noted|open|open||n|user",
			"exception_approved|open|open|false_positive|seen|token", "triaged|open|ignored|false_positive|test data|token")
		if row := stored(t, s, l, "a-dev"); row.Status != "ignored" || *row.TriageReason != "false_positive" || *row.TriageComment != "test data" {
			t.Errorf("the approved one on another ref is %+v", row)
		}
		if _, err := review(findingsv1.ExceptionDecision_EXCEPTION_DECISION_REJECT, of[l.findings["c"]], of[l.findings["a"]]); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("a second decision: %v", err)
		}
		if _, err := review(findingsv1.ExceptionDecision_EXCEPTION_DECISION_REJECT, 987); status.Code(err) != codes.NotFound {
			t.Errorf("an unknown request: %v", err)
		}
		body := s.Body(t, s.Token, http.MethodPost, exceptionsPath(s.Tenant, "/review"), fmt.Sprintf(`{"requestIds":["%d"],"decision":"EXCEPTION_DECISION_REJECT","note":"fix it"}`, of[l.findings["c"]]), http.StatusOK)
		if !strings.Contains(body, `"findingStatus":"fixing"`) || !strings.Contains(body, `"reviewNote":"fix it"`) {
			t.Errorf("rejected: %s", body)
		}
		if row := stored(t, s, l, "c"); row.Status != "fixing" || row.TriageReason != nil || *row.TriageComment != "fix it" {
			t.Errorf("the rejected one is %+v", row)
		}
		if got := exceptions(t, s, l, s.Token, "?state=FINDING_EXCEPTION_REQUEST_STATE_APPROVED"); got != "b APPROVED SEMGREP_APPSEC_PLATFORM, a APPROVED SEMGREP_APPSEC_PLATFORM" {
			t.Errorf("approved requests: %s", got)
		}
		// An approval is a change that can be undone. The requests are open again, until it is made again.
		undone := undo(t, s, s.Token, fmt.Sprint(approved.GetChangeIds()[0]))
		if row := stored(t, s, l, "b"); row.Status != "open" || *row.TriageComment != "n" {
			t.Errorf("after the undo it is %+v", row)
		}
		const reopened = "b REQUESTED SEMGREP_APPSEC_PLATFORM, a REQUESTED SEMGREP_APPSEC_PLATFORM"
		if got := exceptions(t, s, l, s.Token, "?state=FINDING_EXCEPTION_REQUEST_STATE_REQUESTED"); got != reopened {
			t.Errorf("after the undo, the open requests are %s", got)
		}
		redone := undo(t, s, s.Token, fmt.Sprint(undone.Change.ID))
		if got := exceptions(t, s, l, s.Token, "?state=FINDING_EXCEPTION_REQUEST_STATE_REQUESTED"); got != "" {
			t.Errorf("after the undo of the undo, the open requests are %s", got)
		}
		undo(t, s, s.Token, fmt.Sprint(redone.Change.ID))
		if got := exceptions(t, s, l, s.Token, "?state=FINDING_EXCEPTION_REQUEST_STATE_REQUESTED"); got != reopened {
			t.Errorf("in the end, the open requests are %s", got)
		}
		// A direct decision answers a request: a review of it would override the decision.
		triage(t, s, l, `"issue_type":"sast","new_triage_state":"reviewing","new_note":"later","issue_ids":`+idList(t, l, "b"))
		if _, err := review(findingsv1.ExceptionDecision_EXCEPTION_DECISION_APPROVE, of[l.findings["b"]]); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("a review after a decision: %v", err)
		}
		triage(t, s, l, `"issue_type":"sast","new_triage_state":"ignored","issue_ids":`+idList(t, l, "a-dev")) // the same identity
		if got := exceptions(t, s, l, s.Token, ""); got != "c REJECTED SEMGREP_APPSEC_PLATFORM, b REJECTED SEMGREP_APPSEC_PLATFORM, a APPROVED SEMGREP_APPSEC_PLATFORM" {
			t.Errorf("after decisions, the requests are %s", got)
		}
		err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error { // the times of the response
			_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE exception_requests SET created_at = %d, reviewed_at = CASE WHEN reviewed_at > 0 THEN %d END", base, base+1))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Golden(t, "exception_requests", s.Get(t, exceptionsPath(s.Tenant, "")))
		first := s.Get(t, exceptionsPath(s.Tenant, "?limit=2"))
		var page struct{ Cursor string }
		if err := json.Unmarshal([]byte(first), &page); err != nil || page.Cursor == "" {
			t.Fatalf("%v %s", err, first)
		}
		if got := exceptions(t, s, l, s.Token, "?limit=2&cursor="+page.Cursor); got != "a APPROVED SEMGREP_APPSEC_PLATFORM" {
			t.Errorf("the last page: %s", got)
		}
		if got := exceptions(t, s, l, s.Token, fmt.Sprintf("?findingId=%d", l.findings["c"])); got != "c REJECTED SEMGREP_APPSEC_PLATFORM" {
			t.Errorf("of one finding: %s", got)
		}
	})
}

// TestExceptionsOfOthers: members see requests of their projects only; an administrator does not decide about an own
// request; other tenants see nothing.
func TestExceptionsOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
		l.seed(t, s, fact{label: "web"}, fact{label: "api", project: "acme/api"})
		putSAST(t, s, "TRIAGE_PERMISSION_REQUEST")
		mia := memberOf(t, s, l, "acme/web")
		all := `{"params":{"triageState":"FINDING_TRIAGE_STATE_IGNORED"}}`
		if done := bulk(t, s, mia, http.MethodPatch, bulkPath(s.Tenant), all); *done.NumExceptionsRequested != 1 || done.ChangeID != 0 {
			t.Errorf("a member's request: %+v", done)
		}
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			admin, err := tx.Token.Query().Where(token.DeploymentID(s.DeploymentID)).Order(ent.Asc(token.FieldID)).FirstID(ctx)
			if err != nil {
				return err
			}
			return tx.ExceptionRequest.Create().SetDeploymentID(s.DeploymentID).SetProjectID(l.projects["acme/api"]).SetFindingID(l.findings["api"]).
				SetSource("api").SetReason("no_time").SetRequesterKind("token").SetRequesterID(admin).SetRequesterLogin("x").SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := exceptions(t, s, l, mia, ""); got != "web REQUESTED SEMGREP_APPSEC_PLATFORM" {
			t.Errorf("a member sees %s", got)
		}
		if got := exceptions(t, s, l, s.Token, ""); got != "api REQUESTED API, web REQUESTED SEMGREP_APPSEC_PLATFORM" {
			t.Errorf("an administrator sees %s", got)
		}
		rival := s.AddTenant(t, "rival")
		if list := s.Body(t, rival.Token, http.MethodGet, exceptionsPath(rival, ""), "", http.StatusOK); list != `{"requests":[],"cursor":""}` {
			t.Errorf("another tenant sees %s", list)
		}
		if answer := s.Do(t, rival.Token, http.MethodPost, exceptionsPath(rival, "/review"), `{"requestIds":["1"],"decision":"EXCEPTION_DECISION_APPROVE"}`); answer.Status != http.StatusNotFound {
			t.Errorf("another tenant approves: %d %s", answer.Status, answer.Body)
		}
		// An administrator's own request, for example from the time before the role.
		_, err = findingsv1.NewExceptionRequestsServiceClient(s.Conn).ReviewExceptionRequests(s.Context(t, s.Token), &findingsv1.ReviewExceptionRequestsRequest{
			DeploymentId: s.DeploymentID, RequestIds: []int64{2}, Decision: findingsv1.ExceptionDecision_EXCEPTION_DECISION_APPROVE,
		})
		if status.Code(err) != codes.PermissionDenied {
			t.Errorf("an administrator approves an own request: %v", err)
		}
	})
}
