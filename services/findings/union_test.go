package findings_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// sameList reads a list over HTTP, requires the same list over gRPC, and returns its labels.
func sameList(t *testing.T, s *apitest.Server, query string, r *findingsv1.ListFindingsRequest) string {
	t.Helper()
	r.DeploymentSlug = s.Slug
	response, err := findingsv1.NewFindingsServiceClient(s.Conn).ListFindings(s.Context(t, s.Token), r)
	if err != nil {
		t.Fatalf("%v: %v", r, err)
	}
	apitest.Same(t, response, s.Get(t, "/api/v1/deployments/"+s.Slug+"/findings?"+query))
	found := []string{}
	for _, f := range response.GetFindings() {
		found = append(found, f.GetRuleMessage())
	}
	return strings.Join(found, " ")
}

// sameAsAlone requires each finding of a list of several issue types to be the same as in the list of its type.
func sameAsAlone(t *testing.T, s *apitest.Server, types ...string) {
	t.Helper()
	read := func(types string) map[string]string {
		var page struct{ Findings []json.RawMessage }
		body := s.Get(t, listPath+"?page_size=500&issue_type="+types)
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			t.Fatal(err)
		}
		byID := map[string]string{}
		for _, f := range page.Findings {
			var named struct{ ID json.Number }
			if err := json.Unmarshal(f, &named); err != nil {
				t.Fatal(err)
			}
			byID[named.ID.String()] = string(f)
		}
		return byID
	}
	mixed, alone := read(strings.Join(types, ",")), 0
	for _, one := range types {
		for id, want := range read(one) {
			if alone++; mixed[id] != want {
				t.Fatalf("of %v: %s, alone: %s", types, mixed[id], want)
			}
		}
	}
	if alone != len(mixed) {
		t.Errorf("%v: %d findings, %d alone", types, len(mixed), alone)
	}
}

// Several issue types come in one order, newest first, each in its own variant.
func TestSeveralIssueTypes(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		facts := many(450, func(i int, f *fact) {
			if f.kind = []string{"sast", "sca", "ai_sast", "secrets"}[i%4]; f.kind == "sca" {
				f.content = supplied()
				f.content.Message = f.label
			}
		})
		l.seed(t, s, facts...)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Exploit.Create().SetDeploymentID(s.DeploymentID).SetCve("CVE-2026-1234").SetScore(0.25).SetPercentile(0.5).SetListedAt(base).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		sameAsAlone(t, s, "sast", "sca", "ai_sast")
		sameAsAlone(t, s, "sca", "sast")
		kindOf := map[string]string{}
		for _, f := range facts {
			kindOf[f.label] = f.kind
		}
		want := slices.DeleteFunc(inOrder(450), func(label string) bool { return kindOf[label] == "ai_sast" || kindOf[label] == "secrets" })
		for _, spelling := range []string{"issue_type=sast&issue_type=sca", "issue_type=sca,sast", "issue_type[0]=sast&issue_type[1]=sca"} {
			var got []string
			for page := range 4 {
				got = append(got, strings.Fields(labels(t, s, fmt.Sprintf("%s&page=%d", spelling, page)))...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d findings %v, want %d %v", spelling, len(got), got, len(want), want)
			}
		}
		both := &findingsv1.ListFindingsRequest{IssueType: []string{"sast", "sca"}}
		first := sameList(t, s, "issue_type=sast,sca", both)
		if first != strings.Join(want[:100], " ") {
			t.Errorf("over gRPC: %s", first)
		}
		for _, variant := range []struct{ kind, has, not string }{
			{"sast", `"assistant":`, `"reachability":`}, {"sca", `"reachability":`, `"assistant":`},
		} {
			i := slices.IndexFunc(want, func(label string) bool { return kindOf[label] == variant.kind })
			body := s.Get(t, listPath+"?issue_type=sast,sca")
			found := body[strings.Index(body, `"rule_message":"`+want[i]+`"`):]
			start := strings.LastIndex(body[:len(body)-len(found)], `{"id":`)
			found = body[start:]
			if end := strings.Index(found[1:], `{"id":`+fmt.Sprint(l.findings[want[i+1]])); end > 0 {
				found = found[:end]
			}
			if !strings.Contains(found, variant.has) || strings.Contains(found, variant.not) {
				t.Errorf("the variant of %s: %s", variant.kind, found)
			}
		}

		// New findings do not move the pages of a client that reads on.
		var rest []string
		for page := range 4 {
			rest = append(rest, strings.Fields(labels(t, s, fmt.Sprintf("issue_type=sast,sca&page=%d", page)))...)
			l.seed(t, s, fact{label: fmt.Sprintf("new%d", page), kind: "sca", at: int64(1 + page)})
		}
		if !slices.Equal(rest, want) {
			t.Errorf("during uploads: %v, want %v", rest, want)
		}
	})
}

// A filter that the contract defines for one of the issue types does not apply to the others, as in separate requests.
func TestFiltersOfSeveralIssueTypes(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedVariety(t, s)
		for _, c := range []struct {
			query, want string
			request     *findingsv1.ListFindingsRequest
		}{
			{"issue_type=sast,ai_sast&confidence=low&severities=low", "a2 d1", &findingsv1.ListFindingsRequest{
				IssueType: []string{"sast", "ai_sast"}, Confidence: []string{"low"}, Severities: []string{"low"},
			}},
			{"issue_type=sca,sast&rules=nothing&exposures=reachable", "c1", &findingsv1.ListFindingsRequest{
				IssueType: []string{"sca", "sast"}, Rules: []string{"nothing"}, Exposures: []string{"reachable"},
			}},
			{"issue_type=sast,sca,ai_sast&severities=low&dedup=true&repos=acme/web", "a2 d1", &findingsv1.ListFindingsRequest{
				IssueType: []string{"sast", "sca", "ai_sast"}, Severities: []string{"low"}, Dedup: true, Repos: []string{"acme/web"},
			}},
			{"issue_type=sast,sca&repos=acme/none", "", &findingsv1.ListFindingsRequest{
				IssueType: []string{"sast", "sca"}, Repos: []string{"acme/none"},
			}},
			{"status=open,fixing&confidence=high", "a1 a5 b4 b8", &findingsv1.ListFindingsRequest{
				Status: []string{"open", "fixing"}, Confidence: []string{"high"},
			}},
			{"status=ignored&triage_reasons=no_triage_reason,no_time", "b5", &findingsv1.ListFindingsRequest{
				Status: []string{"ignored"}, TriageReasons: []string{"no_triage_reason", "no_time"},
			}},
		} {
			got := strings.Fields(sameList(t, s, c.query, c.request))
			slices.Sort(got)
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s: got %v, want %s", c.query, got, c.want)
			}
		}
	})
}

// A name may contain a comma. Values are split at commas unless such a name is stored.
func TestNamesWithCommas(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/A,B": nil, "acme/c": nil},
			&findingsv1.FindingRule{Name: "a,b", Category: "x,y"}, &findingsv1.FindingRule{Name: "a"}, &findingsv1.FindingRule{Name: "c", Category: "x"})
		l.seed(t, s,
			fact{label: "both", rule: "a,b", project: "acme/A,B", tag: "u,v", ref: "refs/heads/r,s"},
			fact{label: "first", rule: "a", project: "acme/web", tag: "u", ref: "refs/heads/r"},
			fact{label: "other", rule: "c", project: "acme/c", tag: "w", ref: "refs/heads/t"},
			fact{label: "dep", kind: "sca", rule: "npm.left", project: "acme/c", tag: "m", ref: "refs/heads/m"},
			fact{label: "part", kind: "sca", rule: "npm.left", project: "acme/c", tag: "m,n", ref: "refs/heads/m,n"},
			fact{label: "code", rule: "c", project: "acme/c", tag: "n", ref: "refs/heads/n"},
			fact{label: "key", kind: "secrets", rule: "aws.key", project: "acme/A,B"},
			fact{label: "key2", kind: "secrets", rule: "aws.key", project: "acme/c"})
		type request = findingsv1.ListFindingsRequest
		for _, c := range []struct {
			name    string
			request func(values ...string) *request
			values  map[string]string // to the labels that they select
		}{
			{"rules", func(v ...string) *request { return &request{Rules: v} }, map[string]string{"a,b": "both", "a,c": "first other code", "a, ,c": "first other code", "b,a,b": "first"}},
			{"categories", func(v ...string) *request { return &request{Categories: v} }, map[string]string{"x,y": "both", "x,z": "other code"}},
			{"repos", func(v ...string) *request { return &request{Repos: v} }, map[string]string{"ACME/a,b": "both", "acme/web,ACME/C": "first other code"}},
			{"component_tags", func(v ...string) *request { return &request{ComponentTags: v} }, map[string]string{"u,v": "both", "u,w": "first other"}},
			{"ref", func(v ...string) *request { return &request{Ref: v} }, map[string]string{"r,s": "both", "refs/heads/r,s": "both", "r,refs/heads/t": "first other"}},
		} {
			for value, want := range c.values {
				for _, spelling := range []string{c.name, c.name + "[0]"} {
					if got := sameList(t, s, url.QueryEscape(spelling)+"="+url.QueryEscape(value), c.request(value)); got != want {
						t.Errorf("%s=%s: got %q, want %q", spelling, value, got, want)
					}
				}
			}
		}
		if got := sameList(t, s, "rules=a%2Cb&rules=c", &request{Rules: []string{"a,b", "c"}}); got != "both other code" {
			t.Errorf("a name with a comma and another: %s", got)
		}
		// A name that findings of one of the issue types have is whole for all of them.
		both := []string{"sast", "sca"}
		for query, r := range map[string]*request{
			"ref=m%2Cn":            {IssueType: both, Ref: []string{"m,n"}},
			"component_tags=m%2Cn": {IssueType: both, ComponentTags: []string{"m,n"}},
		} {
			if got := sameList(t, s, "issue_type=sast,sca&"+query, r); got != "part" {
				t.Errorf("%s of both: %s", query, got)
			}
		}
		// Each ref has a bound; a joined list of them has another.
		long := strings.Repeat("r", 255)
		if got := sameList(t, s, "ref="+long+",t", &request{Ref: []string{long + ",t"}}); got != "other" {
			t.Errorf("a long list of refs: %s", got)
		}
		for query, want := range map[string]string{
			"ref=t," + long + "r":                 "ref[1] must have at most 255 characters, got 256",
			"ref=" + long + "r":                   "ref[0] must have at most 255 characters, got 256",
			"ref=" + strings.Repeat("r,", 12_801): "ref[0] must have at most 25600 characters, got 25602",
		} {
			if refused := failure(t, s, 400, "GET", listPath+"?"+query, ""); !strings.Contains(refused, want) {
				t.Errorf("%.40s: %s, want %s", query, refused, want)
			}
		}
		for value, want := range map[string]string{"acme/a,b": "key", "acme/web,acme/c": "key2"} {
			if got, _ := secretsOf(t, s, l, "repo="+url.QueryEscape(value)); got != want {
				t.Errorf("secrets of %s: %s, want %s", value, got, want)
			}
			response, err := findingsv1.NewSecretsServiceClient(s.Conn).ListSecrets(s.Context(t, s.Token),
				&findingsv1.ListSecretsRequest{DeploymentId: s.DeploymentID, Repo: []string{value}})
			if err != nil || len(response.GetFindings()) != 1 || response.GetFindings()[0].GetId() != l.findings[want] {
				t.Errorf("secrets of %s over gRPC: %v %v", value, response, err)
			}
		}
		refused := failure(t, s, 400, "GET", listPath+"?rules="+strings.Repeat("x,", 1001), "")
		if !strings.Contains(refused, "rules must have at most 1000 items, got 1001") {
			t.Errorf("a long list: %s", refused)
		}
	})
}

// Secrets that are reviewed or being fixed are open, and a large limit is the largest page.
func TestSecretsInReviewAreOpen(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedSecrets(t, s)
		_, page := secretsOf(t, s, l, "status=FINDING_STATUS_OPEN&limit=100000")
		if len(page.Findings) != 4 {
			t.Errorf("%d open secrets, want 4", len(page.Findings))
		}
		for _, f := range page.Findings {
			if f.Status != "FINDING_STATUS_OPEN" {
				t.Errorf("secret %s is %s", f.ID, f.Status)
			}
		}
		response, err := findingsv1.NewSecretsServiceClient(s.Conn).ListSecrets(s.Context(t, s.Token), &findingsv1.ListSecretsRequest{
			DeploymentId: s.DeploymentID, Limit: 100_000, Status: []findingsv1.FindingStatus{findingsv1.FindingStatus_FINDING_STATUS_OPEN},
		})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, s.Get(t, secretsPath(s.Tenant)+"?status=FINDING_STATUS_OPEN&limit=100000"))

		l.seed(t, s, many(600, func(_ int, f *fact) { f.kind = "secrets" })...)
		if got, page := secretsOf(t, s, l, "limit=100000"); len(strings.Fields(got)) != 500 || *page.Cursor == "" {
			t.Errorf("the largest page has %d secrets and the cursor %q", len(strings.Fields(got)), *page.Cursor)
		}
	})
}
