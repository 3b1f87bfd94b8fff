package formats

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestWhatWasNotLookedAt: a report that says that the tool could not look, or that lacks a part of its format, closes
// nothing.
func TestWhatWasNotLookedAt(t *testing.T) {
	for name, text := range map[string]string{
		"pip: no vulns":             `{"dependencies":[{"name":"flask","version":"1"}],"fixes":[]}`,
		"pip: vulns null":           `{"dependencies":[{"name":"flask","vulns":null},{"name":"a","vulns":[]}],"fixes":[]}`,
		"pip: no name":              `{"dependencies":[{"vulns":[]}],"fixes":[]}`,
		"pip: dependencies null":    `{"dependencies":null,"fixes":[]}`,
		"pip: skipped without name": `{"dependencies":[{"skip_reason":"x"}],"fixes":[]}`,
		"checkov: a summary":        `{"passed":0,"failed":0,"skipped":0,"parsing_errors":3,"resource_count":0,"checkov_version":"3"}`,
		"checkov: a quiet report":   `{"check_type":"terraform","results":{"failed_checks":[]},"summary":{"parsing_errors":2,"checkov_version":"3"}}`,
		"checkov: one listed":       `{"check_type":"terraform","results":{"failed_checks":[],"parsing_errors":["/a.tf"]},"summary":{"parsing_errors":2,"checkov_version":"3"}}`,
		"checkov: failed null":      `{"check_type":"terraform","results":{"failed_checks":null},"summary":{"checkov_version":"3"}}`,
		"checkov: no failed":        `{"check_type":"terraform","results":{"passed_checks":[]},"summary":{"checkov_version":"3"}}`,
		"checkov: skipped null":     `{"check_type":"terraform","results":{"failed_checks":[],"skipped_checks":null},"summary":{"checkov_version":"3"}}`,
		"checkov: errors null":      `{"check_type":"terraform","results":{"failed_checks":[],"parsing_errors":null},"summary":{"checkov_version":"3"}}`,
		"eslint: messages null":     `[{"filePath":"/a.js","messages":null}]`,
		"eslint: results null":      `{"results":null,"metadata":{"rulesMeta":{}}}`,
		"grype: no id":              `{"matches":[{"vulnerability":{"severity":"High"},"artifact":{"name":"a"}}],"descriptor":{}}`,
		"grype: vulnerability null": `{"matches":[{"vulnerability":null,"artifact":{"name":"a"}}],"descriptor":{}}`,
		"grype: no artifact":        `{"matches":[{"vulnerability":{"id":"CVE-1"}}],"descriptor":{}}`,
		"grype: artifact null":      `{"matches":[{"vulnerability":{"id":"CVE-1"},"artifact":null}],"descriptor":{}}`,
		"grype: matches null":       `{"matches":null,"descriptor":{}}`,
		"npm: via null":             `{"auditReportVersion":2,"vulnerabilities":{"a":{"name":"a","via":null}}}`,
		"npm: no via":               `{"auditReportVersion":2,"vulnerabilities":{"a":{"name":"a"}}}`,
		"npm: via unknown":          `{"auditReportVersion":2,"vulnerabilities":{"a":{"name":"a","via":["b"]}}}`,
		"npm: vulnerabilities null": `{"auditReportVersion":2,"vulnerabilities":null}`,
		"pnpm: no package":          `{"advisories":{"1":{"id":1}},"metadata":{"vulnerabilities":{}}}`,
		"pnpm: advisories null":     `{"advisories":null,"metadata":{"vulnerabilities":{}}}`,
		"detect-secrets: list null": `{"version":"1","plugins_used":[],"results":{"a.py":null}}`,
		"detect-secrets: null":      `{"version":"1","plugins_used":[],"results":null}`,
		"cargo: list null":          `{"database":{},"vulnerabilities":{"list":null}}`,
		"cargo: no package":         `{"database":{},"vulnerabilities":{"list":[{"advisory":{"id":"RUSTSEC-1"}}]}}`,
		"bandit: results null":      `{"errors":[],"results":null,"metrics":{"_totals":{}}}`,
		"bandit: errors null":       `{"errors":null,"results":[],"metrics":{"_totals":{}}}`,
		"brakeman: no warnings":     `{"scan_info":{"brakeman_version":"7"},"errors":[]}`,
		"brakeman: warnings null":   `{"scan_info":{"brakeman_version":"7"},"warnings":null}`,
		"brakeman: errors null":     `{"scan_info":{"brakeman_version":"7"},"warnings":[],"errors":null}`,
		"semgrep: results null":     `{"results":null,"errors":[],"paths":{"scanned":["a"]},"version":"1"}`,
		"semgrep: errors null":      `{"results":[],"errors":null,"paths":{"scanned":["a"]},"version":"1"}`,
		"semgrep: scanned null":     `{"results":[],"errors":[],"paths":{"scanned":null},"version":"1"}`,
		"gitlab: null":              `{"vulnerabilities":null,"scan":{"type":"sast","scanner":{"id":"x","name":"x"},"status":"success"}}`,
		"sonar: issues null":        `{"issues":null,"rules":[{"id":"r","engineId":"e"}]}`,
		"zap: alerts null":          `{"@programName":"ZAP","site":[{"@name":"http://x","alerts":null}]}`,
		"zap: instances null":       `{"@programName":"ZAP","site":[{"@name":"http://x","alerts":[{"pluginid":"7","name":"n","instances":null}]}]}`,
		"osv: vulnerabilities null": `{"results":[{"source":{"path":"a"},"packages":[{"package":{"name":"a"},"vulnerabilities":null}]}]}`,
		"osv: results null":         `{"results":null,"experimental_config":{}}`,
		"trivy: no package":         `{"SchemaVersion":2,"ArtifactName":".","Results":[{"Target":"a","Vulnerabilities":[{"VulnerabilityID":"CVE-1"}]}]}`,
	} {
		notes := convertText(t, text).notes[0]
		if notes.Failure == "" || !strings.Contains(strings.Join(notes.Warnings, "\n"), "no finding is closed by this run") {
			t.Errorf("%s: failure %q, warnings %q", name, notes.Failure, notes.Warnings)
		}
	}
	for name, text := range map[string]string{
		"pip":     `{"dependencies":[{"name":"flask","vulns":[]}],"fixes":[]}`,
		"checkov": `{"check_type":"terraform","results":{"failed_checks":[],"parsing_errors":["/a.tf"]},"summary":{"parsing_errors":1,"checkov_version":"3"}}`,
		"nothing": `{"passed":0,"failed":0,"skipped":0,"parsing_errors":0,"resource_count":0,"checkov_version":"3"}`,
		"npm":     `{"auditReportVersion":2,"vulnerabilities":{"a":{"via":["b"]},"b":{"via":[{"source":1,"title":"t","url":"https://github.com/advisories/GHSA-1"}]}}}`,
		"grype":   `{"matches":[],"descriptor":{}}`,
		"trivy":   `{"SchemaVersion":2,"ArtifactName":".","Results":[{"Target":"a","Vulnerabilities":null}]}`,
	} {
		if notes := convertText(t, text).notes[0]; notes.Failure != "" {
			t.Errorf("%s: %s", name, notes.Failure)
		}
	}
}

// TestSkippedPackages: only findings about a package that was not audited stay open.
func TestSkippedPackages(t *testing.T) {
	notes := convertText(t, `{"dependencies":[{"name":"flask","skip_reason":"x"},{"name":"a","vulns":[]}],"fixes":[]}`).notes[0]
	if !slices.Equal(notes.FailedPackages, []string{"flask"}) || notes.Failure != "" {
		t.Errorf("%+v", notes)
	}
}

// TestTokensInDependencies: a bill of materials may have a token in any text, and so may a warning.
func TestTokensInDependencies(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("Ab3dE6gH", 5)
	var out, facts bytes.Buffer
	src := strings.NewReader(`{"spdxVersion":"SPDX-2.3","SPDXID":"SPDXRef-DOCUMENT","name":"` + token + `","packages":[{"SPDXID":"a","name":"a","versionInfo":"` + token +
		`","licenseConcluded":"` + token + `","externalRefs":[{"referenceType":"purl","referenceLocator":"pkg:npm/a@` + token + `"}]}]}`)
	if _, err := Convert(t.Context(), spdx, src, wide, &out, &facts); err != nil || strings.Contains(facts.String(), token) || !strings.Contains(facts.String(), "[redacted]") {
		t.Errorf("%v %s", err, facts.String())
	}
	got := convertText(t, `{"check_type":"terraform","results":{"failed_checks":[],"parsing_errors":["/`+token+`.tf"]}}`)
	if warnings := strings.Join(got.notes[0].Warnings, "; "); strings.Contains(warnings, token) {
		t.Error(warnings)
	}
}

// TestIgnoredFiles: ESLint did not look at a file that it ignored.
func TestIgnoredFiles(t *testing.T) {
	run := convertText(t, `[{"filePath":"/b.js","messages":[{"ruleId":null,"severity":1,"message":"File ignored because of a matching ignore pattern."}]}]`).Runs[0]
	if inv := run.Invocations; len(inv) != 1 || inv[0].Notifications[0].Locations[0].Physical.Artifact.URI != "/b.js" {
		t.Errorf("%+v", inv)
	}
}

// TestRulesWithoutPlugin: ESLint says for each file that it has no definition of a rule. That is no finding, and the
// findings of the rule stay open.
func TestRulesWithoutPlugin(t *testing.T) {
	const missing = `{"ruleId":"security/x","severity":2,"message":"Definition for rule 'security/x' not found.","line":1,"column":1}`
	got := convertText(t, `[{"filePath":"/a.js","messages":[`+missing+`]},{"filePath":"/b.js","messages":[`+missing+`,{"ruleId":"eqeqeq","severity":2,"message":"m","line":2,"column":1}]}]`)
	run, notes := got.Runs[0], got.notes[0]
	if len(run.Results) != 1 || run.Results[0].RuleID != "eqeqeq" || notes.Failure != "" {
		t.Errorf("results %+v, failure %q", run.Results, notes.Failure)
	}
	if len(notes.Warnings) != 1 || !strings.HasPrefix(notes.Warnings[0], "rule security/x did not run, so that no finding of it is closed") {
		t.Errorf("warnings %q", notes.Warnings)
	}
	if inv := run.Invocations; len(inv) != 1 || len(inv[0].Notifications) != 1 || inv[0].Notifications[0].Rule == nil {
		t.Errorf("invocations %+v", inv)
	}
}
