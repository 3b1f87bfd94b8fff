package policies_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// custom is a bundle that uses everything.
const custom = `{"rulesets":["starter"],"rules":["acme.exec","acme.eval"],"disabled":["acme.exec"],"exceptions":[
	{"exception_type":"exclude","project":"acme/web","rule":"acme.eval","rule_type":"rule"},
	{"exception_type":"include","project_tag_name":"acme-pci","rule":"import","rule_type":"ruleset"}]}`

func TestDetectionPolicy(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		s.found(t, "acme/web", "acme.eval", 2)
		s.found(t, "acme/api", "acme.eval", 3)
		s.found(t, "acme/web", "acme.exec", 1)
		at := s.detectionPath("code")
		none := s.Get(t, at)
		apitest.Golden(t, "detection_none", none)
		get := &policiesv1.GetDetectionPolicyRequest{DeploymentId: s.DeploymentID, Product: "code"}
		same[*policiesv1.GetDetectionPolicyResponse](t, none)(s.client.GetDetectionPolicy(s.context(t, ""), get))

		dry := s.preview(t, "code", custom)
		apitest.Golden(t, "detection_dry_run", dry)
		bundle := &policiesv1.DetectionPolicyBundle{}
		if err := protojson.Unmarshal([]byte(custom), bundle); err != nil {
			t.Fatal(err)
		}
		same[*policiesv1.DryRunDetectionPolicyResponse](t, dry)(s.client.DryRunDetectionPolicy(s.context(t, ""),
			&policiesv1.DryRunDetectionPolicyRequest{DeploymentId: s.DeploymentID, Product: "code", Bundle: bundle}))
		if s.Get(t, at) != none {
			t.Error("the dry run changed something")
		}
		applied, err := s.client.ApplyDetectionPolicy(s.context(t, version(t, dry)),
			&policiesv1.ApplyDetectionPolicyRequest{DeploymentId: s.DeploymentID, Product: "code", Bundle: bundle})
		if err != nil {
			t.Fatal(err)
		}
		body := s.Get(t, at)
		apitest.Golden(t, "detection_put", body)
		apitest.Same(t, applied, body)

		if got := s.preview(t, "code", bundleOf(t, body)); got != `{"creates":[],"updates":[],"deletes":[],"state_version":"`+version(t, body)+`","validation_errors":[]}` {
			t.Errorf("its own answer would change something: %s", got)
		}
		if got := s.apply(t, "code", bundleOf(t, body), 200); got != body {
			t.Errorf("got %s", got)
		}
		summary := s.Get(t, path(s.Tenant, "detection-policy"))
		apitest.Golden(t, "detection_summary", summary)
		same[*policiesv1.GetDetectionPolicySummaryResponse](t, summary)(s.client.GetDetectionPolicySummary(s.context(t, ""),
			&policiesv1.GetDetectionPolicySummaryRequest{DeploymentId: s.DeploymentID}))

		apitest.Golden(t, "detection_dry_run_back", s.preview(t, "code", `{"rulesets":["default"],"exceptions":[
			{"exception_type":"include","project":"acme/web","rule":"acme.eval","rule_type":"rule"}]}`))
		if got := s.apply(t, "code", `{"rulesets":["default"]}`, 200); got != none {
			t.Errorf("got %s, want %s", got, none)
		}
		apitest.Golden(t, "detection_audit", changesOf(t, s))
	})
}

// bundleOf returns the bundle of an answer.
func bundleOf(t testing.TB, body string) string {
	t.Helper()
	var answer struct{ Bundle json.RawMessage }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	return string(answer.Bundle)
}

// TestDetectionOfScans: the rules of a scan obey the policies, and a change has an effect on the next scan.
func TestDetectionOfScans(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		const others = " key[] lodash[] token[]"
		want := func(web, api, elsewhere string) {
			t.Helper()
			for project, want := range map[string]string{"acme/web": web, "acme/api": api, "": elsewhere, "acme/unknown": elsewhere} {
				if got := s.sent(t, project); got != strings.TrimSpace(want+others) {
					t.Errorf("%q runs %s, want %s", project, got, want)
				}
			}
		}
		want("eval[] exec[]", "eval[] exec[]", "eval[] exec[]")
		s.apply(t, "code", `{"rulesets":["starter"],"rules":["acme.exec"]}`, 200)
		want("exec[]", "exec[]", "exec[]")
		s.apply(t, "code", `{}`, 200)
		want("", "", "")
		s.apply(t, "code", custom, 200)
		want("", "eval[] exec[]", "eval[]")
		// A rule counts more than a ruleset, a project more than a tag, exclude more than include.
		s.apply(t, "code", `{"exceptions":[
			{"exception_type":"include","project_tag_name":"acme-pci","rule":"acme.eval","rule_type":"rule"},
			{"exception_type":"exclude","project":"acme/api","rule":"default","rule_type":"ruleset"},
			{"exception_type":"include","project":"acme/web","rule":"import","rule_type":"ruleset"},
			{"exception_type":"exclude","project":"acme/web","rule":"acme.exec","rule_type":"rule"}]}`, 200)
		want("eval[]", "eval[]", "")
		s.apply(t, "code", `{"rulesets":["default"],"exceptions":[
			{"exception_type":"exclude","project_tag_name":"acme-pci","rule":"acme.eval","rule_type":"rule"},
			{"exception_type":"include","project":"acme/api","rule":"acme.eval","rule_type":"rule"},
			{"exception_type":"exclude","project_tag_name":"acme-pci","rule":"acme.exec","rule_type":"rule"}]}`, 200)
		want("eval[] exec[]", "eval[]", "eval[] exec[]")
		s.untag(t, "acme/api")
		want("eval[] exec[]", "eval[] exec[]", "eval[] exec[]")
		s.apply(t, "secrets", `{"rulesets":["default"],"disabled":["acme.key","acme.token"]}`, 200)
		s.apply(t, "supply-chain", `{}`, 200)
		if got := s.sent(t, "acme/web"); got != "eval[] exec[]" {
			t.Errorf("got %s", got)
		}
	})
}

// TestDetectionForgetsRules: what an apply leaves out does not come back with a rule that was deleted before.
func TestDetectionForgetsRules(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		s.apply(t, "code", `{"rules":["acme.eval","acme.exec"],"exceptions":[{"exception_type":"exclude","project":"acme/web","rule":"acme.eval","rule_type":"rule"}]}`, 200)
		s.Body(t, s.Token, http.MethodDelete, fmt.Sprintf("/api/rules/v1/deployments/%d/rules/acme.eval", s.DeploymentID), "", 200)
		kept := s.Get(t, s.detectionPath("code"))
		if got := s.apply(t, "code", bundleOf(t, kept), 200, `"rules":["acme.exec"]`, `"exceptions":[]`); got != kept {
			t.Errorf("got %s, want %s", got, kept)
		}
		source, err := json.Marshal(documents)
		if err != nil {
			t.Fatal(err)
		}
		s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/rules/v1/deployments/%d/rules", s.DeploymentID), `{"files":[{"name":"a.json","text":`+string(source)+`}]}`, 200)
		if got := s.Get(t, s.detectionPath("code")); got != kept {
			t.Errorf("with the rule again: %s, want %s", got, kept)
		}
	})
}

func TestDetectionIfMatch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		at := s.detectionPath("code")
		first := version(t, s.Get(t, at))
		answer := s.Do(t, s.Token, http.MethodGet, at, "")
		if tag := answer.Header.Get("ETag"); tag != `"`+first+`"` {
			t.Errorf("the entity tag is %s", tag)
		}
		if again := s.Do(t, s.Token, http.MethodGet, at, "", "If-None-Match", `"`+first+`"`); again.Status != 304 {
			t.Errorf("got %d %s", again.Status, again.Body)
		}
		body := `{"bundle":{"rulesets":["default"],"disabled":["acme.exec"]}}`
		s.want(t, 428, s.Token, http.MethodPut, at, body, "", `"code":"PRECONDITION_REQUIRED"`)
		s.want(t, 200, s.Token, http.MethodPut, at, body, `"`+first+`"`)
		second := version(t, s.Get(t, at))
		s.want(t, 409, s.Token, http.MethodPut, at, body, first, `"code":"CONFLICT"`, `"state_version":"`+second+`"`)
		s.want(t, 200, s.Token, http.MethodPut, at, `{"bundle":{"rulesets":["default"]}}`, "*")
		if third := version(t, s.Get(t, at)); third != first {
			t.Error("the version depends on more than the content")
		}
		// Modes that are set elsewhere are part of the state.
		s.want(t, 200, s.Token, http.MethodPatch, fmt.Sprintf("/api/rules/v1/deployments/%d/rules", s.DeploymentID), `{"names":["acme.exec"],"mode":"RULE_MODE_OFF"}`, "")
		if third := version(t, s.Get(t, at)); third != second {
			t.Error("the mode off is not part of the policy")
		}
		_, err := s.client.ApplyDetectionPolicy(s.context(t, ""), &policiesv1.ApplyDetectionPolicyRequest{
			DeploymentId: s.DeploymentID, Product: "code", Bundle: &policiesv1.DetectionPolicyBundle{},
		})
		wantReason(t, err, "PRECONDITION_REQUIRED", nil)
		_, err = s.client.ApplyDetectionPolicy(s.context(t, first), &policiesv1.ApplyDetectionPolicyRequest{
			DeploymentId: s.DeploymentID, Product: "code", Bundle: &policiesv1.DetectionPolicyBundle{},
		})
		wantReason(t, err, "CONFLICT", map[string]string{"state_version": second})
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost} {
			for _, product := range []string{"sast", "Code", "remediation", "sca"} {
				target, sent := s.detectionPath(product), ""
				if method != http.MethodGet {
					sent = body
				}
				if method == http.MethodPost {
					target += ":dryRun"
				}
				s.want(t, 404, s.Token, method, target, sent, "*", `"code":"PRODUCT_NOT_ENABLED"`)
			}
		}
	})
}

func TestDetectionProblems(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		before := s.apply(t, "code", custom, 200)
		except := func(more string) string { return `{"exceptions":[{` + more + `}]}` }
		const rule = `,"rule":"acme.eval","rule_type":"rule"`
		for bundle, want := range map[string][2]string{
			`{"deployment_slug":"globex"}`:                                 {"INVALID_ARGUMENT", "deployment_slug"},
			`{"product":"secrets"}`:                                        {"INVALID_ARGUMENT", "product"},
			`{"rulesets":["default","p/ci"]}`:                              {"UNKNOWN_REFERENCE", "rulesets[1]"},
			`{"rulesets":["default","default"]}`:                           {"INVALID_ARGUMENT", "rulesets[1]"},
			`{"rulesets":[""]}`:                                            {"INVALID_ARGUMENT", "rulesets[0]"},
			`{"rules":["acme.eval","acme.gone"]}`:                          {"UNKNOWN_REFERENCE", "rules[1]"},
			`{"rules":["acme.token"]}`:                                     {"UNKNOWN_REFERENCE", "rules[0]"},
			`{"rules":["acme.eval","acme.eval"]}`:                          {"INVALID_ARGUMENT", "rules[1]"},
			`{"disabled":["acme.gone"]}`:                                   {"UNKNOWN_REFERENCE", "disabled[0]"},
			`{"disabled":["acme.eval","acme.eval"]}`:                       {"INVALID_ARGUMENT", "disabled[1]"},
			except(`"project":"acme/web"` + rule):                          {"INVALID_ARGUMENT", "exceptions[0].exception_type"},
			except(`"exception_type":"maybe","project":"acme/web"` + rule): {"INVALID_ARGUMENT", "exceptions[0].exception_type"},
			except(`"exception_type":"include"` + rule):                    {"INVALID_ARGUMENT", "exceptions[0].project"},
			except(`"exception_type":"include","project":"acme/web","project_tag_name":"acme-pci"` + rule):                                 {"INVALID_ARGUMENT", "exceptions[0].project"},
			except(`"exception_type":"include","project":"globex/web"` + rule):                                                             {"UNKNOWN_REFERENCE", "exceptions[0].project"},
			except(`"exception_type":"include","project_tag_name":"globex-pci"` + rule):                                                    {"UNKNOWN_REFERENCE", "exceptions[0].project_tag_name"},
			except(`"exception_type":"include","project":"acme/web","rule_type":"rule"`):                                                   {"INVALID_ARGUMENT", "exceptions[0].rule"},
			except(`"exception_type":"include","project":"acme/web","rule":"acme.eval"`):                                                   {"INVALID_ARGUMENT", "exceptions[0].rule_type"},
			except(`"exception_type":"include","project":"acme/web","rule":"acme.eval","rule_type":"pack"`):                                {"INVALID_ARGUMENT", "exceptions[0].rule_type"},
			except(`"exception_type":"include","project":"acme/web","rule":"acme.eval","rule_type":"ruleset"`):                             {"UNKNOWN_REFERENCE", "exceptions[0].rule"},
			except(`"exception_type":"include","project":"acme/web","rule":"acme.gone","rule_type":"rule"`):                                {"UNKNOWN_REFERENCE", "exceptions[0].rule"},
			except(`"exception_type":"include","project":"acme/web"` + rule + `},{"exception_type":"exclude","project":"acme/web"` + rule): {"INVALID_ARGUMENT", "exceptions[1]"},
		} {
			s.apply(t, "code", bundle, 400, `"code":"`+want[0]+`"`, want[1])
			errors := problems(t, s.preview(t, "code", bundle))
			if len(errors) != 1 || errors[0].Code != want[0] || errors[0].Context["field"] != want[1] || errors[0].Message == "" {
				t.Errorf("%s: the dry run says %+v", bundle, errors)
			}
		}
		all := problems(t, s.preview(t, "code", `{"product":"x","rulesets":["x"],"rules":["x"],"disabled":["x"],"exceptions":[{}]}`))
		if len(all) != 8 {
			t.Errorf("got %d problems: %+v", len(all), all)
		}
		many := strings.TrimSuffix(strings.Repeat(`{},`, 2001), ",")
		s.want(t, 400, s.Token, http.MethodPut, s.detectionPath("code"), `{"bundle":{"exceptions":[`+many+`]}}`, "*", "at most 2000 items, got 2001")
		s.want(t, 400, s.Token, http.MethodPut, s.detectionPath("code"), `{"bundle":{"exceptions":[null]}}`, "*", "bundle.exceptions[0] must not be null")
		for _, body := range []string{``, `{}`, `{"bundle":null}`} {
			s.want(t, 400, s.Token, http.MethodPut, s.detectionPath("code"), body, "*", "bundle is required")
		}
		if got := s.Get(t, s.detectionPath("code")); got != before {
			t.Errorf("something refused was stored: %s", got)
		}
	})
}

func TestDetectionTenancyAndRoles(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		globex := s.AddTenant(t, "globex")
		s.seed(t, globex)
		s.imported(t, globex)
		s.apply(t, "code", custom, 200)
		theirs := path(globex, "detection-policy/code")
		s.want(t, 200, globex.Token, http.MethodGet, theirs, "", "", `"rulesets":["default"],"rules":[],"disabled":[],"exceptions":[]`)
		s.want(t, 404, globex.Token, http.MethodGet, s.detectionPath("code"), "", "", "deployment not found")
		s.want(t, 404, globex.Token, http.MethodPut, s.detectionPath("code"), `{"bundle":{}}`, "*", "deployment not found")
		s.want(t, 404, globex.Token, http.MethodPost, s.detectionPath("code")+":dryRun", `{"bundle":{}}`, "", "deployment not found")
		s.want(t, 400, globex.Token, http.MethodPut, theirs, `{"bundle":`+custom+`}`, "*", "UNKNOWN_REFERENCE", "acme/web")
		for _, role := range []access.Role{access.RoleMember, access.RoleReadOnly} {
			token := s.AddToken(t, s.Tenant, access.TokenSpec{Role: role})
			s.want(t, 200, token, http.MethodGet, s.detectionPath("code"), "", "")
			s.want(t, 200, token, http.MethodPost, s.detectionPath("code")+":dryRun", `{"bundle":{}}`, "")
			s.want(t, 403, token, http.MethodPut, s.detectionPath("code"), `{"bundle":{}}`, "*", string(role))
		}
	})
}

// drawn draws a bundle for the product code.
func drawn(rt *rapid.T) *policiesv1.DetectionPolicyBundle {
	some := func(what string, of ...string) []string {
		return rapid.SliceOfDistinct(rapid.SampledFrom(of), func(s string) string { return s }).Draw(rt, what)
	}
	b := &policiesv1.DetectionPolicyBundle{
		Rulesets: some("rulesets", "default", "starter", "import", "publish"), Rules: some("rules", "acme.eval", "acme.exec"),
		Disabled: some("disabled", "acme.eval", "acme.exec"),
	}
	for _, where := range some("exceptions", "acme/web rule acme.eval", "acme/web ruleset default", "acme/api rule acme.exec", "acme/api ruleset import",
		"acme-pci rule acme.eval", "acme-pci ruleset starter") {
		words := strings.Fields(where)
		e := &policiesv1.DetectionPolicyException{RuleType: words[1], Rule: words[2], ExceptionType: rapid.SampledFrom([]string{"include", "exclude"}).Draw(rt, "type")}
		if e.Project = words[0]; words[0] == "acme-pci" {
			e.Project, e.ProjectTagName = "", words[0]
		}
		b.Exceptions = append(b.Exceptions, e)
	}
	return b
}

// predict applies the entries of a dry run to a bundle.
func predict(of *policiesv1.DetectionPolicyBundle, dry *policiesv1.DryRunDetectionPolicyResponse) *policiesv1.DetectionPolicyBundle {
	out := proto.CloneOf(of)
	key := func(e *policiesv1.DetectionPolicyException) string {
		return e.GetProject() + e.GetProjectTagName() + " " + e.GetRuleType() + " " + e.GetRule()
	}
	for _, entry := range slices.Concat(dry.GetCreates(), dry.GetUpdates(), dry.GetDeletes()) {
		k := entry.GetKey()
		if entry.GetKind() == "detection_policy" {
			out.Rulesets, out.Rules, out.Disabled = entry.GetAfter().GetRulesets(), entry.GetAfter().GetRules(), entry.GetAfter().GetDisabled()
			continue
		}
		e := &policiesv1.DetectionPolicyException{ExceptionType: entry.GetAfter().GetExceptionType(), RuleType: k.GetRuleType(), Rule: k.GetRule()}
		if e.Project = k.GetScopeTarget(); k.GetScopeType() == "project_tag" {
			e.Project, e.ProjectTagName = "", k.GetScopeTarget()
		}
		out.Exceptions = slices.DeleteFunc(out.Exceptions, func(old *policiesv1.DetectionPolicyException) bool { return key(old) == key(e) })
		if entry.GetAfter() != nil {
			out.Exceptions = append(out.Exceptions, e)
		}
	}
	slices.SortFunc(out.GetExceptions(), func(a, b *policiesv1.DetectionPolicyException) int { return strings.Compare(key(a), key(b)) })
	return out
}

// TestDryRunPredictsApply: applying the entries of a dry run to the bundle before gives the bundle after.
func TestDryRunPredictsApply(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		get := func() *policiesv1.GetDetectionPolicyResponse {
			r, err := s.client.GetDetectionPolicy(s.context(t, ""), &policiesv1.GetDetectionPolicyRequest{DeploymentId: s.DeploymentID, Product: "code"})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		rapid.Check(t, func(rt *rapid.T) {
			bundle, before := drawn(rt), get()
			dry, err := s.client.DryRunDetectionPolicy(s.context(t, ""), &policiesv1.DryRunDetectionPolicyRequest{DeploymentId: s.DeploymentID, Product: "code", Bundle: bundle})
			if err != nil || len(dry.GetValidationErrors()) > 0 {
				rt.Fatal(err, dry)
			}
			applied, err := s.client.ApplyDetectionPolicy(s.context(t, dry.GetStateVersion()), &policiesv1.ApplyDetectionPolicyRequest{DeploymentId: s.DeploymentID, Product: "code", Bundle: bundle})
			if err != nil {
				rt.Fatal(err)
			}
			after := get()
			if !proto.Equal(applied.GetBundle(), after.GetBundle()) || applied.GetStateVersion() != after.GetStateVersion() {
				rt.Fatalf("apply answered %v, get %v", applied, after)
			}
			none := &policiesv1.DryRunDetectionPolicyResponse{}
			if want, got := predict(before.GetBundle(), dry), predict(after.GetBundle(), none); !proto.Equal(want, got) {
				rt.Fatalf("predicted %v, got %v", want, got)
			}
			if nothing := len(dry.GetCreates())+len(dry.GetUpdates())+len(dry.GetDeletes()) == 0; nothing != (before.GetStateVersion() == after.GetStateVersion()) {
				rt.Fatalf("%v: the versions are %s and %s", dry, before.GetStateVersion(), after.GetStateVersion())
			}
		})
	})
}

// TestDetectionReconcilers: of two reconcilers with different bundles one wins each time, and none is half applied.
func TestDetectionReconcilers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		bundles := []string{custom, `{"rulesets":["import"],"rules":[],"disabled":["acme.eval"],"exceptions":[
			{"exception_type":"include","project":"acme/web","rule":"acme.eval","rule_type":"rule"}]}`}
		states := map[string]bool{version(t, s.Get(t, s.detectionPath("code"))): true}
		for _, bundle := range bundles {
			states[version(t, s.apply(t, "code", bundle, 200))] = true
		}
		for range 5 {
			current := version(t, s.Get(t, s.detectionPath("code")))
			var statuses [2]int
			var group sync.WaitGroup
			for i, bundle := range bundles {
				group.Go(func() {
					statuses[i] = s.Do(t, s.Token, http.MethodPut, s.detectionPath("code"), `{"bundle":`+bundle+`}`, "If-Match", current).Status
				})
			}
			group.Wait()
			slices.Sort(statuses[:])
			// The bundle that is in place already changes nothing, so that both may succeed.
			if statuses != [2]int{200, 409} && statuses != [2]int{200, 200} {
				t.Errorf("got %v", statuses)
			}
			if now := version(t, s.Get(t, s.detectionPath("code"))); !states[now] {
				t.Fatalf("half applied: %s", s.Get(t, s.detectionPath("code")))
			}
		}
	})
}
