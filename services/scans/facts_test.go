package scans_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// shown is a finding as the API shows it.
type shown struct {
	ID           int64  `json:"id"`
	Severity     string `json:"severity"`
	State        string `json:"state"`
	Status       string `json:"status"`
	TriageState  string `json:"triage_state"`
	TriageReason string `json:"triage_reason"`
	Comment      string `json:"triage_comment"`
	RuleMessage  string `json:"rule_message"`
	Advisory     string `json:"vulnerability_identifier"`
	Rule         struct {
		CWE   []string `json:"cwe_names"`
		OWASP []string `json:"owasp_names"`
	} `json:"rule"`
	Dependency struct {
		Package   string `json:"package"`
		Version   string `json:"version"`
		Ecosystem string `json:"ecosystem"`
	} `json:"found_dependency"`
}

// findingsOf uploads a report of testdata/facts to an empty project, and returns the findings of a product.
func findingsOf(t *testing.T, s *apitest.Server, file, product string) []shown {
	t.Helper()
	s.Upload(t, "acme/"+file[:3], "main", testdata(t, "facts/"+file))
	return listed(t, s, "acme/"+file[:3], product)
}

func listed(t *testing.T, s *apitest.Server, project, product string) []shown {
	t.Helper()
	body := s.Get(t, "/api/v1/deployments/"+s.Slug+"/findings?issue_type="+product+"&repos="+project)
	var out struct {
		Findings []shown `json:"findings"`
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	slices.SortFunc(out.Findings, func(a, b shown) int { return int(a.ID - b.ID) })
	return out.Findings
}

// TestFactsOfReports: what reports of real tools say reaches the API, wherever they say it.
func TestFactsOfReports(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, f := range findingsOf(t, s, "08a-gitlab-semgrep-security-severity-CRITICAL.sarif", "sast") {
			if f.Severity != "critical" || !slices.Equal(f.Rule.CWE, []string{"CWE-943"}) || len(f.Rule.OWASP) != 2 {
				t.Errorf("08a: %+v", f)
			}
		}
		var lines []string
		for _, file := range []string{"08b-dependency-check-6.1.2-result-severity.sarif", "09a-dependency-check-current-template.sarif", "09c-grype-0.34.7.sarif"} {
			for _, f := range findingsOf(t, s, file, "sca") {
				lines = append(lines, strings.Join([]string{f.Severity, f.Dependency.Package, f.Dependency.Version, f.Dependency.Ecosystem, f.Advisory}, " "))
			}
		}
		want := []string{
			"low handlebars 1.0.0 npm Disallow calling helperMissing and blockHelperMissing directly",
			"medium handlebars 1.0.0 npm Prototype pollution",
			"medium handlebars 1.0.0 npm Quoteless attributes in templates can lead to XSS",
			"medium jquery 3.4.1 npm CVE-2020-11023",
			"high xerces:xercesImpl 2.9.1 maven CVE-2009-2625",
			"low geronimo-j2ee-management_1.1_spec 1.0.1 maven CVE-2008-0732",
			"low geronimo-javamail_1.4_mail 1.8.4 maven CVE-2008-0732",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("dependencies:\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
		for _, f := range findingsOf(t, s, "10-mayhem-result-taxa.sarif", "sast") {
			if !slices.Equal(f.Rule.CWE, []string{"CWE-20: Improper Input Validation"}) {
				t.Errorf("10: CWEs %q", f.Rule.CWE)
			}
		}
	})
}

// issueOf returns one finding with its context.
func issueOf(t *testing.T, s *apitest.Server, id int64) map[string]any {
	t.Helper()
	body := s.Get(t, fmt.Sprintf("/api/agent/deployments/%d/issues/v2/%d?includeCodeSnippet=true", s.DeploymentID, id))
	out := map[string]any{}
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return out
}

// TestSecretsNeverLeave: a secret is in no answer, and nowhere in the database, whatever tool found it.
func TestSecretsNeverLeave(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		const key = "D-EXAMPLEKEY0123456789abcdefghijkl"
		for _, f := range findingsOf(t, s, "13a-patternmatcher-secret-shown.sarif", "sast") {
			explained := s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/findings/%d/identity", s.DeploymentID, f.ID))
			for what, shown := range map[string]string{
				"list": fmt.Sprint(f), "issue": fmt.Sprint(issueOf(t, s, f.ID)), "explanation": explained,
			} {
				if strings.Contains(shown, key) || !strings.Contains(shown, "keys.txt") && what != "list" {
					t.Errorf("%s: %s", what, shown)
				}
			}
		}
		for _, row := range s.Store.Reader.Finding.Query().AllX(s.System(t)) {
			if strings.Contains(string(row.Content), key) {
				t.Error("the database has the key")
			}
		}
	})
}

// TestFlowsAreServed: the path of a code flow is a data-flow trace, and its steps are in the context.
func TestFlowsAreServed(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		f := findingsOf(t, s, "15-snykcode-codeflow-dropped.sarif", "sast")[0]
		var issue struct {
			Trace struct {
				Source, Between, Sink []struct {
					Path       string
					Start, End struct{ Line, Col json.Number }
				}
			}
			Context struct {
				CodeFlows []struct {
					ThreadFlows []struct {
						Steps []struct {
							Location struct {
								Path string
								Line int
							}
						}
					}
				}
				RuleHelp string
			}
		}
		raw, err := json.Marshal(issueOf(t, s, f.ID))
		if err != nil {
			t.Fatal(err)
		}
		named := strings.NewReplacer("dataflowTrace", "trace", "taintSource", "source", "taintSink", "sink", "intermediateVars", "between").Replace(string(raw))
		if err := json.Unmarshal([]byte(named), &issue); err != nil {
			t.Fatal(err)
		}
		trace := issue.Trace
		if len(trace.Source) != 1 || len(trace.Between) != 6 || len(trace.Sink) != 1 ||
			trace.Source[0].Path != "routes/likeProductReviews.ts" || trace.Source[0].Start.Line != "16" || trace.Sink[0].Start.Line != "18" || trace.Sink[0].End.Col != "33" {
			t.Errorf("trace: %s", raw)
		}
		if flows := issue.Context.CodeFlows; len(flows) != 1 || len(flows[0].ThreadFlows) != 1 || len(flows[0].ThreadFlows[0].Steps) != 8 {
			t.Errorf("flows: %s", raw)
		}
		if !strings.HasPrefix(issue.Context.RuleHelp, "## Details") {
			t.Errorf("help: %q", issue.Context.RuleHelp)
		}
		list := s.Get(t, "/api/v1/deployments/"+s.Slug+"/findings?repos=acme/15-")
		if n := strings.Count(list, "## Details"); n != 1 || !strings.Contains(list, `"rule_explanation":{"explanation":"## Details`) {
			t.Errorf("the help of the rule is in the list %d times, want once, as the explanation: %.3000s", n, list)
		}
	})
}

// TestAcceptedSuppressions: what people accepted in their tool is a decision with the reason, the kind and the person.
// A decision that a person makes here stays, and the tool's ends with the suppression.
func TestAcceptedSuppressions(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		f := findingsOf(t, s, "17-suppression-justification-not-shown.sarif", "sast")[0]
		if f.TriageState != "ignored" || f.Status != "ignored" || f.State != "muted" || f.TriageReason != "no_triage_reason" ||
			f.Comment != "accepted by team, ticket SEC-12 – suppressed in the tool (external)" {
			t.Errorf("external: %+v", f)
		}
		report := func(suppressions string) []byte {
			return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"T"}},"results":[{"ruleId":"R1","message":{"text":"m"},` + suppressions +
				`"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.c"},"region":{"startLine":1}}}]}]}]}`)
		}
		state := func(what, suppressions, want string) {
			t.Helper()
			upload(t, s, "main", report(suppressions))
			found := listed(t, s, "acme/web", "sast")[0]
			if got := strings.Join([]string{found.State, found.TriageState, found.Status, found.Comment}, "|"); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		signed := `"suppressions":[{"kind":"external","status":"accepted","justification":"fine","properties":{"alias":"kim"}}],`
		state("none", ``, "unresolved|untriaged|open|")
		state("rejected", `"suppressions":[{"kind":"external","status":"rejected"}],`, "unresolved|untriaged|open|")
		for _, unreadable := range []string{`false`, `7`, `"yes"`, `""`, `[null]`, `[7]`, `{}`, `[{}]`} {
			state("unreadable "+unreadable, `"suppressions":`+unreadable+`,`, "unresolved|untriaged|open|")
		}
		state("accepted", signed, "muted|ignored|ignored|fine – suppressed in the tool (external) by kim")
		state("ended", ``, "unresolved|untriaged|open|")
		state("in the code", `"suppressions":[{"kind":"inSource"}],`, "muted|untriaged|ignored|")
		state("accepted again", signed, "muted|ignored|ignored|fine – suppressed in the tool (external) by kim")
		id := listed(t, s, "acme/web", "sast")[0].ID
		s.Body(t, s.Token, "POST", "/api/v1/deployments/"+s.Slug+"/triage",
			fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":"reopened","new_note":"not fine"}`, id), 200)
		state("reopened by a person", signed, "muted|reopened|open|not fine")
		state("and ended", ``, "unresolved|reopened|open|not fine")
		state("and accepted once more", signed, "muted|reopened|open|not fine")
		change := s.Store.Reader.TriageChange.Query().OnlyIDX(s.System(t))
		s.Body(t, s.Token, "POST", fmt.Sprintf("/api/agent/deployments/%d/findings/v2/undo/%d", s.DeploymentID, change), `{}`, 200)
		state("the tool's decision stands after an undo", signed, "muted|ignored|ignored|fine – suppressed in the tool (external) by kim")
		state("and ends with the suppression", ``, "unresolved|untriaged|open|")
	})
}
