package policies_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/policies/remediation"
)

func TestRemediationPolicies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		get := &policiesv1.GetRemediationPoliciesRequest{DeploymentId: s.DeploymentID}
		none := s.Get(t, s.remediation())
		apitest.Golden(t, "remediation_none", none)
		same[*policiesv1.GetRemediationPoliciesResponse](t, none)(s.client.GetRemediationPolicies(s.context(t, ""), get))

		dry := s.dry(t, "["+critical+","+secrets+"]")
		apitest.Golden(t, "dry_run_create", dry)
		if version(t, dry) != version(t, none) || s.Get(t, s.remediation()) != none {
			t.Error("a dry run changed something")
		}
		put := s.put(t, "["+critical+","+secrets+"]", 200)
		apitest.Golden(t, "remediation_put", put)
		body := s.Get(t, s.remediation())
		if body != put || version(t, put) == version(t, none) {
			t.Errorf("put answered %s, get %s", put, body)
		}
		same[*policiesv1.GetRemediationPoliciesResponse](t, body)(s.client.GetRemediationPolicies(s.context(t, ""), get))

		// Applying the answer again is a no-op. Another order has the same version and is stored.
		for _, policies := range []string{policiesOf(t, put), "[" + secrets + "," + critical + "]"} {
			if got := s.dry(t, policies); got != `{"creates":[],"updates":[],"deletes":[],"state_version":"`+version(t, put)+`","validation_errors":[]}` {
				t.Errorf("got %s", got)
			}
			if got := s.put(t, policies, 200); version(t, got) != version(t, put) || got != s.Get(t, s.remediation()) {
				t.Errorf("got %s", got)
			}
		}
		if got := s.Get(t, s.remediation()); strings.Index(got, "no-secrets-ever") > strings.Index(got, "no-critical") {
			t.Errorf("the order is lost: %s", got)
		}

		// One policy is changed, one deleted, one new.
		changed := strings.Replace(critical, `"active":true`, `"active":false`, 1)
		next := `[` + changed + `,{"name":"Everything","filters":{"mode":"all"},"actions":[{"type":"comment"}]}]`
		dry = s.dry(t, next)
		apitest.Golden(t, "dry_run_change", dry)
		bundle := &policiesv1.RemediationPoliciesBundle{}
		if err := protojson.Unmarshal([]byte(`{"policies":`+next+`}`), bundle); err != nil {
			t.Fatal(err)
		}
		same[*policiesv1.DryRunRemediationPoliciesResponse](t, dry)(s.client.DryRunRemediationPolicies(s.context(t, ""),
			&policiesv1.DryRunRemediationPoliciesRequest{DeploymentId: s.DeploymentID, Bundle: bundle}))
		applied, err := s.client.ApplyRemediationPolicies(s.context(t, version(t, dry)),
			&policiesv1.ApplyRemediationPoliciesRequest{DeploymentId: s.DeploymentID, Bundle: bundle})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, applied, s.Get(t, s.remediation()))
		if got := s.put(t, "[]", 200); got != none {
			t.Errorf("without policies: %s", got)
		}
		apitest.Golden(t, "remediation_audit", changesOf(t, s))
	})
}

// policiesOf returns the policies in an answer.
func policiesOf(t testing.TB, body string) string {
	t.Helper()
	var answer struct {
		Bundle struct{ Policies json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	return string(answer.Bundle.Policies)
}

// changesOf lists the changes of policies in the audit trail.
func changesOf(t testing.TB, s caller) string {
	t.Helper()
	var lines []string
	for _, entry := range s.Store.Reader.AuditEntry.Query().Order(byID).AllX(tenant.NewContext(t.Context(), s.DeploymentID)) {
		for _, change := range entry.Changes {
			lines = append(lines, change.Kind+" "+change.ID+": "+string(change.Before)+" -> "+string(change.After))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestIfMatch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		first := s.current(t)
		answer := s.Do(t, s.Token, http.MethodGet, s.remediation(), "")
		if tag := answer.Header.Get("ETag"); tag != `"`+first+`"` {
			t.Errorf("the entity tag is %s", tag)
		}
		if again := s.Do(t, s.Token, http.MethodGet, s.remediation(), "", "If-None-Match", `"`+first+`"`); again.Status != 304 || again.Body != "" {
			t.Errorf("got %d %s", again.Status, again.Body)
		}
		send := func(policies, ifMatch string, status int, holds ...string) {
			t.Helper()
			s.want(t, status, s.Token, http.MethodPut, s.remediation(), `{"bundle":{"policies":[`+policies+`]}}`, ifMatch, holds...)
		}
		send(critical, "", 428, `"code":"PRECONDITION_REQUIRED"`, "If-Match")
		send(critical, " ", 428)
		send(critical, first, 200)
		second := s.current(t)
		for _, stale := range []string{first, `"` + first + `"`, "sha256:00", `"x", "y"`} {
			send("", stale, 409, `"code":"CONFLICT"`, `"state_version":"`+second+`"`, "read them again")
		}
		// A stale bundle is rejected without validation: it was made for other policies.
		send(`{"name":"x"}`, first, 409, `"code":"CONFLICT"`)
		send(critical, `"`+second+`"`, 200)
		send("", `W/"`+second+`"`, 409, "weak", `"state_version":"`+second+`"`) // RFC 9110, 13.1.1
		if s.current(t) != second {
			t.Error("applying the same again changed the version")
		}
		send("", "*", 200)
		_, err := s.client.ApplyRemediationPolicies(s.context(t, ""), &policiesv1.ApplyRemediationPoliciesRequest{
			DeploymentId: s.DeploymentID, Bundle: &policiesv1.RemediationPoliciesBundle{},
		})
		wantReason(t, err, "PRECONDITION_REQUIRED", nil)
		_, err = s.client.ApplyRemediationPolicies(s.context(t, second), &policiesv1.ApplyRemediationPoliciesRequest{
			DeploymentId: s.DeploymentID, Bundle: &policiesv1.RemediationPoliciesBundle{},
		})
		wantReason(t, err, "CONFLICT", map[string]string{"state_version": first})
	})
}

// TestTwoWriters: of concurrent applies to one state, one succeeds and the others get the new version.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		from := s.current(t)
		const writers = 6
		answers := make([]apitest.Answer, writers)
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				policy := strings.Replace(critical, `"no-critical"`, `"writer-`+string(rune('a'+i))+`"`, 1)
				answers[i] = s.Do(t, s.Token, http.MethodPut, s.remediation(), `{"bundle":{"policies":[`+policy+`]}}`, "If-Match", from)
			})
		}
		all.Wait()
		stored := s.Get(t, s.remediation())
		won := 0
		for _, answer := range answers {
			switch {
			case answer.Status == 200 && answer.Body == stored:
				won++
			case answer.Status != 409 || version(t, answer.Body) != version(t, stored):
				t.Errorf("got %d %s", answer.Status, answer.Body)
			}
		}
		if won != 1 {
			t.Errorf("%d writers won: %s", won, stored)
		}
	})
}

func TestTenants(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		globex := s.AddTenant(t, "globex")
		s.seed(t, globex)
		s.put(t, "["+critical+"]", 200)
		theirs := path(globex, "remediation-policies")
		empty := s.want(t, 200, globex.Token, http.MethodGet, theirs, "", "", `"deployment_slug":"globex","policies":[]`)
		for _, at := range []struct{ method, path string }{
			{http.MethodGet, s.remediation()},
			{http.MethodPut, s.remediation()},
			{http.MethodPost, s.remediation() + ":dryRun"},
			{http.MethodGet, path(s.Tenant, "vocab")},
		} {
			body := ""
			if at.method != http.MethodGet {
				body = `{"bundle":{}}`
			}
			s.want(t, 404, globex.Token, at.method, at.path, body, "*", "deployment not found")
		}
		// The same slug in two deployments is two policies, and names of other deployments are unknown.
		s.want(t, 400, globex.Token, http.MethodPut, theirs, `{"bundle":{"policies":[`+critical+`]}}`, version(t, empty), "UNKNOWN_REFERENCE", "acme/web")
		s.want(t, 200, globex.Token, http.MethodPut, theirs, `{"bundle":{"policies":[`+strings.ReplaceAll(critical, "acme/web", "globex/web")+`]}}`, version(t, empty))
		s.put(t, "[]", 200)
		s.want(t, 200, globex.Token, http.MethodGet, theirs, "", "", "no-critical", "globex/web")

		for _, role := range []access.Role{access.RoleMember, access.RoleReadOnly} {
			token := s.AddToken(t, s.Tenant, access.TokenSpec{Role: role})
			s.want(t, 200, token, http.MethodGet, s.remediation(), "", "")
			s.want(t, 200, token, http.MethodPost, s.remediation()+":dryRun", `{"bundle":{}}`, "")
			s.want(t, 403, token, http.MethodPut, s.remediation(), `{"bundle":{}}`, s.current(t), string(role))
		}
		user := s.AddUser(t, s.Tenant, "ada@acme.test", access.RoleAdmin)
		s.want(t, 403, user, http.MethodGet, s.remediation(), "", "", "SCHEME_NOT_ACCEPTED")
	})
}

func TestVocab(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		for _, product := range []string{"", "code", "secrets", "remediation"} {
			body := s.Get(t, path(s.Tenant, "vocab?product="+product))
			apitest.Golden(t, "vocab_"+product, body)
			same[*policiesv1.GetVocabResponse](t, body)(s.client.GetVocab(s.context(t, ""), &policiesv1.GetVocabRequest{DeploymentId: s.DeploymentID, Product: product}))
		}
		if s.Get(t, path(s.Tenant, "vocab")) != s.Get(t, path(s.Tenant, "vocab?product=")) {
			t.Error("no product and an empty one differ")
		}
		s.want(t, 400, s.Token, http.MethodGet, path(s.Tenant, "vocab?product=sca"), "", "", "product must be one of code, secrets, remediation")
	})
}

// TestLoad: Load returns the applied policies without inactive ones.
func TestLoad(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		inactive := strings.Replace(secrets, `"active":true`, `"active":false`, 1)
		s.put(t, "["+critical+","+inactive+"]", 200)
		policies, err := remediation.Load(tenant.NewContext(t.Context(), s.DeploymentID), s.Store.Reader)
		if err != nil {
			t.Fatal(err)
		}
		got := remediation.Block(policies, []remediation.Facts{
			{MatchBasedID: "ab_0", Severity: "critical", Project: "acme/web", Product: "secrets"},
			{MatchBasedID: "cd_0", Severity: "critical", Project: "acme/api", Product: "secrets"},
			{MatchBasedID: "ef_0", Severity: "high", Project: "acme/web", Verdict: "false_positive"},
		})
		if !got.Block || got.Reason != "policy No critical findings: 1 finding (Ask #appsec)" || len(got.MatchBasedIDs) != 1 || got.MatchBasedIDs[0] != "ab_0" {
			t.Errorf("got %+v", got)
		}
	})
}
