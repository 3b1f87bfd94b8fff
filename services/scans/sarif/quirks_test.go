package sarif_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/sarif"
)

// Real tools deviate from the specification: one test for each quirk that was seen.

func TestQuirkNoFingerprintAtAll(t *testing.T) {
	for _, r := range readFile(t, "gosec-pocketbase-v0.22.8.sarif").results {
		if r.MatchBasedID != "" || r.ToolFingerprint != "" {
			t.Fatalf("result %d has a fingerprint %q %q out of nothing", r.Index, r.MatchBasedID, r.ToolFingerprint)
		}
	}
}

const gitleaks = `"tool":{"driver":{"name":"gitleaks","semanticVersion":"v8.0.0","rules":[
	{"id":"aws-access-token","name":"AWS","shortDescription":{"text":"AWS credentials"}}]}},"results":[%s]`

const gitleaksResult = `{"message":{"text":"aws-access-token has detected secret for file app/AKIAIOSFODNN7EXAMPLE.env at commit %[1]s."},
	"ruleId":"aws-access-token","locations":[{"physicalLocation":{"artifactLocation":{"uri":"%[2]s"},
	"region":{"startLine":3,"startColumn":9,"endLine":3,"endColumn":28,"snippet":{"text":"AKIAIOSFODNN7EXAMPLE"}}}}],
	"partialFingerprints":{"commitSha":"%[1]s","email":"kim@acme.test","author":"Kim","date":"2026-01-01T00:00:00Z","commitMessage":"add config"}}`

const commit = "3f2a9c1d5e6f708192a3b4c5d6e7f8091a2b3c4d"

func TestQuirkPartialFingerprintsThatAreNone(t *testing.T) {
	git := only(t, read(t, run(fmt.Sprintf(gitleaks, fmt.Sprintf(gitleaksResult, commit, "app/.env")))))
	if git.ToolFingerprint != "" || git.MatchBasedID != "" {
		t.Errorf("fingerprint is %q, want none", git.ToolFingerprint)
	}
	if all := fmt.Sprintf("%+v", *git); strings.Contains(all, "Kim") || strings.Contains(all, "kim@") || strings.Contains(all, "add config") {
		t.Errorf("personal data is kept: %s", all)
	}
	// In directory mode all of them are empty.
	dir := only(t, read(t, run(fmt.Sprintf(gitleaks, fmt.Sprintf(gitleaksResult, "", "app/.env")))))
	if dir.ToolFingerprint != "" || dir.HistoricalCommit != "" {
		t.Errorf("fingerprint %q and commit %q, want none", dir.ToolFingerprint, dir.HistoricalCommit)
	}
}

func TestQuirkFingerprintsThatAreNotUnique(t *testing.T) {
	one := `{"ruleId":"FF1014","message":{"text":"buffer/gets"},"fingerprints":{"contextHash/v1":"5f2e"},
		"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.c","uriBaseId":"SRCROOT"},"region":{"startLine":7}}}]}`
	o := read(t, driver("Flawfinder", strings.Repeat(one+",", 8)+one))
	a := identity.NewAssigner()
	seen := map[string]bool{}
	for _, r := range o.results {
		if r.ToolFingerprint != "contextHash/v1:5f2e" {
			t.Fatalf("fingerprint is %q", r.ToolFingerprint)
		}
		seen[a.Assign("flawfinder", identity.Text{Rule: r.RuleID, Path: r.Path, ToolFingerprint: r.ToolFingerprint}).Fingerprint] = true
	}
	if len(seen) != 9 {
		t.Errorf("9 results of one fingerprint have %d identities", len(seen))
	}
}

func TestQuirkMatchBasedID(t *testing.T) {
	r := only(t, read(t, driver("Semgrep OSS", `{"ruleId":"a.b","message":{"text":"m"},"fingerprints":{"matchBasedId/v1":"ab12_0"}}`)))
	if r.MatchBasedID != "ab12_0" || r.ToolFingerprint != "" {
		t.Errorf("match-based id %q and fingerprint %q, want ab12_0 alone", r.MatchBasedID, r.ToolFingerprint)
	}
	// Without a login every result has the same text there.
	r = only(t, read(t, driver("Semgrep OSS", `{"ruleId":"a.b","message":{"text":"m"},"fingerprints":{"matchBasedId/v1":"requires login"}}`)))
	if r.MatchBasedID != "" {
		t.Errorf("match-based id is %q, want none", r.MatchBasedID)
	}
}

func TestQuirkLevelOnlyOnTheRule(t *testing.T) {
	counts := map[string]int{}
	for _, r := range readFile(t, "staticcheck-grpc-gateway-v1.16.0.sarif").results {
		if r.Severity != r.Rule.Severity {
			t.Fatalf("result %d is %s, its rule %s", r.Index, r.Severity, r.Rule.Severity)
		}
		counts[r.Severity]++
	}
	if counts[vocabulary.SeverityHigh] == 0 || counts[vocabulary.SeverityMedium] == 0 {
		t.Errorf("severities are %v, want high and medium ones", counts)
	}
}

func TestQuirkNoLevelAnywhere(t *testing.T) {
	r := only(t, read(t, run(fmt.Sprintf(gitleaks, fmt.Sprintf(gitleaksResult, commit, "app/.env")))))
	if r.Severity != vocabulary.SeverityMedium {
		t.Errorf("severity is %s, want medium", r.Severity)
	}
}

func TestQuirkRuleIndexIsWrong(t *testing.T) {
	weak := 0
	for _, r := range readFile(t, "gosec-pocketbase-v0.22.8.sarif").results {
		if r.Rule.ID != r.RuleID {
			t.Fatalf("result %d of %s has rule %s", r.Index, r.RuleID, r.Rule.ID)
		}
		if r.RuleID == "G401" {
			weak++
			if !slices.Contains(r.Rule.CWENames, "CWE-328: Use of Weak Hash") {
				t.Fatalf("G401 is %v", r.Rule.CWENames)
			}
		}
	}
	if weak == 0 {
		t.Error("no result of G401")
	}
}

func TestQuirkRuleInNoRules(t *testing.T) {
	r := only(t, read(t, driver("revive", `{"ruleId":"exported","level":"warning","message":{"text":"exported func F should have comment"}}`)))
	if r.Rule == nil || !r.Rule.Stub || r.Rule.ID != "exported" || r.Rule.Name != "exported" || r.Rule.Category != "security" {
		t.Errorf("rule is %+v, want a stub", r.Rule)
	}
	if r.Rule.CWENames == nil || r.Rule.Tags == nil {
		t.Error("a stub's lists are nil")
	}
}

func TestQuirkRulesWithoutDescription(t *testing.T) {
	o := read(t, run(`"tool":{"driver":{"name":"t","rules":[{"id":"bare"},{"id":"short","shortDescription":{"text":"Short\n text"}},
		{"id":"r.x","shortDescription":{"text":"Semgrep Finding: r.x"},"fullDescription":{"text":"Query built from input"}}]}},"results":[]`))
	rules := o.report.Runs[0].Rules()
	for i, want := range []string{"", "Short text", "Query built from input"} {
		if rules[i].Message != want {
			t.Errorf("message of %s is %q, want %q", rules[i].ID, rules[i].Message, want)
		}
	}
	if rules[0].Name != "bare" {
		t.Errorf("name is %q, want the id", rules[0].Name)
	}
}

func TestQuirkCWEInRelationships(t *testing.T) {
	r := readFile(t, "gosec-pocketbase-v0.22.8.sarif").results[0]
	if !slices.Equal(r.Rule.CWENames, []string{"CWE-190: Integer Overflow or Wraparound"}) {
		t.Errorf("CWEs are %q", r.Rule.CWENames)
	}
	if r.Rule.Confidence != vocabulary.ConfidenceMedium || r.Rule.Category != "security" || !slices.Equal(r.Rule.Tags, []string{"security", "HIGH"}) {
		t.Errorf("rule is %+v", r.Rule)
	}
}

func TestQuirkCWEOfAnExternalTaxonomy(t *testing.T) {
	o := read(t, run(`"tool":{"driver":{"name":"Flawfinder","rules":[{"id":"FF1","relationships":[{"target":{"id":"CWE-362",
		"toolComponent":{"name":"CWE","guid":"FFC64C90"}},"kinds":["relevant"]}]}]}},
		"externalPropertyFileReferences":{"taxonomies":[{"location":{"uri":"https://cwe.acme.test/cwe.sarif"},"guid":"FFC64C90"}]},
		"results":[{"ruleId":"FF1","message":{"text":"m"}}]`)) // fetching that address would fail
	r := only(t, o)
	if !slices.Equal(r.Rule.CWENames, []string{"CWE-362"}) || !slices.Equal(r.Rule.VulnerabilityClasses, []string{"Race Condition"}) {
		t.Errorf("CWEs are %q, classes %q", r.Rule.CWENames, r.Rule.VulnerabilityClasses)
	}
	if !o.report.Runs[0].Succeeded {
		t.Error("external taxonomies make the run incomplete")
	}
}

func TestQuirkCWEAndOWASPInTags(t *testing.T) {
	o := read(t, run(`"tool":{"driver":{"name":"Semgrep OSS","rules":[{"id":"a","properties":{"precision":"very-high","tags":[
		"CWE-95: Improper Neutralization of Directives","OWASP-A03:2021 - Injection","A1:2017 - Injection","HIGH CONFIDENCE","security"]}},
		{"id":"b","properties":{"tags":["external/cwe/cwe-079","LOW CONFIDENCE"]}},{"id":"c","properties":{"cwe":"89","owasp":["A03:2021"]}}]}},"results":[]`))
	rules := o.report.Runs[0].Rules()
	for i, want := range []struct {
		cwe, owasp, class []string
		confidence        string
	}{
		{[]string{"CWE-95: Improper Neutralization of Directives"}, []string{"A03:2021 - Injection", "A1:2017 - Injection"}, []string{"Code Injection"}, "high"},
		{[]string{"CWE-79"}, []string{}, []string{"Cross-Site-Scripting (XSS)"}, "low"},
		{[]string{"CWE-89"}, []string{"A03:2021"}, []string{"SQL Injection"}, ""},
	} {
		r := rules[i]
		if !slices.Equal(r.CWENames, want.cwe) || !slices.Equal(r.OWASPNames, want.owasp) || !slices.Equal(r.VulnerabilityClasses, want.class) || r.Confidence != want.confidence {
			t.Errorf("rule %s is %+v, want %+v", r.ID, r, want)
		}
	}
}

func TestQuirkEmptySuppressions(t *testing.T) {
	for _, r := range readFile(t, "staticcheck-grpc-gateway-v1.16.0.sarif").results {
		if r.Suppressed {
			t.Fatalf("result %d is suppressed by an empty list", r.Index)
		}
	}
}

func TestQuirkSuppressionWithoutStatus(t *testing.T) {
	for list, want := range map[string]string{
		`[{"kind":"inSource","justification":"checked"}]`:                                                        "true checked",
		`[{"kind":"inSource"}]`:                                                                                  "true ",
		`[{"kind":"external","status":"rejected"},{"kind":"x","status":"underReview"}]`:                          "false ",
		`[{"kind":"external","status":"rejected"},{"kind":"external","status":"accepted","justification":"ok"}]`: "true ok",
		`null`: "false ",
	} {
		r := only(t, read(t, driver("gosec", `{"ruleId":"G1","message":{"text":"m"},"suppressions":`+list+`}`)))
		if got := fmt.Sprint(r.Suppressed, " ", r.SuppressionReason); got != want {
			t.Errorf("%s is %q, want %q", list, got, want)
		}
	}
}

func TestQuirkAbsoluteFileURIs(t *testing.T) {
	o := readFile(t, "eslint-security-express-jquery.sarif")
	if r := o.results[0]; r.Path != "jsproj/src/express/lib/application.js" {
		t.Errorf("path is %q, want it without the scheme and the checkout of GitLab CI", r.Path)
	}
	if warnings := strings.Join(o.report.Runs[0].Warnings, "; "); !strings.Contains(warnings, "/builds/ci/npm is taken for its directory") {
		t.Errorf("the guess is not told: %s", warnings)
	}
}

func TestQuirkAbsolutePlainPaths(t *testing.T) {
	doc := run(fmt.Sprintf(gitleaks, fmt.Sprintf(gitleaksResult, "", "/home/ci/go/app/.env")))
	if r := only(t, read(t, doc)); r.Path != "/home/ci/go/app/.env" {
		t.Errorf("path is %q", r.Path)
	}
}

func TestQuirkBaseIDWithoutDefinition(t *testing.T) {
	for _, id := range []string{"%SRCROOT%", "SRCROOT"} {
		r := only(t, read(t, driver("t", `{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":
			{"uri":"./a/b%20c.go","uriBaseId":"`+id+`"}}}]}`)))
		if r.Path != "a/b c.go" {
			t.Errorf("%s: path is %q, want a/b c.go", id, r.Path)
		}
	}
}

func TestQuirkIncompleteRegions(t *testing.T) {
	for region, want := range map[string][4]int{
		`{"startLine":5,"startColumn":6}`:                                      {5, 6, 5, 6}, // staticcheck, revive
		`{"startLine":5,"startColumn":6,"endColumn":9}`:                        {5, 6, 5, 9}, // flawfinder
		`{"startLine":5,"endLine":8}`:                                          {5, 1, 8, 1}, // tfsec
		`{"startLine":5,"startColumn":3,"endLine":5,"endColumn":3}`:            {5, 3, 5, 3}, // gosec: zero width
		`{"startLine":5,"startColumn":3,"endLine":4,"endColumn":2}`:            {5, 3, 5, 3},
		`{"startLine":0,"startColumn":0}`:                                      {1, 1, 1, 1},
		`{"startLine":-1}`:                                                     {1, 1, 1, 1},
		`{"charOffset":100,"charLength":5}`:                                    {1, 1, 1, 1},
		`{"startLine":12.0,"startColumn":null,"endLine":13,"endColumn":2.0e0}`: {12, 1, 13, 2},
		`null`: {1, 1, 1, 1},
	} {
		r := only(t, read(t, driver("t", `{"ruleId":"r","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a"},"region":`+region+`}}]}`)))
		if got := [4]int{r.Line, r.Column, r.EndLine, r.EndColumn}; got != want {
			t.Errorf("%s is %v, want %v", region, got, want)
		}
	}
}

func TestQuirkResultsThatDifferInMessageOnly(t *testing.T) {
	o := readFile(t, "staticcheck-grpc-gateway-v1.16.0.sarif")
	places := map[string]map[string]bool{}
	for _, r := range o.results {
		place := fmt.Sprint(r.RuleID, r.Path, r.Line, r.Column, r.EndLine, r.EndColumn)
		if places[place] == nil {
			places[place] = map[string]bool{}
		}
		places[place][r.Message] = true
	}
	shared := 0
	for _, messages := range places {
		if len(messages) > 1 {
			shared++
		}
	}
	if shared != 15 {
		t.Errorf("%d places hold several messages, want 15", shared)
	}
}

func TestQuirkNullsForArrays(t *testing.T) {
	o := read(t, `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","rules":null,"taxa":null},"extensions":null},"taxonomies":null,
		"artifacts":null,"invocations":null,"originalUriBaseIds":null,"results":[{"ruleId":"G1","message":{"text":"m","arguments":null},
		"locations":null,"suppressions":null,"relatedLocations":null,"fingerprints":null,"properties":null,"rule":null}]},
		{"tool":{"driver":{"name":"gosec","rules":null}},"results":[],"invocations":null}]}`)
	if r := only(t, o); r.Path != "" || r.Line != 1 || r.Suppressed {
		t.Errorf("result is %+v", r)
	}
	if empty := o.report.Runs[1]; !empty.Succeeded || empty.Rejected != "" || empty.Results != 0 {
		t.Errorf("an empty run with nulls is %+v, want a complete one without results", empty)
	}
	for _, run := range o.report.Runs {
		if len(run.Warnings) != 0 {
			t.Errorf("warnings: %q", run.Warnings)
		}
	}
}

func TestQuirkNamesAndVersionsOfTools(t *testing.T) {
	for driver, want := range map[string]sarif.Tool{
		`"name":"gosec","version":"dev","semanticVersion":"dev"`: {Name: "gosec", Slug: "gosec", Version: "dev"},
		`"semanticVersion":"v8.0.0","name":"gitleaks"`:           {Name: "gitleaks", Slug: "gitleaks", Version: "v8.0.0"},
		`"name":"defsec"`: {Name: "defsec", Slug: "tfsec"},
		`"name":"Semgrep OSS","semanticVersion":"1.97.0"`:         {Name: "Semgrep OSS", Slug: "semgrep", Version: "1.97.0"},
		`"name":" CodeQL ","version":3,"semanticVersion":"2.1.0"`: {Name: "CodeQL", Slug: "codeql", Version: "3"},
	} {
		run := read(t, run(`"tool":{"driver":{`+driver+`}},"results":[]`)).report.Runs[0]
		if run.Tool != want || run.Rejected != "" {
			t.Errorf("%s is %+v, rejected %q", driver, run.Tool, run.Rejected)
		}
	}
}

func TestQuirkSecretInSnippetAndMessage(t *testing.T) {
	doc := run(fmt.Sprintf(gitleaks, fmt.Sprintf(gitleaksResult, commit, "app/.env")))
	o := read(t, doc)
	r := only(t, o)
	if !o.report.Runs[0].Secrets || o.report.Runs[0].Product != vocabulary.Secrets || r.Product != vocabulary.Secrets {
		t.Errorf("the run is not one of secrets: %+v", o.report.Runs[0])
	}
	if all := fmt.Sprintf("%+v", *r); strings.Contains(all, "AKIAIOSFODNN7EXAMPLE") {
		t.Errorf("the secret is kept: %s", all)
	}
	if r.Snippet != sarif.Redacted {
		t.Errorf("snippet is %q", r.Snippet)
	}
	if want := "aws-access-token has detected secret for file app/" + sarif.Redacted + ".env at commit " + commit + "."; r.Message != want {
		t.Errorf("message is %q, want %q", r.Message, want)
	}
}

func TestQuirkSecretInAHistoricalCommit(t *testing.T) {
	r := only(t, read(t, run(fmt.Sprintf(gitleaks, fmt.Sprintf(gitleaksResult, commit, "gone.env")))))
	if r.HistoricalCommit != commit || r.Path != "gone.env" {
		t.Errorf("commit %q of %q", r.HistoricalCommit, r.Path)
	}
}

func TestQuirkNotificationsAreNotResults(t *testing.T) {
	o := readFile(t, "eslint-security-express-jquery.sarif")
	first := o.report.Runs[0]
	if first.Results != 729 || !slices.ContainsFunc(first.Warnings, func(w string) bool { return strings.Contains(w, "not findings: 10, of them errors: ") }) {
		t.Errorf("%d results, warnings %q", first.Results, first.Warnings)
	}
	// One of them is an error: ESLint did not scan everything.
	if first.Succeeded {
		t.Error("the run counts as complete")
	}
}

func TestQuirkSchemaIsMissingOrOdd(t *testing.T) {
	for _, schema := range []string{
		``, `"$schema":"https://json.schemastore.org/sarif-2.1.0.json",`, `"$schema":"https://json.schemastore.org/sarif-2.1.0-rtm.5.json",`,
		`"$schema":"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",`, `"$schema":null,`, `"$schema":7,`,
	} {
		only(t, read(t, `{`+schema+driver("t", `{"ruleId":"r","message":{"text":"m"}}`)[1:]))
	}
}
