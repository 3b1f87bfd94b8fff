package findings_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Errors about invalid values name the parameter, the value and the allowed values.
func TestInvalidParameters(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		var bodies strings.Builder
		for _, query := range []string{
			"page_size=99", "page_size=3001", "page_size=abc", "page_size=0", "page_size=-1", "page_size=100.5",
			"page=-1", "page=x", "page=99999999999999999999",
			"issue_type=secrets", "issue_type=SAST", "status=removed", "status=open,unfixed",
			"triage_reasons=bored", "severities=high,huge", "policies=block", "confidence=certain", "autotriage_verdict=maybe",
			"exposures=visible", "transitivities=indirect", "click_to_fix_pr_state=closed",
			"is_malicious=perhaps", "dedup=2", "since=yesterday", "since=NaN", "since=Inf", "repository_ids=web", "repository_ids=1,x",
			"repos=%ff", "repos=%zz", "ref=a%00b", "ref=" + strings.Repeat("r", 256),
		} {
			bodies.WriteString(query[:min(len(query), 60)] + "\n\t" +
				failure(t, s, http.StatusBadRequest, http.MethodGet, "/api/v1/deployments/acme/findings?"+query, "") + "\n")
		}
		apitest.Golden(t, "invalid", bodies.String())
	})
}

func TestInvalidOverGRPC(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		client := findingsv1.NewFindingsServiceClient(s.Conn)
		small := int64(99)
		for want, request := range map[string]*findingsv1.ListFindingsRequest{
			"page_size must be between 100 and 3000, got 99": {DeploymentSlug: "acme", PageSize: &small},
			"page must be at least 0, got -1":                {DeploymentSlug: "acme", Page: -1},
			`severities[1] must be one of low, medium, high, critical; got "huge"`: {
				DeploymentSlug: "acme", Severities: []string{"high", "huge"},
			},
			"repos[1] must not contain the character U+0000": {DeploymentSlug: "acme", Repos: []string{"web", "a\x00b"}},
		} {
			_, err := client.ListFindings(s.Context(t, s.Token), request)
			if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != want {
				t.Errorf("%v: got %v, want %s", request, err, want)
			}
		}
	})
}
