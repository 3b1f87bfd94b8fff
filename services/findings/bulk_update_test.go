package findings_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// bulkPath is a path of bulk updates and changes in a deployment.
func bulkPath(of apitest.Tenant, parts ...string) string {
	return strings.Join(append([]string{fmt.Sprintf("/api/agent/deployments/%d/findings/v2", of.DeploymentID)}, parts...), "/")
}

// updated is the response of an update, a preview or an undo, as far as tests read it.
type updated struct {
	PreviewToken                               string
	IssueParentCount, IssueCount, UpdatedCount int
	NumIgnored, NumExceptionsRequested         *int
	NumSkipped                                 *int
	ChangeID                                   int64 `json:",string"`
	Statuses                                   []struct {
		Status string
		Count  int
	}
	Examples []struct {
		FindingID int64 `json:",string"`
		Project   string
		RuleName  string
	}
	RestoredCount, KeptCount int
	Kept                     []struct {
		Reason     string
		Count      int
		FindingIDs []string
	}
	Change struct {
		ID       int64 `json:",string"`
		UndoesID int64 `json:",string"`
	}
}

// bulk sends a request that must succeed.
func bulk(t testing.TB, s *apitest.Server, token, method, path, body string) (out updated) {
	t.Helper()
	answer := s.Body(t, token, method, path, body, http.StatusOK)
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return out
}

// TestBulkUpdate: an update by filter writes what triage of the first API writes, and spreads to the same refs.
func TestBulkUpdate(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		body := fmt.Sprintf(`{"issueType":"ISSUE_TYPE_SAST","filter":{"ids":[%d,%d]},"params":{"triageState":"FINDING_TRIAGE_STATE_IGNORED",`+
			`"triageReason":"FINDING_TRIAGE_REASON_ACCEPTABLE_RISK","note":"agreed"}}`, l.findings["a"], l.findings["a-removed"])
		answer := s.Body(t, s.Token, http.MethodPatch, bulkPath(s.Tenant), body, http.StatusOK)
		apitest.Golden(t, "bulk_update", answer)
		wantEvents(t, s, l, "a", "triaged|open|ignored|acceptable_risk|agreed|token")
		wantEvents(t, s, l, "a-dev", "triage_spread|open|ignored|acceptable_risk|agreed|token")
		wantEvents(t, s, l, "a-fixed", "triage_spread|fixed|fixed|acceptable_risk|agreed|token")
		wantEvents(t, s, l, "a-removed", "triage_spread|removed|removed|acceptable_risk|agreed|token")
		wantEvents(t, s, l, "a-sca")
		wantEvents(t, s, l, "a-api")
		for label, want := range map[string]string{"a": "ignored", "a-dev": "ignored", "a-fixed": "fixed", "a-muted": "ignored", "a-removed": "removed"} {
			row := stored(t, s, l, label)
			if row.Status != want || row.TriageState != "ignored" || *row.TriageReason != "acceptable_risk" || *row.TriageComment != "agreed" || row.TriagedAt == nil {
				t.Errorf("%s is %+v, want status %s", label, row, want)
			}
		}
		// Over gRPC, and again: nothing is left to change.
		response, err := findingsv1.NewIssuesServiceClient(s.Conn).BulkUpdateIssues(s.Context(t, s.Token), &findingsv1.BulkUpdateIssuesRequest{
			DeploymentId: s.DeploymentID, IssueTypes: []findingsv1.IssueType{findingsv1.IssueType_ISSUE_TYPE_SAST},
			Filter: &findingsv1.IssuesFilter{Ids: l.ids(t, "a a-dev")},
			Params: &findingsv1.UpdateFindingParams{TriageState: findingsv1.FindingTriageState_FINDING_TRIAGE_STATE_IGNORED, TriageReason: findingsv1.FindingTriageReason_FINDING_TRIAGE_REASON_ACCEPTABLE_RISK},
		})
		if err != nil || response.GetIssueParentCount() != 1 || response.GetIssueCount() != 2 || response.GetUpdatedCount() != 0 || response.NumIgnored != nil {
			t.Errorf("again: %v %v", response, err)
		}
		// Without a type, all products are updated; without a match, nothing is, and there is no change to undo.
		note := bulk(t, s, s.Token, http.MethodPatch, bulkPath(s.Tenant), `{"params":{"note":"look"}}`)
		if note.IssueCount != 8 || note.IssueParentCount != 5 || note.UpdatedCount != 9 { // the removed one shares the note
			t.Errorf("all: %+v", note)
		}
		apitest.Golden(t, "bulk_update_none", s.Body(t, s.Token, http.MethodPatch, bulkPath(s.Tenant), `{"issueType":"ISSUE_TYPE_RESEARCH","params":{"note":"x"}}`, http.StatusOK))

		trail := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?objectKind=triage_change", s.DeploymentID))
		if !strings.Contains(trail, "IssuesService/BulkUpdateIssues") || strings.Count(trail, `"kind":"triage_change"`) != 2 {
			t.Errorf("the audit trail is %s", trail)
		}
	})
}

func TestBulkUpdateIsRefused(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		var bodies strings.Builder
		for _, params := range []string{
			``, `,"params":{}`, `,"params":{"triageState":"FINDING_TRIAGE_STATE_UNTRIAGED"}`, `,"params":{"triageState":"FINDING_TRIAGE_STATE_UNKNOWN"}`,
			`,"params":{"triageState":"FINDING_TRIAGE_STATE_IGNORED","triageReason":"FINDING_TRIAGE_REASON_UNKNOWN"}`,
			`,"params":{"triageState":"FINDING_TRIAGE_STATE_FIXING","triageReason":"FINDING_TRIAGE_REASON_NO_TIME"}`,
			`,"params":{"note":"x"},"previewToken":"x"`, `,"params":{"note":" \n "}`,
		} {
			sent := `{"filter":{"ids":[` + fmt.Sprint(l.findings["a"]) + `]}` + params + `}`
			bodies.WriteString(params + "\n\t" + failure(t, s, http.StatusBadRequest, http.MethodPatch, bulkPath(s.Tenant), sent) + "\n")
		}
		apitest.Golden(t, "bulk_update_refused", bodies.String())
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		for _, path := range []string{bulkPath(s.Tenant), bulkPath(s.Tenant, "preview"), bulkPath(s.Tenant, "undo", "1")} {
			method := http.MethodPost
			if path == bulkPath(s.Tenant) {
				method = http.MethodPatch
			}
			if answer := s.Do(t, reader, method, path, `{"params":{"note":"x"}}`); answer.Status != http.StatusForbidden {
				t.Errorf("a reader's %s: %d %s", path, answer.Status, answer.Body)
			}
		}
		wantEvents(t, s, l, "a")
	})
}

// TestPreview: the number previewed is the number changed, or 409.
func TestPreview(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		const request = `"issueType":"ISSUE_TYPE_SAST","filter":{"rules":["py.sqli"]},"params":{"triageState":"FINDING_TRIAGE_STATE_REVIEWING"}`
		preview := func(token string) updated {
			t.Helper()
			return bulk(t, s, token, http.MethodPost, bulkPath(s.Tenant, "preview"), "{"+request+"}")
		}
		apply := func(token, preview, request string) apitest.Answer {
			t.Helper()
			return s.Do(t, token, http.MethodPatch, bulkPath(s.Tenant), `{"previewToken":"`+preview+`",`+request+`}`)
		}
		shown := preview(s.Token)
		if shown.IssueCount != 7 || shown.IssueParentCount != 4 || shown.UpdatedCount != 8 || len(shown.Examples) != 7 || shown.NumIgnored != nil {
			t.Errorf("preview %+v", shown)
		}
		if got := fmt.Sprint(shown.Statuses); got != "[{open 5} {fixed 1} {ignored 1}]" {
			t.Errorf("statuses %s", got)
		}
		if first := shown.Examples[0]; first.FindingID != l.findings["a"] || first.Project != "acme/web" || first.RuleName != "py.sqli" {
			t.Errorf("example %+v", first)
		}
		wantEvents(t, s, l, "a") // a preview changes nothing

		// The token is bound to the caller, the request and the deployment.
		other := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleAdmin})
		rival := s.AddTenant(t, "rival")
		wider := strings.Replace(request, `"rules":["py.sqli"]`, `"rules":["py.sqli","js.xss"]`, 1)
		for name, answer := range map[string]apitest.Answer{
			"another caller": apply(other, shown.PreviewToken, request), "another filter": apply(s.Token, shown.PreviewToken, wider),
			"other parameters":   apply(s.Token, shown.PreviewToken, strings.Replace(request, "REVIEWING", "FIXING", 1)),
			"a changed token":    apply(s.Token, shown.PreviewToken[:40]+strings.Repeat("x", len(shown.PreviewToken)-40), request),
			"another deployment": s.Do(t, rival.Token, http.MethodPatch, bulkPath(rival), `{"previewToken":"`+shown.PreviewToken+`",`+request+`}`),
		} {
			if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "preview again") {
				t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
			}
		}

		// A decision, a new finding or a change on another ref since the preview is a conflict.
		for name, meanwhile := range map[string]func(){
			"a decision": func() {
				triage(t, s, l, `"issue_type":"sast","new_triage_state":"fixing","issue_ids":`+idList(t, l, "b"))
			},
			"a new finding":      func() { l.seed(t, s, fact{label: "late"}) },
			"one on another ref": func() { l.seed(t, s, fact{label: "c-dev", print: "c", ref: devRef, rule: "js.xss"}) },
		} {
			shown := preview(s.Token)
			meanwhile()
			if answer := apply(s.Token, shown.PreviewToken, request); answer.Status != http.StatusConflict || !strings.Contains(answer.Body, "preview the update again") {
				t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
			}
		}
		wantEvents(t, s, l, "c")
		shown = preview(s.Token)
		answer := apply(s.Token, shown.PreviewToken, request)
		var done updated
		if err := json.Unmarshal([]byte(answer.Body), &done); err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		if done.UpdatedCount != shown.UpdatedCount || done.IssueCount != shown.IssueCount || done.IssueParentCount != shown.IssueParentCount || done.ChangeID == 0 {
			t.Errorf("previewed %+v, changed %+v", shown, done)
		}
		if answer.Header.Get("X-Change-Id") != fmt.Sprint(done.ChangeID) {
			t.Errorf("headers %v", answer.Header)
		}
	})
}

// TestPreviewOfNote: an update with a note does not replace a note that was written after its preview.
func TestPreviewOfNote(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		request := func(label, params string) string {
			return fmt.Sprintf(`"filter":{"ids":[%d]},"params":{%s}`, l.findings[label], params)
		}
		apply := func(params string, meanwhile func()) apitest.Answer {
			t.Helper()
			shown := bulk(t, s, s.Token, http.MethodPost, bulkPath(s.Tenant, "preview"), "{"+request("a", params)+"}")
			meanwhile()
			return s.Do(t, s.Token, http.MethodPatch, bulkPath(s.Tenant), `{"previewToken":"`+shown.PreviewToken+`",`+request("a", params)+`}`)
		}
		note := func(label, text string) func() {
			return func() {
				bulk(t, s, s.Token, http.MethodPatch, bulkPath(s.Tenant), "{"+request(label, `"note":"`+text+`"`)+"}")
			}
		}
		for _, params := range []string{`"note":"mine"`, `"triageState":"FINDING_TRIAGE_STATE_REVIEWING","note":"mine"`} {
			if answer := apply(params, note("a", "theirs about "+strconv.Itoa(len(params)))); answer.Status != http.StatusConflict || !strings.Contains(answer.Body, "preview the update again") {
				t.Errorf("%s over another note: %d %s", params, answer.Status, answer.Body)
			}
		}
		if row := stored(t, s, l, "a"); !strings.HasPrefix(*row.TriageComment, "theirs") {
			t.Errorf("the note is %s", *row.TriageComment)
		}
		if answer := apply(`"triageState":"FINDING_TRIAGE_STATE_REVIEWING"`, note("a", "theirs again")); answer.Status != http.StatusOK {
			t.Errorf("an update that keeps notes: %d %s", answer.Status, answer.Body)
		}
		if answer := apply(`"note":"mine"`, note("b", "elsewhere")); answer.Status != http.StatusOK {
			t.Errorf("after a note about another finding: %d %s", answer.Status, answer.Body)
		}
	})
}

// TestBulkUpdateOfOthers: other tenants and projects of other teams are neither shown nor changed.
func TestBulkUpdateOfOthers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
		l.seed(t, s, fact{label: "web", print: "x"}, fact{label: "dev", print: "x", ref: devRef}, fact{label: "api", print: "x", project: "acme/api"})
		mia := memberOf(t, s, l, "acme/web")
		const all = `{"params":{"triageState":"FINDING_TRIAGE_STATE_IGNORED"}}`
		if shown := bulk(t, s, mia, http.MethodPost, bulkPath(s.Tenant, "preview"), all); shown.IssueCount != 2 || shown.UpdatedCount != 2 || len(shown.Examples) != 2 {
			t.Errorf("a member's preview: %+v", shown)
		}
		done := bulk(t, s, mia, http.MethodPatch, bulkPath(s.Tenant), all)
		if done.IssueCount != 2 || done.UpdatedCount != 2 {
			t.Errorf("a member's update: %+v", done)
		}
		wantEvents(t, s, l, "api")
		own := s.Body(t, mia, http.MethodGet, bulkPath(s.Tenant, "changes"), "", http.StatusOK)
		bulk(t, s, s.Token, http.MethodPatch, bulkPath(s.Tenant), `{"params":{"note":"x"}}`)
		if again := s.Body(t, mia, http.MethodGet, bulkPath(s.Tenant, "changes"), "", http.StatusOK); again != own || !strings.Contains(own, fmt.Sprintf(`"id":"%d"`, done.ChangeID)) {
			t.Errorf("a member lists %s, then %s", own, again)
		}
		rival := s.AddTenant(t, "rival")
		if answer := s.Do(t, rival.Token, http.MethodPost, bulkPath(rival, "undo", fmt.Sprint(done.ChangeID)), "{}"); answer.Status != http.StatusNotFound {
			t.Errorf("another tenant's undo: %d %s", answer.Status, answer.Body)
		}
		if answer := s.Do(t, mia, http.MethodPost, bulkPath(s.Tenant, "undo", fmt.Sprint(done.ChangeID+1)), "{}"); answer.Status != http.StatusNotFound {
			t.Errorf("a member undoes an administrator's decision: %d %s", answer.Status, answer.Body)
		}
		if list := s.Body(t, rival.Token, http.MethodGet, bulkPath(rival, "changes"), "", http.StatusOK); list != `{"changes":[],"cursor":""}` {
			t.Errorf("another tenant lists %s", list)
		}
		// When a member no longer sees a project, its findings are not restored, and the member does not learn their ids.
		leaveTeam(t, s, l, "acme/web", "acme/api")
		bulk(t, s, s.Token, http.MethodPost, bulkPath(s.Tenant, "undo", fmt.Sprint(done.ChangeID+1)), "{}")
		undone := bulk(t, s, mia, http.MethodPost, bulkPath(s.Tenant, "undo", fmt.Sprint(done.ChangeID)), "{}")
		if undone.RestoredCount != 0 || undone.KeptCount != 2 || undone.Kept[0].Reason != "KEPT_REASON_NOT_VISIBLE" || len(undone.Kept[0].FindingIDs) != 0 {
			t.Errorf("undo of hidden findings: %+v", undone)
		}
	})
}
