package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// yamlRule returns a rule in YAML.
func yamlRule(name, severity string) string {
	return fmt.Sprintf("- id: %s\n  languages: [python]\n  severity: %s\n  message: Do <not>.\n  pattern: eval($X)\n", name, severity)
}

// rulesDir returns a directory with two rule files, and with files that scanners would ignore.
func rulesDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml":             "rules:\n" + yamlRule("acme.a", "ERROR") + yamlRule("acme.b", "LOW"),
		"sub/c.yml":          "rules:\n" + yamlRule("acme/c", "INFO"),
		"sub/c.test.yaml":    "a: b",
		".hidden/d.yaml":     "a: b",
		".e.yaml":            "a: b",
		"package.json":       "{}",
		"sub/README.md":      "# Rules",
		"sub/c.py":           "eval(x)",
		"sub/deeper/none.md": "",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRulesCommands(t *testing.T) {
	client := startReadyServer(t, t.TempDir())
	expect := func(status int, args ...string) outcome {
		t.Helper()
		got := palisade(t, "rules:\n"+yamlRule("acme.stdin", "HIGH"), client, append([]string{"rules"}, args...)...)
		if got.status != status {
			t.Fatalf("%v: status %d: %s", args, got.status, got.err)
		}
		return got
	}
	dir := rulesDir(t)
	wantParts(t, expect(exitOK, "import", dir, "--dry-run").out, "2 files, 3 rules: created 3, updated 0, unchanged 0 (nothing was stored)")
	wantParts(t, expect(exitOK, "import", dir).out, "2 files, 3 rules: created 3, updated 0, unchanged 0\n")
	wantParts(t, expect(exitOK, "import", dir, "-", "--mode", "block", "-o", "json").out, `"name":"acme.stdin","outcome":"RULE_IMPORT_OUTCOME_CREATED","version":1,"mode":"RULE_MODE_BLOCK"`,
		`"problems":[],"created":1,"updated":0,"unchanged":3}`)
	wantParts(t, expect(exitOK, "list").out, "NAME", "acme.a", "acme/c", "monitor", "sast", "ERROR", "python", "import")
	if got := expect(exitOK, "list", "--mode", "block", "--product", "sast", "--language", "py", "--origin", "import", "--query", "STDIN").out; strings.Count(got, "\n") != 2 {
		t.Errorf("%s", got)
	}
	if got := expect(exitOK, "list", "--origin", "starter", "-o", "json").out; got != `{"rules":[]}`+"\n" {
		t.Errorf("%s", got)
	}
	wantParts(t, expect(exitOK, "show", "acme/c").out, "acme/c: mode monitor, version 1, sast, severity INFO, python, origin import", `"pattern": "eval($X)"`, "VERSION")
	wantParts(t, expect(exitOK, "show", "acme/c", "-o", "json").out, `"document":{"id":"acme/c",`)
	copied := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(copied, []byte(expect(exitOK, "show", "acme/c", "--document").out), 0o600); err != nil {
		t.Fatal(err)
	}
	wantParts(t, expect(exitOK, "import", copied).out, "1 files, 1 rules: created 0, updated 0, unchanged 1")
	wantParts(t, expect(exitOK, "mode", "comment", "acme.*", "acme/c").out, "acme.a", "acme.b", "acme.stdin", "acme/c", "comment")
	wantParts(t, expect(exitError, "mode", "off", "nothing.*").err, "there is no rule nothing.*")
	wantParts(t, expect(exitError, "mode", "off", "nothing").err, `rule "nothing" not found`)
	wantParts(t, expect(exitOK, "release", "acme.a").out, "acme.a", "comment")
	wantParts(t, expect(exitError, "release", "nothing").err, `rule "nothing" not found`)
	if got := expect(exitOK, "list", "--quarantined").out; strings.Count(got, "\n") != 1 {
		t.Errorf("no rule is in quarantine: %s", got)
	}
	wantParts(t, expect(exitOK, "delete", "acme/c", "acme.b").out, "acme/c: deleted", "acme.b: deleted")
	wantParts(t, expect(exitError, "show", "acme/c").err, `rule "acme/c" not found`)
	wantParts(t, expect(exitOK, "alias", "G1", "G2", "--tool", "gosec").out, "G1 of gosec is now G2")
	wantParts(t, expect(exitOK, "alias", "G2", "G3", "--tool", "gosec").out, "G2 of gosec is now G3")
	wantParts(t, expect(exitError, "alias", "G3", "G1", "--tool", "gosec").err, "canonical must not lead back")
	wantParts(t, expect(exitOK, "aliases").out, "gosec  G1        G3    user", "G2")
	wantParts(t, expect(exitOK, "unalias", "G1", "--tool", "gosec").out, "G1 of gosec is no longer an alias")
	wantParts(t, expect(exitError, "unalias", "G1", "--tool", "gosec").err, "G1 of gosec is not an alias")
	wantParts(t, expect(exitOK, "aliases", "-o", "json", "--tool", "gosec").out, `{"aliases":[{"id":"2","tool":"gosec","name":"G2","canonical":"G3"`)
	wantParts(t, expect(exitOK, "import", "--starter").out, "rules that come with the product: created")
	wantParts(t, expect(exitMore, "list", "--origin", "starter", "--limit", "3").out, "palisade.", "comment")
}

// TestRulesImportMany: many rules are sent in several requests; one invalid rule stops all of them before the first.
func TestRulesImportMany(t *testing.T) {
	client := startReadyServer(t, t.TempDir())
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for f := range 30 {
		var text strings.Builder
		text.WriteString("rules:\n")
		for i := range 100 {
			text.WriteString(yamlRule(fmt.Sprintf("acme.r%d-%d", f, i), "ERROR"))
		}
		write(fmt.Sprintf("%02d.yaml", f), text.String())
	}
	write("bad.yaml", "rules:\n"+yamlRule("acme.good", "LOW")+yamlRule("acme.bad", "low")+yamlRule("acme.r0-0", "LOW"))
	got := palisade(t, "", client, "rules", "import", dir)
	if got.status != exitError || got.out != "" {
		t.Errorf("%d %s", got.status, got.out)
	}
	wantParts(t, got.err, "bad.yaml:9: rule acme.bad: severity must be one of", "bad.yaml:12: rule acme.r0-0: the id is there already, in "+filepath.Join(dir, "00.yaml")+":2", "nothing was imported")
	if got := palisade(t, "", client, "rules", "list", "--origin", "import"); strings.Count(got.out, "\n") != 1 {
		t.Errorf("rules are stored: %.300s", got.out)
	}
	got = palisade(t, "", client, "rules", "import", dir, "--skip-bad")
	wantParts(t, got.out, "31 files, 3001 rules: created 3001, updated 0, unchanged 0, problems 2")
	got = palisade(t, "", client, "rules", "import", dir, "--skip-bad", "-o", "json")
	wantParts(t, got.out, `"text":"severity must be one of`, `"created":0,"updated":0,"unchanged":3001}`)
	if got := palisade(t, "", client, "rules", "list", "--origin", "import"); strings.Count(got.out, "\n") != 3002 {
		t.Errorf("%d lines", strings.Count(got.out, "\n"))
	}
}

func TestRulesValidateNeedsNoServer(t *testing.T) {
	dir := rulesDir(t)
	got := palisade(t, "", nil, "rules", "validate", dir)
	if got.status != exitOK || got.out != "" {
		t.Errorf("%d %s", got.status, got.out)
	}
	wantParts(t, got.err, "2 files: 3 valid rules, 0 problems")
	got = palisade(t, "rules:\n"+yamlRule("acme.one", "ERROR"), nil, "rules", "validate", "-")
	wantParts(t, got.err, "1 file: 1 valid rule, 0 problems")
	got = palisade(t, "rules: [", nil, "rules", "validate", dir, "-")
	if got.status != exitNo {
		t.Errorf("status %d", got.status)
	}
	wantParts(t, got.out, "-:1: this is not YAML:")
	got = palisade(t, "rules:\n"+yamlRule("acme.a", "ERROR"), nil, "rules", "validate", dir, "-", "-o", "json")
	wantParts(t, got.out, `"files":3,"problems":[{"file":"-","line":2,"rule":"acme.a","text":"the id is there already, in `, `"rules":3}`)
	for _, test := range [][]string{{"missing"}, {t.TempDir()}} {
		if got := palisade(t, "", nil, append([]string{"rules", "validate"}, test...)...); got.status != exitError || got.err == "" {
			t.Errorf("%v: %d %s", test, got.status, got.err)
		}
	}
}

func TestRulesUsage(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"import", "needs a directory or a file"}, {"import - -", "can be read only once"}, {"import - --mode loud", `--mode: got "loud"`}, {"import - -o xml", `--output: got "xml"`},
		{"import --starter x", "takes no arguments"}, {"validate", "needs a directory or a file"}, {"list x", "takes no arguments"}, {"list --limit -1", "--limit"},
		{"mode block", "want a mode"}, {"mode loud a", `mode: got "loud", want monitor, comment, block, off`}, {"delete", "needs the name of a rule"}, {"release", "needs the name of a rule"}, {"show", "name of a rule"},
		{"alias a --tool x", "want the old and the new name"}, {"alias a b", "required flag(s)"}, {"unalias a", "required flag(s)"}, {"nothing", "unknown command"},
	} {
		got := palisade(t, "", nil, append([]string{"rules"}, strings.Fields(test.args)...)...)
		if got.status != exitError {
			t.Errorf("%s: status %d", test.args, got.status)
		}
		wantParts(t, got.err, test.want, "--help")
	}
	for _, command := range []string{"import", "validate", "list", "show", "mode", "release", "delete", "alias", "unalias", "aliases"} {
		wantParts(t, palisade(t, "", nil, "rules", command, "--help").out, "Examples:", "palisade rules "+command)
	}
}
