package formats

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/palisade/palisade/services/internal/testrun"
)

// converted is what the tests read of a converted report.
type converted struct {
	Runs []struct {
		Tool        struct{ Driver sarifDriver }
		Results     []sarifResult
		Artifacts   []sarifScanned
		Invocations []sarifInvocation
	}
	notes []*Notes
}

// convertText detects the format of a text and converts it.
func convertText(t *testing.T, text string) (c converted) {
	t.Helper()
	src := strings.NewReader(text)
	f, err := Detect(context.Background(), src, wide, noMappings)
	if err != nil {
		t.Fatalf("%.80q: %v", text, err)
	}
	var out bytes.Buffer
	c.notes, err = Convert(context.Background(), f, src, wide, &out, io.Discard)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	if err := json.Unmarshal(out.Bytes(), &c, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("%s: %v\n%s", f.Name, err, out.Bytes())
	}
	return c
}

// TestHeadsMayFollow: members of an object have no order.
func TestHeadsMayFollow(t *testing.T) {
	for name, c := range map[string]struct{ text, tool, version, path, rule string }{
		"eslint":   {`[{"messages":[{"ruleId":"r","message":"m","line":3}],"filePath":"/a.js"}]`, "ESLint", "", "/a.js", "r"},
		"brakeman": {`{"warnings":[{"warning_code":44,"message":"m","file":"a.rb"}],"scan_info":{"brakeman_version":"7"}}`, "Brakeman", "7", "a.rb", "BRAKE0044"},
		"checkov": {`[{"results":{"failed_checks":[{"check_id":"CKV_1","file_path":"/a.tf"}]},"summary":{"checkov_version":"3"},"check_type":"terraform"}]`,
			"Checkov", "3", "a.tf", "CKV_1"},
		"sonar":  {`{"issues":[{"ruleId":"r","primaryLocation":{"message":"m","filePath":"a.c"}}],"rules":[{"id":"r","engineId":"e"}]}`, "e", "", "a.c", "r"},
		"dojo":   {`{"findings":[{"title":"t","severity":"High","description":"d","file_path":"a.c"}],"name":"n","version":"2"}`, "n", "2", "a.c", "t"},
		"bandit": {`{"results":[{"test_id":"B1","issue_text":"m","filename":"a.py"}],"metrics":{"a.py":{},"_totals":{}}}`, "Bandit", "", "a.py", "B1"},
	} {
		run := convertText(t, c.text).Runs[0]
		if len(run.Results) != 1 {
			t.Errorf("%s: %d results", name, len(run.Results))
			continue
		}
		r := run.Results[0]
		if d := run.Tool.Driver; d.Name != c.tool || d.Version != c.version || r.RuleID != c.rule || r.Locations[0].Physical.Artifact.URI != c.path {
			t.Errorf("%s: %+v of %+v", name, r, d)
		}
	}
	alert := `"name":"n","pluginid":"7","riskcode":"2","cweid":"79","reference":"<p>ref</p>"`
	for name, text := range map[string]string{
		"json": `{"site":[{"alerts":[{"instances":[{"uri":"http://x/?a=1","method":"GET"}],` + alert + `}],"@name":"http://x"}],"@version":"2"}`,
		"one":  `{"site":{"alerts":{` + alert + `,"instances":{"uri":"http://x/","method":"GET"}},"@name":"http://x"},"@version":"2"}`,
		"xml": `<OWASPZAPReport version="2"><site name="http://x"><alerts><alertitem><instances><instance><uri>http://x/#f</uri><method>GET</method></instance>` +
			`</instances><pluginid>7</pluginid><name>n</name><riskcode>2</riskcode><cweid>79</cweid></alertitem></alerts></site></OWASPZAPReport>`,
		"old xml": `<OWASPZAPReport version="2"><site name="http://x"><alerts><alertitem><method>GET</method><uri>http://x/</uri><param/>` +
			`<pluginid>7</pluginid><name>n</name><riskcode>2</riskcode><cweid>79</cweid></alertitem></alerts></site></OWASPZAPReport>`,
	} {
		run := convertText(t, text).Runs[0]
		if len(run.Results) != 1 || run.Tool.Driver.Version != "2" {
			t.Fatalf("zap %s: %+v", name, run)
		}
		r := run.Results[0]
		if r.Locations[0].Logical[0].Name != "GET http://x/" || r.Properties.Severity != "Medium" || r.Locations[0].Physical != nil ||
			run.Tool.Driver.Rules[0].Properties.CWE[0] != "CWE-79" || r.Fingerprints["zap/v1"] != "7 GET http://x/ " {
			t.Errorf("zap %s: %+v", name, r)
		}
	}
}

// TestFailedFilesAreNamed: they keep their findings. An error without a file keeps all.
func TestFailedFilesAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ text, file, failure string }{
		"eslint":   {`[{"filePath":"/b.js","messages":[{"ruleId":null,"fatal":true,"message":"Parsing error: x","line":1}]}]`, "/b.js", ""},
		"bandit":   {`{"results":[],"metrics":{"_totals":{}},"errors":[{"filename":"b.py","reason":"syntax error"}]}`, "b.py", ""},
		"checkov":  {`{"check_type":"terraform","results":{"failed_checks":[],"parsing_errors":["/b.tf"]}}`, "b.tf", ""},
		"brakeman": {`{"warnings":[],"scan_info":{"brakeman_version":"7"},"errors":[{"error":"e","location":"Could not parse b.rb"}]}`, "b.rb", ""},
		"brakeman itself": {`{"warnings":[],"scan_info":{"brakeman_version":"7"},"errors":[{"error":"no method","location":"/gems/x.rb:7:in y"}]}`,
			"", "the tool reports an error: no method"},
	} {
		got := convertText(t, c.text)
		if got.notes[0].Failure != c.failure {
			t.Errorf("%s: failure %q", name, got.notes[0].Failure)
		}
		if c.file == "" {
			continue
		}
		inv := got.Runs[0].Invocations
		if len(inv) != 1 || !inv[0].Successful || len(inv[0].Notifications) != 1 || inv[0].Notifications[0].Locations[0].Physical.Artifact.URI != c.file {
			t.Errorf("%s: %+v", name, inv)
		}
		if !strings.HasPrefix(strings.Join(got.notes[0].Warnings, "\n"), c.file+" was not analysed") {
			t.Errorf("%s: warnings %q", name, got.notes[0].Warnings)
		}
	}
}

// TestUnreadableItems: what cannot be used keeps findings open, and costs no other item.
func TestUnreadableItems(t *testing.T) {
	for name, text := range map[string]string{
		"eslint":   `[{"filePath":"/a.js","messages":[7,{"ruleId":"r","message":"m"}]}]`,
		"brakeman": `{"warnings":["x",{"warning_code":44,"message":"m"}]}`,
		"checkov":  `{"check_type":"x","results":{"failed_checks":[true,{"check_id":"C"}]}}`,
		"sonar":    `{"rules":[{"id":"r","engineId":"e"}],"issues":[5,{"ruleId":"r","primaryLocation":{"message":"m"}}]}`,
		"no tool":  `{"issues":[{"primaryLocation":{"message":"m"}},{"engineId":"e","primaryLocation":{"message":"m"}}]}`,
		"dojo":     `{"findings":["x",{"title":"t","severity":"High","description":"d"}]}`,
		"zap":      `{"@version":"2","site":[{"alerts":[{"instances":[]},{"pluginid":"7","instances":[{"uri":"http://x"}]}]}]}`,
		"bandit":   `{"metrics":{"_totals":{}},"results":["x",{"test_id":"B1","issue_text":"m"}]}`,
	} {
		got := convertText(t, text)
		if n := got.notes[0]; len(n.Unreadable) != 1 || n.Failure == "" || len(got.Runs[0].Results) != 1 {
			t.Errorf("%s: %+v, %d results", name, n, len(got.Runs[0].Results))
		}
	}
	got := convertText(t, `[{"filePath":"/a.js","messages":[{"ruleId":"r","message":"m","line":"7","endLine":{}}]}]`)
	if r := got.Runs[0].Results; len(r) != 1 || r[0].Locations[0].Physical.Region.StartLine != 7 || len(got.notes[0].Warnings) != 3 || got.notes[0].Failure == "" {
		t.Errorf("parts of a wrong type: %+v %+v", r, got.notes[0])
	}
}

// TestScannedFiles: a linter that ran on some files says which.
func TestScannedFiles(t *testing.T) {
	run := convertText(t, `[{"filePath":"/a.js","messages":[]},{"filePath":"/b.js","messages":[{"ruleId":"r","message":"m"}]}]`).Runs[0]
	if a := run.Artifacts; len(a) != 2 || a[0].Location.URI != "/a.js" || a[1].Roles[0] != "analysisTarget" {
		t.Errorf("artifacts %+v", a)
	}
}

// TestSuppressedResults: a decision in the report comes with its reason.
func TestSuppressedResults(t *testing.T) {
	for text, want := range map[string]string{
		`{"check_type":"x","results":{"failed_checks":[],"skipped_checks":[{"check_id":"C","check_result":{"result":"SKIPPED","suppress_comment":"test bucket"}}]}}`: "test bucket",
		`{"scan_info":{"brakeman_version":"7"},"warnings":[],"ignored_warnings":[{"warning_code":1,"message":"m","note":"admins only"}]}`:                            "admins only",
		`{"findings":[{"title":"t","severity":"Low","description":"d","risk_accepted":true,"active":false}]}`:                                                        "risk accepted",
	} {
		r := convertText(t, text).Runs[0].Results
		if len(r) != 1 || len(r[0].Suppressions) != 1 || r[0].Suppressions[0].Justification != want {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

// TestVulnerabilities: Checkov's and DefectDojo's findings about packages.
func TestVulnerabilities(t *testing.T) {
	for name, text := range map[string]string{
		"checkov": `{"check_type":"sca_package","results":{"failed_checks":[{"check_id":"CKV_CVE_2019_10744","check_name":"SCA","file_path":"/package-lock.json",
			"vulnerability_details":{"id":"CVE-2019-10744","cvss":9.1,"package_name":"lodash","package_version":"4.17.11","lowest_fixed_version":"4.17.12"}}]}}`,
		"dojo": `{"findings":[{"title":"t","severity":"High","description":"d","cve":"CVE-2019-10744","cvssv3_score":9.1,"component_name":"lodash",
			"component_version":"4.17.11","fix_version":"4.17.12"}]}`,
	} {
		r := convertText(t, text).Runs[0].Results[0]
		if p := r.Properties; r.RuleID != "CVE-2019-10744" || p.Score != map[string]string{"checkov": "9.1"}[name] || p.PackageName != "lodash" || p.PackageVersion != "4.17.11" ||
			p.FixedVersion[0] != "4.17.12" || p.Product != ProductSCA {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// repeated is a document with one unit many times, without a disk. It looks at the memory while it is read.
type repeated struct {
	head, unit, tail string
	n, at            int64
	reads            int
	highest          uint64
}

func (r *repeated) Seek(offset int64, _ int) (int64, error) { r.at = offset; return offset, nil }

func (r *repeated) Read(p []byte) (done int, err error) {
	if r.reads++; r.reads%16 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		r.highest = max(r.highest, m.HeapInuse)
	}
	head, units := int64(len(r.head)), r.n*int64(len(r.unit))
	for done < len(p) {
		part := ""
		switch at := r.at; {
		case at < head:
			part = r.head[at:]
		case at < head+units:
			part = r.unit[(at-head)%int64(len(r.unit)):]
		case at < head+units+int64(len(r.tail)):
			part = r.tail[at-head-units:]
		case done == 0:
			return 0, io.EOF
		default:
			return done, nil
		}
		n := copy(p[done:], part)
		done, r.at = done+n, r.at+int64(n)
	}
	return done, nil
}

func TestLargeReportsTakeFlatMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	if testing.Short() {
		t.Skip("reads megabytes")
	}
	size := int64(testrun.Size(8<<20, 100<<20))
	text := strings.Repeat("e", 300)
	for format, src := range map[string]*repeated{
		"zap-xml": {
			head: `<OWASPZAPReport version="2"><site name="http://x"><alerts><alertitem><pluginid>7</pluginid><instances>`,
			unit: `<instance><uri>http://x/a?b=1</uri><method>GET</method><param>q</param><evidence>` + text + "</evidence></instance>\n",
			tail: `</instances></alertitem></alerts></site></OWASPZAPReport>`,
		},
		"zap-json": {
			head: `{"site":[{"alerts":[{"instances":[`, tail: `{"uri":"http://x/"}],"pluginid":"8"}]}]}`,
			unit: `{"uri":"http://x/","method":"GET","param":"q","evidence":"` + text + `"},`,
		},
		"eslint-json": {
			head: `[{"filePath":"/a.js","messages":[`, unit: `{"ruleId":"r","severity":2,"message":"` + text + `","line":7,"column":3},`,
			tail: `{"ruleId":"r","message":"m"}]}]`,
		},
		"checkov-json": {
			head: `{"check_type":"x","results":{"failed_checks":[`, tail: `{"check_id":"C"}]}}`,
			unit: `{"check_id":"C","file_path":"/a.tf","file_line_range":[1,2],"code_block":[[1,"` + text + `"]]},`,
		},
		"bandit-json": {
			head: `{"metrics":{"_totals":{}},"results":[`, tail: `{"test_id":"B1","issue_text":"m"}]}`,
			unit: `{"test_id":"B1","issue_text":"m","filename":"a.py","line_number":1,"code":"1 ` + text + `"},`,
		},
	} {
		src.n = size / int64(len(src.unit))
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		f, _ := Named(format)
		notes, err := Convert(context.Background(), f, src, wide, io.Discard, io.Discard)
		if err != nil || len(notes) != 1 || notes[0].Failure != "" {
			t.Fatal(format, err, notes)
		}
		if grown := int64(src.highest) - int64(before.HeapInuse); src.highest == 0 || grown > 48<<20 {
			t.Errorf("%s: a report of %d MiB takes %d MiB of memory", format, size>>20, grown>>20)
		}
	}
}

// TestRealReportsAreRecognised: by content, whatever the name.
func TestRealReportsAreRecognised(t *testing.T) {
	for file, want := range map[string]string{
		"bandit.json": "bandit-json", "brakeman.json": "brakeman-json", "checkov.json": "checkov-json", "defectdojo.json": "defectdojo-generic",
		"eslint.json": "eslint-json", "eslint-metadata.json": "eslint-json", "sonarqube-old.json": "sonarqube-generic",
		"sonarqube-rules.json": "sonarqube-generic", "trivy.json": "trivy-json", "zap.json": "zap-json", "zap-xml.xml": "zap-xml",
	} {
		raw, err := os.ReadFile(filepath.Join("..", "testdata", "formats", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range All {
			o, _, err := sketch(context.Background(), bytes.NewReader(raw), wide, wide.MaxBytes)
			if err != nil {
				t.Fatal(err)
			}
			if f.Recognises(o) != (f.Name == want) {
				t.Errorf("%s is recognised as %s: %v", file, f.Name, f.Recognises(o))
			}
		}
	}
}
