package policies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"entgo.io/ent/dialect/sql"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

func byID(s *sql.Selector) { ent.Asc(auditentry.FieldID)(s) }

// wantReason requires an error's reason and metadata.
func wantReason(t testing.TB, err error, reason string, more map[string]string) {
	t.Helper()
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetReason() == reason && maps.Equal(info.GetMetadata(), more) {
			return
		}
	}
	t.Errorf("got %v, want %s with %v", err, reason, more)
}

// broken are policies with one problem each: its code and its location.
var broken = map[string]struct{ policy, code, field string }{
	"no name":             {`{"filters":{"mode":"all"},"actions":[{"type":"block"}]}`, "INVALID_ARGUMENT", "policies[0].name"},
	"blank name":          {`{"slug":"a","name":" \n","filters":{"mode":"all"},"actions":[{"type":"block"}]}`, "INVALID_ARGUMENT", "policies[0].name"},
	"name without slug":   {`{"name":"привет","filters":{"mode":"all"},"actions":[{"type":"block"}]}`, "INVALID_ARGUMENT", "policies[0].slug"},
	"slug in capitals":    {`{"slug":"Ab","name":"a","filters":{"mode":"all"},"actions":[{"type":"block"}]}`, "INVALID_ARGUMENT", "policies[0].slug"},
	"reserved slug":       {`{"slug":"rule-board-block","name":"a","filters":{"mode":"all"},"actions":[{"type":"block"}]}`, "RESERVED_SLUG", "policies[0].slug"},
	"reserved name":       {`{"name":"Rule board: audit","filters":{"mode":"all"},"actions":[{"type":"block"}]}`, "RESERVED_SLUG", "policies[0].slug"},
	"no filters":          {`{"name":"a","actions":[{"type":"block"}]}`, "INVALID_ARGUMENT", "policies[0].filters"},
	"no mode":             {`{"name":"a","filters":{},"actions":[{"type":"block"}]}`, "INVALID_ARGUMENT", "policies[0].filters.mode"},
	"unknown mode":        {`{"name":"a","filters":{"mode":"some"},"actions":[{"type":"block"}]}`, "INVALID_ARGUMENT", "policies[0].filters.mode"},
	"any of nothing":      {`{"name":"a","filters":{"mode":"any"},"actions":[{"type":"block"}]}`, "INVALID_ARGUMENT", "policies[0].filters.conditions"},
	"no condition type":   {with(`{"values":["x"]}`), "UNSUPPORTED_CONDITION_TYPE", "policies[0].filters.conditions[0].type"},
	"unknown condition":   {with(`{"type":"epss","values":["x"]}`), "UNSUPPORTED_CONDITION_TYPE", "policies[0].filters.conditions[0].type"},
	"no values":           {with(`{"type":"severity"}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[0].values"},
	"blank value":         {with(`{"type":"category","values":["security"," "]}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[0].values[1]"},
	"unknown value":       {with(`{"type":"severity","values":["high","awful"]}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[0].values[1]"},
	"unknown match":       {with(`{"type":"severity","values":["high"],"mode":"maybe"}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[0].mode"},
	"unknown project":     {with(`{"type":"project","values":["acme/web","acme/gone"]}`), "UNKNOWN_REFERENCE", "policies[0].filters.conditions[0].values[1]"},
	"unknown tag":         {with(`{"type":"project_tag","values":["gone"]}`), "UNKNOWN_REFERENCE", "policies[0].filters.conditions[0].values[0]"},
	"unknown rule":        {with(`{"type":"rule","values":["acme.G999"]}`), "UNKNOWN_REFERENCE", "policies[0].filters.conditions[0].values[0]"},
	"reachable code":      {with(`{"type":"product","values":["sast"]},{"type":"reachability","values":["reachable"]}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[1].type"},
	"reachable secrets":   {with(`{"type":"reachability","values":["reachable"]},{"type":"validation_state","values":["confirmed_valid"]}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[1].type"},
	"unknown category":    {with(`{"type":"category","values":["security","securty"]}`), "UNKNOWN_REFERENCE", "policies[0].filters.conditions[0].values[1]"},
	"two severities":      {with(`{"type":"severity","values":["high"]},{"type":"severity","values":["LOW"]}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[1]"},
	"no severity":         {with(`{"type":"severity","values":["high","low","medium","critical"],"mode":"none"}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[0]"},
	"no product":          {with(`{"type":"product","values":["sast","sca","secrets"],"mode":"exclude"}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[0]"},
	"new, not new":        {with(`{"type":"finding_state","values":["new"]},{"type":"finding_state","values":["new"],"mode":"none"}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[1]"},
	"web, not web":        {with(`{"type":"project","values":["acme/web"]},{"type":"repository","values":["ACME/Web"],"mode":"none"}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[1]"},
	"tagged, not tagged":  {with(`{"type":"project_tag","values":["acme-pci"]},{"type":"repository_tag","values":["acme-pci"],"mode":"none"}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[0]"},
	"valid, no secrets":   {with(`{"type":"validation_state","values":["confirmed_valid"]},{"type":"product","values":["secrets"],"mode":"none"}`), "INVALID_ARGUMENT", "policies[0].filters.conditions[0].type"},
	"no actions":          {`{"name":"a","filters":{"mode":"all"}}`, "INVALID_ARGUMENT", "policies[0].actions"},
	"no action type":      {`{"name":"a","filters":{"mode":"all"},"actions":[{}]}`, "UNSUPPORTED_ACTION_TYPE", "policies[0].actions[0].type"},
	"unknown action":      {`{"name":"a","filters":{"mode":"all"},"actions":[{"type":"shout"}]}`, "UNSUPPORTED_ACTION_TYPE", "policies[0].actions[0].type"},
	"known action":        {acting(`{"type":"assign","config":{"to":"kim"}}`), "UNSUPPORTED_ACTION_TYPE", "policies[0].actions[0].type"},
	"notify nobody":       {acting(`{"type":"notify"}`), "INVALID_ARGUMENT", "policies[0].actions[0].config.notification_rule_id"},
	"notify by a name":    {acting(`{"type":"notify","config":{"notification_rule_id":"hook"}}`), "INVALID_ARGUMENT", "policies[0].actions[0].config.notification_rule_id"},
	"notify by 01":        {acting(`{"type":"notify","config":{"notification_rule_id":"01"}}`), "INVALID_ARGUMENT", "policies[0].actions[0].config.notification_rule_id"},
	"notify an unknown":   {acting(`{"type":"notify","config":{"notification_rule_id":"77"}}`), "UNKNOWN_REFERENCE", "policies[0].actions[0].config.notification_rule_id"},
	"no state":            {acting(`{"type":"set_state","config":{"note":"x"}}`), "INVALID_ARGUMENT", "policies[0].actions[0].config.state"},
	"unknown state":       {acting(`{"type":"set_state","config":{"state":"reopened"}}`), "INVALID_ARGUMENT", "policies[0].actions[0].config.state"},
	"unknown reason":      {acting(`{"type":"set_state","config":{"state":"ignored","reason":"boring"}}`), "INVALID_ARGUMENT", "policies[0].actions[0].config.reason"},
	"reason of fixing":    {acting(`{"type":"set_state","config":{"state":"fixing","reason":"no_time"}}`), "INVALID_ARGUMENT", "policies[0].actions[0].config.reason"},
	"unknown set setting": {acting(`{"type":"set_state","config":{"state":"fixing","who":"me"}}`), "INVALID_ARGUMENT", "policies[0].actions[0].config.who"},
	"action twice":        {`{"name":"a","filters":{"mode":"all"},"actions":[{"type":"block"},{"type":"block"}]}`, "INVALID_ARGUMENT", "policies[0].actions[1].type"},
	"unknown setting":     {`{"name":"a","filters":{"mode":"all"},"actions":[{"type":"block","config":{"why":"x"}}]}`, "INVALID_ARGUMENT", "policies[0].actions[0].config.why"},
	"setting of another":  {`{"name":"a","filters":{"mode":"all"},"actions":[{"type":"comment","config":{"reason":"x"}}]}`, "INVALID_ARGUMENT", "policies[0].actions[0].config.reason"},
	"duplicate slug":      {secrets + "," + strings.Replace(secrets, `{"name"`, `{"slug":"no-secrets-ever","name"`, 1), "DUPLICATE_SLUG", "policies[1].slug"},
	"duplicate made slug": {secrets + "," + strings.Replace(secrets, "No Secrets, ever", "no secrets EVER", 1), "DUPLICATE_SLUG", "policies[1].slug"},
}

// acting is a policy with one action.
func acting(action string) string {
	return `{"name":"a","filters":{"mode":"all"},"actions":[` + action + `]}`
}

// with is a policy with one condition.
func with(condition string) string {
	return `{"name":"a","filters":{"mode":"all","conditions":[` + condition + `]},"actions":[{"type":"block"}]}`
}

func TestBrokenBundles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		before := s.put(t, "["+critical+"]", 200)
		for name, test := range broken {
			want := 400
			if test.code == "RESERVED_SLUG" {
				want = 409
			}
			body := s.put(t, "["+test.policy+"]", want, `"code":"`+test.code+`"`, test.field)
			if strings.Contains(body, "state_version") {
				t.Errorf("%s: a state_version without need: %s", name, body)
			}
			errors := problems(t, s.dry(t, "["+test.policy+"]"))
			if len(errors) != 1 || errors[0].Code != test.code || errors[0].Context["field"] != test.field || errors[0].Message == "" {
				t.Errorf("%s: the dry run says %+v", name, errors)
			}
		}
		if got := s.Get(t, s.remediation()); got != before {
			t.Errorf("something refused was stored: %s", got)
		}
	})
}

// problems returns the validation errors of a dry run, which then has no differences.
func problems(t testing.TB, body string) []struct {
	Code, Message string
	PolicySlug    string `json:"policy_slug"`
	Context       map[string]string
} {
	t.Helper()
	var answer struct {
		ValidationErrors []struct {
			Code, Message string
			PolicySlug    string `json:"policy_slug"`
			Context       map[string]string
		} `json:"validation_errors"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.ValidationErrors) > 0 && !strings.HasPrefix(body, `{"creates":[],"updates":[],"deletes":[],`) {
		t.Errorf("problems and differences: %s", body)
	}
	return answer.ValidationErrors
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		bundle := `{"deployment_slug":"globex","policies":[` + critical + `,
			{"slug":"rule-board-audit","name":"Audit","filters":{"mode":"some","conditions":[{"type":"severity","values":["awful"]},{"type":"project","values":["acme/gone"]}]},"actions":[{"type":"email"}]},
			{"name":"Second","filters":{"mode":"all","conditions":[{"type":"rule","values":["gone"],"mode":"maybe"}]}}]}`
		dry := s.want(t, 200, s.Token, http.MethodPost, s.remediation()+":dryRun", `{"bundle":`+bundle+`}`, "")
		apitest.Golden(t, "dry_run_problems", dry)
		s.want(t, 400, s.Token, http.MethodPut, s.remediation(), `{"bundle":`+bundle+`}`, s.current(t), `"code":"INVALID_ARGUMENT"`, "deployment_slug must be", "UNKNOWN_REFERENCE", "RESERVED_SLUG")
		if got := s.want(t, 200, s.Token, http.MethodPut, s.remediation(), `{"bundle":{"deployment_slug":"acme"}}`, s.current(t)); !strings.Contains(got, `"policies":[]`) {
			t.Errorf("got %s", got)
		}
		// An apply lists ten problems; a dry run lists all.
		var many []string
		for i := range 15 {
			many = append(many, fmt.Sprintf(`{"name":"p%d","filters":{"mode":"all"}}`, i))
		}
		s.put(t, "["+strings.Join(many, ",")+"]", 400, "and 5 more")
		if got := problems(t, s.dry(t, "["+strings.Join(many, ",")+"]")); len(got) != 15 || got[14].PolicySlug != "p14" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestActionsForJobs: notify and set_state are stored, in the words of the request, and a refusal says what is allowed.
func TestActionsForJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		body := s.put(t, "["+acting(`{"type":"set_state","config":{"state":"IGNORED","reason":"No_Time","note":"by policy"}}`)+"]", 200)
		if !strings.Contains(body, `"state":"IGNORED"`) || !strings.Contains(s.compiled(t), `value:"no_time"`) {
			t.Errorf("stored %s, %s", body, s.compiled(t))
		}
		for action, text := range map[string]string{
			`{"type":"assign"}`: "the action assign is known, but this version does not have it: it must be one of block, comment, pr_comment, notify, ticket, set_state",
			`{"type":"notify","config":{"notification_rule_id":"7"}}`:             `there is no notification rule \"7\"`,
			`{"type":"set_state","config":{"state":"gone"}}`:                      `must be one of reviewing, fixing, ignored; got \"gone\"`,
			`{"type":"set_state","config":{"state":"fixing","to":"x"}}`:           "it has state, reason, note",
			`{"type":"set_state","config":{"state":"fixing","reason":"no_time"}}`: "is allowed only with the state ignored",
		} {
			bundle := `{"bundle":{"policies":[` + acting(action) + `]}}`
			s.want(t, 400, s.Token, http.MethodPut, s.remediation(), bundle, "*", text)
			s.want(t, 200, s.Token, http.MethodPost, s.remediation()+":dryRun", bundle, "", text)
			s.want(t, 200, s.Token, http.MethodPost, s.remediation()+":backTest", bundle, "", text)
		}
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		many := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
		for text, policies := range map[string]string{
			"bundle.policies must have at most 200 items, got 201":                                   many(201, `{"name":"a"}`),
			"bundle.policies[0].name must have at most 100 characters, got 101":                      `{"name":"` + strings.Repeat("ü", 101) + `"}`,
			"bundle.policies[0].filters.conditions must have at most 50 items, got 51":               `{"filters":{"conditions":[` + many(51, `{}`) + `]}}`,
			"bundle.policies[0].filters.conditions[0].values must have at most 500 items, got 501":   `{"filters":{"conditions":[{"values":[` + many(501, `"a"`) + `]}]}}`,
			"bundle.policies[0].actions must have at most 10 items, got 11":                          `{"actions":[` + many(11, `{}`) + `]}`,
			"bundle.policies[0].actions[0].config":                                                   `{"actions":[{"config":{"reason":"` + strings.Repeat("x", 501) + `"}}]}`,
			"bundle.policies[0].filters.conditions[0].values[0] must have at most 1000 characters, ": `{"filters":{"conditions":[{"values":["` + strings.Repeat("x", 1001) + `"]}]}}`,
		} {
			s.put(t, "["+policies+"]", 400, text)
			s.want(t, 400, s.Token, http.MethodPost, s.remediation()+":dryRun", `{"bundle":{"policies":[`+policies+`]}}`, "", text)
		}
		for _, call := range []struct{ method, path string }{
			{http.MethodPut, s.remediation()}, {http.MethodPost, s.remediation() + ":dryRun"},
		} {
			s.want(t, 400, s.Token, call.method, call.path, `{"bundle":{"policies":[null]}}`, s.current(t), "bundle.policies[0] must not be null")
		}
		for _, body := range []string{``, `{}`, `{"bundle":null}`} {
			s.want(t, 400, s.Token, http.MethodPut, s.remediation(), body, s.current(t), "bundle is required")
		}
		s.want(t, 400, s.Token, http.MethodPut, s.remediation(), `{"bundle":`, s.current(t), "MALFORMED_JSON")
		s.want(t, 400, s.Token, http.MethodPut, s.remediation(), `{"bundle":[]}`, s.current(t), "bundle must be an object")
		s.want(t, 400, s.Token, http.MethodPut, s.remediation(), `{"bundle":{"policies":[{"active":"yes"}]}}`, s.current(t), "policies[0].active must be true or false")
		_, err := s.client.ApplyRemediationPolicies(s.context(t, s.current(t)), &policiesv1.ApplyRemediationPoliciesRequest{DeploymentId: s.DeploymentID})
		wantReason(t, err, "INVALID_ARGUMENT", nil)
	})
}
