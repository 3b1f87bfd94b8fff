package scanner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// read reads a document and returns its frames.
func read(t *testing.T, body string, o Options) ([]*storev1.ScannerFrame, Summary, error) {
	t.Helper()
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	var frames []*storev1.ScannerFrame
	summary, err := ReadResults(t.Context(), iotest.OneByteReader(strings.NewReader(body)), o, func(f *storev1.ScannerFrame) error {
		frames = append(frames, f)
		return nil
	})
	return frames, summary, err
}

// findings reads a document that must be valid.
func findings(t *testing.T, body string, o Options) (all []*storev1.ScannerFinding) {
	t.Helper()
	frames, _, err := read(t, body, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range frames {
		if f := frame.GetFinding(); f != nil {
			all = append(all, f)
		}
	}
	return all
}

const everything = `{"rule_ids":["r1","r2"],"token":"ghs_canarycanarycanarycanarycanarycana","unknown":{"a":[1,{"b":null}]},
"findings":[{"check_id":"r1","path":"./app/db.py","line":3,"column":5,"end_line":3,"end_column":20,"message":"m","severity":2,"index":1,
"commit_date":"2026-11-20T21:57:51","syntactic_id":"aa","match_based_id":"bb_0","hashes":{"start_line_hash":"s","end_line_hash":"e","code_hash":"c","pattern_hash":"p"},
"metadata":{"cwe":["CWE-89: SQL Injection"],"confidence":"HIGH","dev.semgrep.actions":["block"],"semgrep.dev":{"policy":{"slug":"rule-board-block"},"src":"unchanged"}},
"is_blocking":true,"fixed_lines":["a","b"],"dataflow_trace":{"taint_source":["CliLoc",[{"path":"app/db.py"},"<code omitted>"]]},"engine_kind":["PRO_REQUIRED",{"x":1}]},
{"check_id":"r2","path":"b.py","severity":"WARNING","line":"7","metadata":null,"match_based_id":null,"validation_state":null,"sca_info":null,"engine_kind":"OSS"}],
"ignores":[{"check_id":"r1","path":"c.py","line":1}],
"dependencies":{"package-lock.json":[{"package":"left-pad","version":"1.3.0","ecosystem":"npm","transitivity":"direct","resolved_url":"https://user:pw@registry.acme.test/left-pad","allowed_hashes":{"sha512":["00"]},"children":[{"package":"a","version":"1"}]}],"empty.lock":[]},
"contributions":[{"commit_hash":"1"}],"searched_paths":["app/db.py","b.py",null,7],"renamed_paths":["old.py"],"skipped_paths":["slow.py"],"skipped_subprojects":["sub",{"info":{"root_dir":"web"},"dependency_source":["LockfileOnly",{"path":"web/yarn.lock"}]}]}`

func TestEverythingIsRead(t *testing.T) {
	t.Parallel()
	frames, summary, err := read(t, everything, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if summary.Findings != 2 || summary.Ignored != 1 || len(summary.Problems) != 0 || len(frames) != 7 {
		t.Fatalf("%+v, %d frames", summary, len(frames))
	}
	first, second, third := frames[0].GetFinding(), frames[1].GetFinding(), frames[2].GetFinding()
	if first.GetPath() != "app/db.py" || first.GetSeverity() != 2 || first.GetIndex() != 1 || first.GetMatchBasedId() != "bb_0" || first.GetPatternHash() != "p" ||
		!first.GetIsBlocking() || !slices.Equal(first.GetFixedLines(), []string{"a", "b"}) || first.GetEngineKind() != "PRO_REQUIRED" || len(first.GetDataflowTrace()) == 0 {
		t.Errorf("%v", first)
	}
	if m := ParseMetadata(first.GetMetadata()); m.Policy != "rule-board-block" || m.Confidence != "high" || m.PreviousScan || !slices.Equal(m.CWE, []string{"CWE-89: SQL Injection"}) {
		t.Errorf("%+v", m)
	}
	if second.GetLine() != 7 || second.GetColumn() != 1 || second.GetSeverity() != 1 || second.GetEngineKind() != "OSS" || second.GetSca() != nil {
		t.Errorf("%v", second)
	}
	if !third.GetIgnored() || first.GetIgnored() {
		t.Errorf("%v", third)
	}
	lock := frames[4].GetLockfile()
	if lock.GetPath() != "package-lock.json" || lock.GetDependencies()[0].GetResolvedUrl() != "https://registry.acme.test/left-pad" || lock.GetDependencies()[0].GetChildren()[0] != "a@1" {
		t.Errorf("%v", lock)
	}
	if frames[5].GetLockfile().GetPath() != "empty.lock" || frames[3].GetLockfile().GetPath() != "" {
		t.Errorf("%v", frames[5])
	}
	want := &storev1.ScannerCoverage{SearchedPaths: []string{"app/db.py", "b.py"}, RenamedPaths: []string{"old.py"}, SkippedPaths: []string{"slow.py"}, RuleIds: []string{"r1", "r2"}, SkippedSubprojects: []string{"sub", "web", "web/yarn.lock"}}
	if got := frames[6].GetCoverage(); !proto.Equal(got, want) {
		t.Errorf("%v", got)
	}
	for _, f := range frames {
		if raw, _ := proto.Marshal(f); bytes.Contains(raw, []byte("canary")) || bytes.Contains(raw, []byte("user:pw")) {
			t.Errorf("a credential is in %v", f)
		}
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-Tr0ub4dor"
	trace := `{"taint_source":["CliLoc",[{"path":"a.py"},"password = '` + secret + `'"]]}`
	for name, body := range map[string]string{
		"by metadata":    `"metadata":{"product":"secrets","note":"` + secret + `"},"message":"found ` + secret + `","fixed_lines":["x = '` + secret + `'"],"dataflow_trace":` + trace,
		"message alone":  `"metadata":{"product":"secrets"},"message":"found '` + secret + `' here"`,
		"by state":       `"validation_state":"CONFIRMED_VALID","message":"the key ` + secret + `."`,
		"by history":     `"historical_info":{"git_commit":"3f2a9c1","git_commit_timestamp":"2026-11-20T21:57:51"},"message":"` + secret + `"`,
		"by id":          `"message":"` + secret + `","match_based_id":"x"`,
		"by deployment":  `"message":"key ` + secret + ` is bad"`,
		"without digits": `"message":"key correcthorsebattery is bad"`,
	} {
		id := "acme.key"
		if name == "by id" {
			id = "generic.secrets.security.key"
		}
		o := Options{}
		if name == "by deployment" || name == "without digits" {
			o.SecretRules = map[string]string{id: "key $KEY is bad"}
		}
		f := findings(t, `{"findings":[{"check_id":"`+id+`","path":"a.py","line":1,`+body+`}]}`, o)[0]
		raw, _ := proto.Marshal(f)
		if bytes.Contains(raw, []byte(secret)) || bytes.Contains(raw, []byte("correcthorse")) || f.GetFixedLines() != nil || f.GetDataflowTrace() != nil || f.GetMessage() == "" {
			t.Errorf("%s: %v", name, f)
		}
	}
	if f := findings(t, `{"findings":[{"check_id":"acme.style","path":"a.py","message":"use sha256sum instead"}]}`, Options{})[0]; f.GetMessage() != "use sha256sum instead" {
		t.Errorf("a message without a secret was changed: %v", f)
	}
}

func TestOddFindings(t *testing.T) {
	t.Parallel()
	_, summary, err := read(t, `{"findings":[7,{"path":"a"},{"check_id":"r"},{"check_id":"r","path":"a","line":{"x":1},"message":null,"metadata":"m"},null],"ignores":null,"searched_paths":{}}`, Options{})
	if err != nil || summary.Findings != 1 || len(summary.Problems) != 4 {
		t.Errorf("%+v, %v", summary, err)
	}
	many := strings.Repeat(`{},`, 100) + `{}`
	_, summary, err = read(t, `{"findings":[`+many+`]}`, Options{})
	if err != nil || len(summary.Problems) != maxProblems+1 || !strings.HasPrefix(summary.Problems[maxProblems], "81 more") {
		t.Errorf("%v, %v", summary.Problems, err)
	}
}

func TestBrokenDocuments(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "[]", `"x"`, "nonsense", `{"findings":[{"check_id":`, `{"findings":[}`, everything[:len(everything)-1], everything + "{}", `{"a" 1}`} {
		var syntax *SyntaxError
		if _, _, err := read(t, body, Options{}); !errors.As(err, &syntax) {
			t.Errorf("%.40q: %v", body, err)
		} else if strings.Contains(err.Error(), "nonsense") || strings.Contains(err.Error(), "check") {
			t.Errorf("the error quotes the document: %v", err)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	limits := Limits{MaxBytes: 10_000, MaxDepth: 20, MaxItemBytes: 500, MaxTextBytes: 1000, MaxPathBytes: 200, MaxRules: 3, MaxRuleBytes: 300}
	var limit *LimitError
	for name, body := range map[string]string{
		"size":  `{"x":"` + strings.Repeat(`a","y":"`, 2000) + `"}`,
		"text":  `{"token":"` + strings.Repeat("a", 1500) + `"}`,
		"depth": `{"x":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`,
		"paths": `{"searched_paths":["` + strings.Repeat(`a","`, 50) + `"]}`,
		"rules": `{"findings":[{"check_id":"a","path":"a"},{"check_id":"b","path":"a"},{"check_id":"c","path":"a"},{"check_id":"a","path":"b"}],` +
			`"ignores":[{"check_id":"d","path":"a"}]}`,
		"texts of rules": `{"findings":[{"check_id":"a","path":"a","metadata":{"x":"` + strings.Repeat("x", 300) + `"}}]}`,
		"texts that come late": `{"findings":[{"check_id":"a","path":"a"},{"check_id":"b","path":"a"},` +
			`{"check_id":"a","path":"a","metadata":{"x":"` + strings.Repeat("x", 160) + `"}},{"check_id":"b","path":"a","metadata":{"x":"` + strings.Repeat("x", 160) + `"}}]}`,
	} {
		if _, _, err := read(t, body, Options{Limits: limits}); !errors.As(err, &limit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	same := strings.Repeat(`,{"check_id":"a","path":"a","metadata":{"x":"`+strings.Repeat("x", 90)+`"}}`, 10)[1:]
	if _, summary, err := read(t, `{"findings":[`+same+`,{"check_id":"b","path":"a"},{"check_id":"c","path":"a"}]}`, Options{Limits: limits}); err != nil || summary.Findings != 12 {
		t.Errorf("many findings of few rules: %+v, %v", summary, err)
	}
	deep := `{"a":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}`
	_, summary, err := read(t, `{"findings":[{"check_id":"r","path":"a","metadata":`+deep+`},{"check_id":"r","path":"a","message":"`+strings.Repeat("m", 600)+`"},{"check_id":"r","path":"a"}]}`, Options{Limits: limits})
	if err != nil || summary.Findings != 1 || len(summary.Problems) != 2 {
		t.Errorf("%+v, %v", summary, err)
	}
}

func TestFramesAreReadBack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for part := range 2 { // two consecutive streams are read as one
		w, err := NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			err := w.Write(&storev1.ScannerFrame{Kind: &storev1.ScannerFrame_Finding{Finding: &storev1.ScannerFinding{CheckId: "r", Line: int32(part*1000 + i)}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	next := int32(0)
	err := Read(iotest.HalfReader(bytes.NewReader(out.Bytes())), func(f *storev1.ScannerFrame) error {
		if f.GetFinding().GetLine() != next {
			return fmt.Errorf("got %v, want %d", f, next)
		}
		next++
		return nil
	})
	if err != nil || next != 2000 {
		t.Errorf("%d frames, %v", next, err)
	}
	if err := Read(bytes.NewReader(out.Bytes()[:out.Len()-20]), func(*storev1.ScannerFrame) error { return nil }); err == nil {
		t.Error("a cut stream is read as if it were whole")
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	frames := 0
	c, err := ReadCompletion(t.Context(), strings.NewReader(`{"stats":{"findings":3,"errors":["x"],"token":"t","total_time":1.5,"parse_rate":{"py":{"num_targets":1}}},"exit_code":"1",
		"dependencies":{"a.lock":[{"package":"p"}]},"task_id":null,"final_attempt":true}`), DefaultLimits(), func(*storev1.ScannerFrame) error { frames++; return nil })
	if err != nil || c.ExitCode != 1 || !c.Final || frames != 3 || c.Lockfiles != 2 || len(c.Stats) != 3 || c.Stats["total_time"] != 1.5 {
		t.Errorf("%+v, %v", c, err)
	}
	if c.Incomplete.GetFailure() != failedNameless || len(c.Incomplete.GetPartlyParsed()) != 1 {
		t.Errorf("%v", c.Incomplete)
	}
	if _, err := ReadCompletion(t.Context(), strings.NewReader("{"), DefaultLimits(), nil); err == nil {
		t.Error("a cut body is taken")
	}
}

func TestMetadataForms(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"semgrep.dev":{"policy":{"slug":"rule-board-audit"},"src":"previous-scan"},"cwe":"CWE-1"}`,
		`{"semgrep.dev.policy":{"slug":"rule-board-audit"},"semgrep.dev.src":"previous-scan","cwe":["CWE-1"]}`,
		`{"semgrep.dev.policy.slug":"rule-board-audit","semgrep.dev":{"src":"previous-scan"},"cwe":["CWE-1","CWE-1",5]}`,
		`{"semgrep.policy":{"slug":"rule-board-audit"},"semgrep.dev":{"src":"previous-scan"},"cwe":["CWE-1"]}`,
	} {
		if m := ParseMetadata([]byte(raw)); m.Policy != "rule-board-audit" || !m.PreviousScan || !slices.Equal(m.CWE, []string{"CWE-1"}) {
			t.Errorf("%s: %+v", raw, m)
		}
	}
	m := ParseMetadata([]byte(`{"sca-fix-versions":[{"minimist":"0.2.4"},{"minimist":"1.2.6"},"x",{"left-pad":2}],"semgrep.dev.policy.slug":"other"}`))
	if want := []Fix{{"left-pad", "2"}, {"minimist", "0.2.4"}, {"minimist", "1.2.6"}}; !slices.Equal(m.Fixes, want) || m.Policy != "" {
		t.Errorf("%+v", m)
	}
	for word, want := range map[string]string{
		"starter": "community", "import": "custom", "publish": "custom", "community": "community", "pro_rules": "pro_rules", "custom": "custom", "other": "",
	} {
		if m := ParseMetadata([]byte(`{"semgrep.dev":{"rule":{"origin":"` + word + `"}}}`)); m.Origin != want {
			t.Errorf("origin %s: %q, want %q", word, m.Origin, want)
		}
	}
	for _, raw := range []string{"", "null", "[]", "{", `{"cwe":{}}`} {
		if m := ParseMetadata([]byte(raw)); m.CWE != nil {
			t.Errorf("%q: %+v", raw, m)
		}
	}
}

func FuzzReadResults(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte(`{"findings":[{"check_id":"r","path":"a","severity":[],"engine_kind":[["x"]],"sca_info":{"kind":["LockfileOnlyMatch","transitive"]}}]}`))
	limits := Limits{MaxBytes: 1 << 20, MaxDepth: 64, MaxItemBytes: 1 << 16, MaxTextBytes: 1 << 16, MaxPathBytes: 1 << 16, MaxRules: 100, MaxRuleBytes: 1 << 16}
	f.Fuzz(func(t *testing.T, body []byte) {
		o := Options{Limits: limits}
		var out bytes.Buffer
		w, err := NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadResults(t.Context(), bytes.NewReader(body), o, w.Write); err != nil {
			return
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		frames := 0
		if err := Read(&out, func(*storev1.ScannerFrame) error { frames++; return nil }); err != nil || frames != w.Frames {
			t.Fatalf("%d of %d frames: %v", frames, w.Frames, err)
		}
		_, _ = ReadCompletion(t.Context(), io.LimitReader(bytes.NewReader(body), 1<<20), limits, func(*storev1.ScannerFrame) error { return nil })
	})
}
