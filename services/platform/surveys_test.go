package platform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/user"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

const onboarding = "/api/survey/name/onboarding"

func (s *helpDesk) submit(t *testing.T, who, data, more string, want int) string {
	t.Helper()
	return s.Body(t, who, http.MethodPost, "/api/survey/submit", `{"surveyName":"onboarding","data":`+data+more+`}`, want)
}

// TestSurveys: one response of each user, and the newest is the company's.
func TestSurveys(t *testing.T) {
	t.Parallel()
	eachHelpDesk(t, nil, func(t *testing.T, s *helpDesk) {
		if got := s.Body(t, s.ann, http.MethodGet, onboarding, "", http.StatusOK); got != `{}` {
			t.Errorf("no response: %s", got)
		}
		first := s.submit(t, s.ann, `{"team":{"size":12},"goals":["sast",null,true]}`, "", http.StatusOK)
		var out struct {
			Response struct {
				ID, UserID              int64
				SurveyName, SubmittedAt string
				Data                    json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(first), &out); err != nil || out.Response.ID == 0 || out.Response.UserID == 0 ||
			string(out.Response.Data) != `{"goals":["sast",null,true],"team":{"size":12}}` || out.Response.SurveyName != "onboarding" {
			t.Fatalf("submitted: %s %v", first, err)
		}
		if got := s.Body(t, s.bob, http.MethodGet, onboarding, "", http.StatusOK); got != first {
			t.Errorf("the company's response is %s, want %s", got, first)
		}
		second := s.submit(t, s.bob, `{"by":"bob"}`, "", http.StatusOK)
		if got := s.Body(t, s.ann, http.MethodGet, onboarding, "", http.StatusOK); got != second {
			t.Errorf("the newest response is %s, want %s", got, second)
		}
		third := s.submit(t, s.ann, `{"by":"ann"}`, "", http.StatusOK)
		if !strings.Contains(third, fmt.Sprintf(`"id":%d,`, out.Response.ID)) {
			t.Errorf("the second response of a user is %s: want it in place of the first", third)
		}
		got := s.Body(t, s.bob, http.MethodGet, onboarding, "", http.StatusOK)
		if got != third {
			t.Errorf("the newest response is %s, want %s", got, third)
		}
		over, err := platformv1.NewSurveysServiceClient(s.Conn).GetSurveyResponse(s.Context(t, s.bob), &platformv1.GetSurveyResponseRequest{SurveyName: "onboarding"})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, over, third)
		if got := s.submit(t, s.chief, `null`, "", http.StatusOK); !strings.Contains(got, `"data":{}`) {
			t.Errorf("without data: %s", got)
		}
		trail := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?objectKind=survey_response", s.DeploymentID))
		if n := strings.Count(trail, `"kind":"survey_response"`); n != 4 {
			t.Errorf("%d entries in the audit trail: %s", n, trail)
		}
	})
}

// TestSurveysOfSeveralDeployments: a caller of several deployments has to name one, and nobody sees another company.
func TestSurveysOfSeveralDeployments(t *testing.T) {
	t.Parallel()
	eachHelpDesk(t, nil, func(t *testing.T, s *helpDesk) {
		s.submit(t, s.ann, `{"by":"ann"}`, "", http.StatusOK)
		umbrella := s.AddTenant(t, "umbrella")
		foreign := s.AddUser(t, umbrella, "chief@umbrella.test", access.RoleAdmin)
		if got := s.Body(t, foreign, http.MethodGet, onboarding, "", http.StatusOK); got != `{}` {
			t.Errorf("another company sees %s", got)
		}
		s.Body(t, foreign, http.MethodGet, onboarding+"?deploymentSlug=acme", "", http.StatusNotFound)
		s.Body(t, foreign, http.MethodGet, onboarding+"?deploymentSlug=absent", "", http.StatusNotFound)
		s.Body(t, foreign, http.MethodPost, "/api/survey/submit", `{"surveyName":"onboarding","deploymentSlug":"acme"}`, http.StatusNotFound)
		both := s.ann
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			ann := tx.User.Query().Where(user.Email("ann@acme.test")).OnlyX(ctx)
			return tx.Membership.Create().SetDeploymentID(umbrella.DeploymentID).SetUserID(ann.ID).SetRole(string(access.RoleMember)).SetCreatedAt(store.Now()).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Body(t, both, http.MethodGet, onboarding, "", http.StatusBadRequest); !strings.Contains(got, "deployment_slug") {
			t.Errorf("which deployment: %s", got)
		}
		if got := s.Body(t, both, http.MethodGet, onboarding+"?deploymentSlug=umbrella", "", http.StatusOK); got != `{}` {
			t.Errorf("the other deployment: %s", got)
		}
		if got := s.submit(t, both, `{"by":"ann"}`, `,"deploymentSlug":"umbrella"`, http.StatusOK); !strings.Contains(got, `"by":"ann"`) {
			t.Errorf("submitted to the other deployment: %s", got)
		}
		s.Body(t, s.AddUser(t, s.Tenant, "outsider@acme.test", ""), http.MethodGet, onboarding, "", http.StatusBadRequest)
		s.Body(t, s.Token, http.MethodGet, onboarding, "", http.StatusForbidden)
	})
}

// TestSurveyLimits: size and depth of the data, and the number of surveys.
func TestSurveyLimits(t *testing.T) {
	t.Parallel()
	eachHelpDesk(t, nil, func(t *testing.T, s *helpDesk) {
		nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
		s.submit(t, s.ann, nested(16), "", http.StatusOK)
		for data, text := range map[string]string{
			nested(17): "at most 16 deep",
			`{"a":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`: "at most 16 deep",
			`{"a":"` + strings.Repeat("x", 65_536) + `"}`:                     "at most 65536 bytes",
			`[]`: "data",
		} {
			if got := s.submit(t, s.ann, data, "", http.StatusBadRequest); !strings.Contains(got, text) {
				t.Errorf("%.60s: %s", data, got)
			}
		}
		for _, name := range []string{"", strings.Repeat("x", 101)} {
			s.Body(t, s.ann, http.MethodPost, "/api/survey/submit", fmt.Sprintf(`{"surveyName":%q}`, name), http.StatusBadRequest)
		}
		for i := range 99 {
			s.Body(t, s.ann, http.MethodPost, "/api/survey/submit", fmt.Sprintf(`{"surveyName":"survey %d"}`, i), http.StatusOK)
		}
		if got := s.Body(t, s.ann, http.MethodPost, "/api/survey/submit", `{"surveyName":"one more"}`, http.StatusBadRequest); !strings.Contains(got, "at most 100 surveys") {
			t.Errorf("one more: %s", got)
		}
		s.submit(t, s.ann, `{"again":true}`, "", http.StatusOK)
	})
}
