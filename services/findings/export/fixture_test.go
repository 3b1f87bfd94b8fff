package export_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/rule"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// code is a report of findings in code: with a data flow, a text that looks like a formula, a suppression in the code,
// and a finding that no message describes.
const code = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"acme-scan","rules":[
	{"id":"sql","fullDescription":{"text":"SQL from input"},"help":{"text":"Use parameters."},"helpUri":"https://rules.acme.test/sql","properties":{"tags":["CWE-89","security"],"precision":"high"}},
	{"id":"=cmd|'/c calc'!A1","fullDescription":{"text":"=1+1"}}]}},
	"results":[
	{"ruleId":"sql","level":"error","message":{"text":"a, \"quoted\"\ntext"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"app/a%20b.go"},"region":{"startLine":7,"startColumn":2,"endLine":8,"endColumn":9,"snippet":{"text":"query(x)"}}}}],
		"codeFlows":[{"threadFlows":[{"locations":[{"location":{"physicalLocation":{"artifactLocation":{"uri":"app/in.go"},"region":{"startLine":1}}}},{"location":{"physicalLocation":{"artifactLocation":{"uri":"app/a%20b.go"},"region":{"startLine":7}}}}]}]}]},
	{"ruleId":"=cmd|'/c calc'!A1","level":"note","message":{"text":"@SUM(A1)"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"app/c.go"},"region":{"startLine":1,"snippet":{"text":"c()"}}}}]},
	{"ruleId":"sql","level":"warning","message":{"text":"fine"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"app/d.go"},"region":{"startLine":3,"snippet":{"text":"d()"}}}}],
		"suppressions":[{"kind":"inSource","justification":"reviewed","properties":{"author":"eve"}}]}
	]}]}`

// vulnerable is a Trivy report of packages, each as "advisory name version".
func vulnerable(packages ...string) []byte {
	var list []string
	for _, p := range packages {
		f := strings.Fields(p)
		list = append(list, fmt.Sprintf(`{"VulnerabilityID":%q,"PkgName":%q,"InstalledVersion":%q,"FixedVersion":"9.9.9","Severity":"HIGH","Title":"Bad","CweIDs":["CWE-79"]}`, f[0], f[1], f[2]))
	}
	return []byte(`{"SchemaVersion":2,"ArtifactName":".","ArtifactType":"repository","Results":[{"Target":"package-lock.json","Class":"lang-pkgs","Type":"npm",
		"Vulnerabilities":[` + strings.Join(list, ",") + `]}]}`)
}

// secrets is a report of gitleaks.
const secrets = `[{"RuleID":"aws-access-token","Description":"AWS key","StartLine":3,"EndLine":3,"StartColumn":5,"EndColumn":24,"Match":"key = AKIAIMNOJVGFDXXXE4OA","Secret":"AKIAIMNOJVGFDXXXE4OA","File":"conf/prod.env","Commit":"","Fingerprint":"conf/prod.env:aws-access-token:3"}]`

// seed uploads reports and decides about some findings. Web has all kinds of findings and decisions.
func seed(t testing.TB, s *apitest.Server) {
	t.Helper()
	commit := []string{"commit", "0123456789abcdef0123456789abcdef01234567"}
	s.Upload(t, "acme/web", "main", []byte(code), commit...)
	s.Upload(t, "acme/web", "main", vulnerable("CVE-2026-1 lodash 4.17.4", "CVE-2026-2 @acme/ui 1.0.0", "CVE-2026-3 tar 1.0.0", "CVE-2026-4 ws 2.0.0"), commit...)
	s.Upload(t, "acme/web", "main", []byte(secrets), commit...)
	s.Upload(t, "acme/web", "refs/heads/dev", []byte(code))
	s.Upload(t, "acme/api", "main", []byte(code))
	s.Upload(t, "acme/web", "main", vulnerable("CVE-2026-1 lodash 4.17.4", "CVE-2026-2 @acme/ui 1.0.0", "CVE-2026-3 tar 1.0.0"), commit...)
	for _, project := range []string{"acme/web", "acme/api"} { // one tag is of both
		s.Body(t, s.Token, http.MethodPut, "/api/v1/deployments/"+s.Slug+"/projects/"+project+"/tags", `{"tags":["team-a","`+project[5:]+`"]}`, http.StatusOK)
	}
	decide := func(product, name, state, reason, note string) {
		id := s.Store.Reader.Finding.Query().Where(finding.RuleID(s.Store.Reader.Rule.Query().Where(rule.Name(name)).OnlyIDX(s.System(t)))).Order(ent.Asc(finding.FieldID)).FirstIDX(s.System(t))
		s.Body(t, s.Token, http.MethodPost, "/api/v1/deployments/"+s.Slug+"/triage",
			fmt.Sprintf(`{"issue_type":%q,"issue_ids":[%d],"new_triage_state":%q,"new_triage_reason":%q,"new_note":%q}`, product, id, state, reason, note), http.StatusOK)
	}
	decide("sast", "sql", "ignored", "false_positive", "=HYPERLINK(1)")
	decide("sca", "CVE-2026-1", "ignored", "false_positive", "not called")
	decide("sca", "CVE-2026-2", "ignored", "acceptable_risk", "")
	decide("sca", "CVE-2026-3", "reviewing", "", "later")
}

// exported is a file, and what its task told about it.
type exported struct {
	text        string
	rows        int
	sha256, url string
}

// start starts an export, and returns the token of its task.
func start(t testing.TB, s *apitest.Server, of apitest.Tenant, token, body string) string {
	t.Helper()
	var started struct {
		Token string `json:"taskTokenJwt"`
	}
	unmarshal(t, s.Body(t, token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/issues/export", of.DeploymentID), body, http.StatusAccepted), &started)
	return started.Token
}

// task polls a task until it has ended, as public clients do: by the status at the top.
func task(t testing.TB, s *apitest.Server, credential, token string) (status, result string) {
	t.Helper()
	var told struct {
		Status string `json:"status"`
		Result struct {
			Status string `json:"status"`
			Text   string `json:"resultString"`
		} `json:"taskResult"`
	}
	apitest.Eventually(t, "the task ends", func() bool {
		unmarshal(t, s.Body(t, credential, http.MethodGet, "/api/tasks/v2/"+token, "", http.StatusOK), &told)
		if told.Status != told.Result.Status {
			t.Fatalf("the status is %s and %s", told.Status, told.Result.Status)
		}
		return told.Status != platformv1.TaskStatus_TASK_STATUS_IN_PROGRESS.String()
	})
	return told.Status, told.Result.Text
}

// export exports findings, and checks what the task tells about the file.
func export(t testing.TB, s *apitest.Server, of apitest.Tenant, token, body string) exported {
	t.Helper()
	status, result := task(t, s, token, start(t, s, of, token, body))
	if status != "TASK_STATUS_COMPLETED" {
		t.Fatalf("%s: %s", status, result)
	}
	var told struct {
		URL    string `json:"downloadUrl"`
		Rows   string `json:"rowCount"`
		Size   string `json:"size"`
		SHA256 string `json:"sha256"`
	}
	unmarshal(t, result, &told)
	path, ours := strings.CutPrefix(told.URL, s.Config.PublicURL)
	if !ours {
		t.Fatalf("the file is at %s", told.URL)
	}
	e := exported{text: s.Body(t, token, http.MethodGet, path, "", http.StatusOK), url: path, sha256: told.SHA256}
	sum := sha256.Sum256([]byte(e.text))
	if got := hex.EncodeToString(sum[:]); got != told.SHA256 || strconv.Itoa(len(e.text)) != told.Size {
		t.Errorf("the file has %d bytes with the hash %s; the task says %s, %s", len(e.text), got, told.Size, told.SHA256)
	}
	var err error
	if e.rows, err = strconv.Atoi(told.Rows); err != nil {
		t.Errorf("rowCount: %v", err)
	}
	return e
}

func unmarshal(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
}

// These change with every run: times, the document's own number, and the hashes of secrets, which have a key.
var (
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	serial = regexp.MustCompile(`urn:uuid:[0-9a-f-]{36}`)
	hashes = regexp.MustCompile(`"(evidence|matchKey|fingerprint|syntacticId|matchBasedId|palisade/v1)":"[^"]*"|\[redacted [0-9a-f]+\]`)
)

// stable is a text without what changes with every run.
func stable(text string) string {
	lines := strings.Split(serial.ReplaceAllString(times.ReplaceAllString(text, "T"), "U"), "\n")
	for i, line := range lines {
		if strings.Contains(line, "aws-access-token") {
			lines[i] = hashes.ReplaceAllString(line, "H")
		}
	}
	return strings.Join(lines, "\n")
}
