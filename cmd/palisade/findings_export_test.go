package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const exportedReport = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"scan"}},"results":[
	{"ruleId":"sql","level":"error","message":{"text":"=1+1"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":1}}}]},
	{"ruleId":"xss","level":"note","message":{"text":"x"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"b.go"},"region":{"startLine":1}}}]}]}]}`

// TestExportAndImport moves findings from one server to another.
func TestExportAndImport(t *testing.T) {
	old, fresh := startReadyServer(t, t.TempDir()), startReadyServer(t, t.TempDir())
	if got := palisade(t, exportedReport, old, "upload", "-", "--project", "acme/web", "--ref", "main"); got.status != exitOK {
		t.Fatal(got.err)
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"all.csv":    {[]string{"--format", "csv"}, "xss"},
		"high.csv":   {[]string{"--severities", "high", "--status", "open", "--repos", "acme/web", "--issue-type", "sast"}, "sql"},
		"all.ndjson": {[]string{"--format", "ndjson"}, `"end":{"findings":"2"}`},
		"all.sarif":  {[]string{"--format", "sarif", "--since", "1d"}, `"ruleId":"sql"`},
		"web.vex":    {[]string{"--format", "openvex", "--filter", `{"repositoryNames":["acme/web"]}`}, `"statements":[]`},
	} {
		got := palisade(t, "", old, append([]string{"findings", "export", "--output", path(name)}, c.args...)...)
		text, err := os.ReadFile(path(name))
		if got.status != exitOK || err != nil || !strings.Contains(string(text), c.want) || !strings.Contains(got.err, "SHA-256") {
			t.Errorf("%s: status %d: %s\n%s", name, got.status, got.err, text)
		}
		if _, err := os.Stat(path(name + ".part")); !os.IsNotExist(err) {
			t.Errorf("%s: a part is left: %v", name, err)
		}
		if name == "high.csv" && strings.Contains(string(text), "xss") {
			t.Errorf("the filter is ignored: %s", text)
		}
	}
	got := palisade(t, "", fresh, "findings", "import", path("all.ndjson"))
	if got.status != exitOK || !strings.Contains(got.out, "2 findings imported, 0 existed") {
		t.Errorf("import: %s%s", got.out, got.err)
	}
	got = palisade(t, "", fresh, "findings", "export", "--format", "ndjson", "--output", "-")
	if text, _ := os.ReadFile(path("all.ndjson")); got.out != string(text) {
		t.Errorf("the export of the import differs:\n%s\n%s", got.out, text)
	}
	// A part of an earlier run is continued, and damage is found.
	whole, err := os.ReadFile(path("all.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for part, fine := range map[string]bool{string(whole[:50]): true, strings.Repeat("x", 50): false} {
		if err := os.WriteFile(path("again.ndjson.part"), []byte(part), 0o600); err != nil {
			t.Fatal(err)
		}
		got := palisade(t, "", old, "findings", "export", "--format", "ndjson", "--output", path("again.ndjson"))
		if (got.status == exitOK) != fine {
			t.Errorf("after %.10s…: status %d: %s", part, got.status, got.err)
		}
	}
	for _, args := range [][]string{{"--format", "pdf"}, {"--filter", "["}, {"--filter", `{"tab":"X"}`}, {"--since", "soon"}} {
		if got := palisade(t, "", old, append([]string{"findings", "export", "--output", path("no")}, args...)...); got.status == exitOK {
			t.Errorf("%v: %s", args, got.out)
		}
	}
	if got := palisade(t, "{}", fresh, "findings", "import", "-"); got.status == exitOK || !strings.Contains(got.err, "line 1") {
		t.Errorf("import of another file: %s", got.err)
	}
}
