package findings_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// An update is refused, as a whole, if a finding has another decision than the caller saw.
func TestBulkUpdateAfterAnotherDecision(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedTriage(t, s)
		b, c := l.findings["b"], l.findings["c"]
		update := func(params, seen string) string {
			return fmt.Sprintf(`{"filter":{"ids":[%d,%d]},"params":{%s},"seen":[%s]}`, b, c, params, seen)
		}
		seen := func(id int64, words string) string {
			return fmt.Sprintf(`{"issueId":"%d","triageState":"FINDING_TRIAGE_STATE_%s}`, id, words)
		}
		const fixing, ignored = `"triageState":"FINDING_TRIAGE_STATE_FIXING"`, `"triageState":"FINDING_TRIAGE_STATE_IGNORED","triageReason":"FINDING_TRIAGE_REASON_FALSE_POSITIVE","note":"a test"`
		const untriaged, falsePositive = `UNTRIAGED"`, `IGNORED","triageReason":"FINDING_TRIAGE_REASON_FALSE_POSITIVE"`
		first := bulk(t, s, s.Token, http.MethodPatch, bulkPath(s.Tenant), update(ignored, seen(b, untriaged)+","+seen(c, untriaged)))
		if first.UpdatedCount != 2 {
			t.Errorf("as seen: %+v", first)
		}
		for name, words := range map[string]string{
			"another state": untriaged, "another reason": `IGNORED","triageReason":"FINDING_TRIAGE_REASON_NO_TIME"`, "another note": falsePositive,
		} {
			refused := failure(t, s, http.StatusConflict, http.MethodPatch, bulkPath(s.Tenant), update(fixing+`,"note":"mine"`, seen(c, falsePositive+`,"note":"a test"`)+","+seen(b, words)))
			if want := fmt.Sprintf("decided about 1 of the findings since you saw them (finding %d is ignored, false_positive)", b); !strings.Contains(refused, want) {
				t.Errorf("%s: %s, want %s", name, refused, want)
			}
		}
		for _, id := range []int64{b, c} {
			if row := rowOf(t, s, id); row.TriageState != "ignored" {
				t.Errorf("a refused update left finding %d %s", id, row.TriageState)
			}
		}
		if got := bulk(t, s, s.Token, http.MethodPatch, bulkPath(s.Tenant), update(fixing, seen(b, falsePositive))); got.UpdatedCount != 2 {
			t.Errorf("after another look: %+v", got)
		}

		// Findings that the caller does not see look deleted, over gRPC, too.
		client := findingsv1.NewIssuesServiceClient(s.Conn)
		request := func(of apitest.Tenant) *findingsv1.BulkUpdateIssuesRequest {
			return &findingsv1.BulkUpdateIssuesRequest{
				DeploymentId: of.DeploymentID, Params: &findingsv1.UpdateFindingParams{TriageState: findingsv1.FindingTriageState_FINDING_TRIAGE_STATE_REVIEWING},
				Seen: []*findingsv1.SeenDecision{{IssueId: b, TriageState: findingsv1.FindingTriageState_FINDING_TRIAGE_STATE_FIXING}},
			}
		}
		other := s.AddTenant(t, "other")
		for name, call := range map[string]struct {
			of    apitest.Tenant
			token string
		}{"another deployment": {other, other.Token}, "a member of another team": {s.Tenant, memberOf(t, s, l, "acme/api")}} {
			_, err := client.BulkUpdateIssues(s.Context(t, call.token), request(call.of))
			if status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), fmt.Sprintf("finding %d does not exist any more", b)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
