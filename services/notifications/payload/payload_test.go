package payload_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/notifications/payload"
)

func example() payload.Finding {
	return payload.Finding{
		ID: 90017, FirstSeenScanID: 31, CheckID: "py.sqli", Path: "app/db.py", Line: 42, Column: 9, EndLine: 42, EndColumn: 31,
		Message: "Query built from <input> & \"name\" — «ü» 🔑\n\ttab\\\x7f", Severity: "high",
		CommittedAt: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC), CommitURL: "https://git.acme.test/acme/web/commit/3f2a9c1",
		Ref: "refs/heads/main", RepoName: "acme/web", CreatedAt: time.Date(2026, 5, 4, 10, 20, 30, 123456000, time.UTC),
		Metadata: payload.Metadata{
			Category: "security", Confidence: "medium", CWE: []string{"CWE-89: SQL Injection"}, OWASP: []string{"A03:2021 - Injection"},
			Subcategories: []string{"vuln"}, VulnerabilityClasses: []string{"SQL Injection"},
			PolicyID: 3, PolicyName: "Block", PolicySlug: "rule-board-block", Actions: []string{"block"},
		},
	}
}

func exampleScan() payload.Scan {
	code := int32(1)
	return payload.Scan{
		ID: 31, DeploymentID: 1, RepositoryID: 7, EnabledProducts: []string{"sast", "secrets"}, ExitCode: &code,
		Meta:      payload.Meta{On: "pull_request", Branch: "refs/heads/fix", Commit: "3f2a9c1", Repository: "acme/web", PullRequestID: "12"},
		StartedAt: time.Date(2026, 5, 4, 10, 20, 30, 123456000, time.UTC), CompletedAt: time.Date(2026, 5, 4, 10, 21, 0, 0, time.UTC),
		Stats: map[string]any{"unchanged": 3.0, "created": 1, "nested": map[string]any{"b": []any{true, nil, "x"}, "a": 2.5}}, TenantName: "acme",
	}
}

func TestGoldenBodies(t *testing.T) {
	bare := example()
	bare.Metadata, bare.Severity = payload.Metadata{}, "low"
	apitest.Golden(t, "findings", string(payload.Findings([]payload.Finding{example(), bare})))
	apitest.Golden(t, "scan", string(payload.ScanFinished(exampleScan())))
	stale := payload.Freshness{
		DeploymentID: 1, ProjectID: 7, ScanID: 31, Project: "acme/web", Ref: "refs/heads/main", Tool: "gosec", State: "silent", Before: "late",
		Since: time.Date(2026, 5, 4, 10, 20, 30, 123456000, time.UTC), SentAt: time.Date(2026, 5, 4, 10, 20, 30, 123456000, time.UTC),
		Reason: "No successful scan for 92 days. Scanning is off.", TenantName: "acme",
	}
	apitest.Golden(t, "freshness", string(stale.Body()))
	if subject, text := payload.Describe(stale.Body()); subject != "Scans of acme/web (main) by gosec are silent" || !strings.HasPrefix(text, stale.Reason) {
		t.Errorf("%q %q", subject, text)
	}
	apitest.Golden(t, "sample", string(payload.Sample(time.Date(2026, 5, 4, 10, 20, 30, 123456000, time.UTC))))
}

// Parsing and re-encoding gives the same bytes.
func TestSurvivesPython(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	texts := rapid.SliceOfN(text, 0, 3)
	whole := rapid.Int64()
	when := rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(0, 4e15).Draw(t, "micros")).UTC()
	})
	finding := rapid.Custom(func(t *rapid.T) payload.Finding {
		return payload.Finding{
			ID: whole.Draw(t, "id"), FirstSeenScanID: whole.Draw(t, "scan"), CheckID: text.Draw(t, "rule"), Path: text.Draw(t, "path"),
			Line: rapid.Int32().Draw(t, "line"), Message: text.Draw(t, "message"),
			Severity:    rapid.SampledFrom([]string{"low", "medium", "high", "critical"}).Draw(t, "severity"),
			CommittedAt: when.Draw(t, "committed"), CommitURL: text.Draw(t, "url"), Ref: text.Draw(t, "ref"), RepoName: text.Draw(t, "repo"),
			CreatedAt: when.Draw(t, "created"),
			Metadata:  payload.Metadata{Category: text.Draw(t, "category"), CWE: texts.Draw(t, "cwe"), PolicySlug: text.Draw(t, "slug"), Actions: texts.Draw(t, "actions")},
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		requireSurvives(t, payload.Findings(rapid.SliceOfN(finding, 0, 4).Draw(t, "findings")))
		requireSurvives(t, payload.ScanFinished(payload.Scan{
			ID: whole.Draw(t, "id"), EnabledProducts: texts.Draw(t, "products"), StartedAt: when.Draw(t, "started"), CompletedAt: when.Draw(t, "completed"),
			Meta: payload.Meta{Branch: text.Draw(t, "branch")}, TenantName: text.Draw(t, "tenant"),
			Stats: map[string]any{text.Draw(t, "key"): rapid.Float64().Draw(t, "float"), text.Draw(t, "other"): text.Draw(t, "value")},
		}))
	})
}

func requireSurvives(t *rapid.T, body []byte) {
	var again strings.Builder
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := dumps(decoder, &again); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Fatalf("more than one value in %s", body)
	}
	if again.String() != string(body) {
		t.Fatalf("Python writes it differently:\n got %s\nwant %s", body, again.String())
	}
}

// dumps is Python's json.dumps(json.loads(text), separators=(',', ':')), for texts with integer numbers.
func dumps(in *json.Decoder, out *strings.Builder) error {
	token, err := in.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		return dumpMembers(in, out, v)
	case string:
		dumpString(out, v)
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return fmt.Errorf("%s is not an integer", v)
		}
		out.WriteString(v.String())
	case bool:
		fmt.Fprint(out, v)
	case nil:
		out.WriteString("null")
	}
	return nil
}

func dumpMembers(in *json.Decoder, out *strings.Builder, open json.Delim) error {
	out.WriteString(open.String())
	for n := 0; in.More(); n++ {
		switch {
		case open == '{' && n > 0, open == '[' && n > 0:
			out.WriteByte(',')
		}
		if open == '{' {
			if err := dumps(in, out); err != nil { // the key
				return err
			}
			out.WriteByte(':')
		}
		if err := dumps(in, out); err != nil {
			return err
		}
	}
	end, err := in.Token()
	fmt.Fprint(out, end)
	return err
}

// dumpString is json.encoder.py_encode_basestring_ascii.
func dumpString(out *strings.Builder, s string) {
	short := map[rune]string{'\\': `\\`, '"': `\"`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case short[r] != "":
			out.WriteString(short[r])
		case r >= ' ' && r <= '~':
			out.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(out, `\u%04x`, unit)
			}
		}
	}
	out.WriteByte('"')
}

func TestDescribe(t *testing.T) {
	f := example()
	f.Message = "Query built\nfrom input " + strings.Repeat("ü", 300)
	many := make([]payload.Finding, 25)
	for i := range many {
		many[i] = f
	}
	subject, text := payload.Describe(payload.Findings(many))
	if subject != "25 new findings in acme/web (main)" {
		t.Errorf("subject %q", subject)
	}
	if !strings.HasPrefix(text, "error: py.sqli at app/db.py:42\n    Query built from input üü") || !strings.HasSuffix(text, "…\nand 5 more\n") {
		t.Errorf("text %q", text)
	}
	if subject, _ := payload.Describe(payload.Findings(many[:1])); subject != "1 new finding in acme/web (main)" {
		t.Errorf("subject %q", subject)
	}
	scan := payload.ScanFinished(exampleScan())
	if subject, text := payload.Describe(scan); subject == "" || text != string(scan) {
		t.Errorf("%q, %q", subject, text)
	}
}

func TestDigest(t *testing.T) {
	d := payload.Digest{
		DeploymentID: 1, ProjectID: 7, ScanID: 31, Project: "acme/web", Ref: "refs/heads/main",
		Counts: []payload.SeverityCount{{Severity: "critical", Count: 1}, {Severity: "low", Count: 2}},
		Named: []payload.DigestFinding{
			{ID: 90019, Severity: "critical", Rule: "py.sqli", Path: "app/db.py", Line: 42, Message: "Query built\nfrom <input>"},
			{ID: 90017, Severity: "low", Rule: "py.log", Path: "logical", Message: strings.Repeat("ü", 300)},
		},
		Link: "https://palisade.acme.test/console/acme/triage?project=acme%2Fweb", SentAt: time.Date(2026, 5, 4, 10, 20, 30, 123456000, time.UTC), TenantName: "acme",
	}
	apitest.Golden(t, "digest", string(d.Bodies()[0]))
	subject, text := payload.Describe(d.Bodies()[0])
	if subject != "3 new findings in acme/web (main): 1 critical, 2 low" || !strings.HasPrefix(text, "3 in all: 1 critical, 2 low\nList: "+d.Link+"\n\ncritical: py.sqli at app/db.py:42, finding 90019\n    Query built from <input>\nlow: py.log at logical, finding 90017\n    üü") ||
		!strings.HasSuffix(text, "…\nand 1 more\n") {
		t.Errorf("%q %q", subject, text)
	}
	for critical, want := range map[int64]int{0: 50, 50: 50, 51: 51, 150: 150, 3000: 150} {
		if got := payload.ToName([]payload.SeverityCount{{Severity: "critical", Count: critical}, {Severity: "high", Count: 9000}}); got != want {
			t.Errorf("of %d critical findings %d are named", critical, got)
		}
	}
}

func TestWorkflowMessage(t *testing.T) {
	m := payload.WorkflowMessage{
		DeploymentID: 1, Workflow: "code-audit", RunID: 17, ProjectID: 7, Title: "3 issues in acme/web", Text: "high: <SQL> — app/db.py:42\n",
		SentAt: time.Date(2026, 5, 4, 10, 20, 30, 123456000, time.UTC),
	}
	apitest.Golden(t, "workflow", string(payload.Workflow(m)))
	if subject, text := payload.Describe(payload.Workflow(m)); subject != m.Title || text != m.Text {
		t.Errorf("got %q, %q", subject, text)
	}
	m.ProjectID = 0
	if body := payload.Workflow(m); !bytes.Contains(body, []byte(`"project_id":null,`)) {
		t.Errorf("got %s", body)
	}
}

// Messages without a link of their own lead to their scan, or to each of their findings.
func TestPlace(t *testing.T) {
	const console = "https://palisade.acme.test/console/acme"
	place := func(body []byte) (link, text string) {
		_, text = payload.Describe(body)
		return payload.Place(body, text, console)
	}
	if link, text := place(payload.Held(payload.HeldCloses{ID: 1, ScanID: 31, Count: 12})); link != console+"/scans/31" || !strings.HasSuffix(text, "\n"+link+"\n") {
		t.Errorf("held closes lead to %q: %s", link, text)
	}
	told := payload.Automation{Name: "Tell", Matched: 3, Findings: []payload.AutomationFinding{{ID: 7, Severity: "high", Rule: "r", Path: "a, finding 9"}, {ID: 8, Severity: "low"}}}
	if link, text := place(told.Body()); link != "" || strings.Count(text, console) != 2 || !strings.Contains(text, ", finding 7\n    "+console+"/findings/7\n") {
		t.Errorf("an automation leads to %q: %s", link, text)
	}
	if link, text := place(payload.Workflow(payload.WorkflowMessage{Title: "x", Text: "high, finding 7\n"})); link != "" || text != "high, finding 7\n" {
		t.Errorf("a workflow leads to %q: %s", link, text)
	}
}
