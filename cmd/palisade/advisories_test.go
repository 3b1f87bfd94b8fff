package main

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const osvFixtures = "../../services/supplychain/osv/testdata"

// zipped writes a zip file with the fixtures, copied several times under different ids.
func zipped(t *testing.T, copies int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "all.zip")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	raw, err := os.ReadFile(filepath.Join(osvFixtures, "MAL-2026-1001.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range copies {
		entry, err := archive.Create(fmt.Sprintf("npm/MAL-2027-%d.json", i))
		if err == nil {
			_, err = entry.Write([]byte(strings.Replace(string(raw), "MAL-2026-1001", fmt.Sprintf("MAL-2027-%d", i), 1)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAdvisories(t *testing.T) {
	client := startServer(t, t.TempDir())
	if got := palisade(t, `{"version":"2.1.0","runs":[]}`, client, "upload", "-", "--project", "acme/web", "--ref", "main", "--wait", "1m"); got.status != exitOK {
		t.Fatal(got.err)
	}
	expect := func(status int, args ...string) outcome {
		t.Helper()
		got := palisade(t, "", client, append([]string{"advisories"}, args...)...)
		if got.status != status {
			t.Fatalf("%v: status %d: %s", args, got.status, got.err)
		}
		return got
	}
	wantParts(t, expect(exitOK, "check", "npm", "tinycolour-utils", "1.0.0").out, "npm tinycolour-utils 1.0.0 may be installed.")
	wantParts(t, expect(exitOK, "import", osvFixtures, "--malicious-only").out, "5 files: created 4, updated 0, unchanged 0, skipped 0, left out 1, unreadable 0")
	wantParts(t, expect(exitOK, "import", osvFixtures).out, "created 1, updated 0, unchanged 4")
	wantParts(t, expect(exitOK, "import", zipped(t, 1100)).out, "1100 files: created 1100,")
	wantParts(t, expect(exitOK, "import", zipped(t, 3)).out, "unchanged 3,")
	wantParts(t, expect(exitNo, "check", "PyPI", "Requests.OAuthlib_Pro", "2.1").out, "is malicious: it is blocked.", "MAL-2026-1002", "blocks")
	wantParts(t, expect(exitOK, "check", "npm", "fastpad", "1.0.0").out, "may be installed.", "MAL-2026-1003", "withdrawn")
	wantParts(t, expect(exitOK, "list", "--ecosystem", "pypi").out, "PYSEC-2026-77", "numpy-fastmath", "pypi requests-oauthlib-pro")
	if lines := strings.Count(expect(exitOK, "list", "--limit", "700").out, "\n"); lines != 701 {
		t.Errorf("%d lines, want 700 and a title", lines)
	}
	if got := expect(exitOK, "list", "--ecosystem", "gem", "-o", "json").out; got != "[]\n" {
		t.Errorf("an empty list: %s", got)
	}

	dir := t.TempDir()
	for name, text := range map[string]string{"a.json": "{", "b.json": "null", "c.json": `{"id":"X-1"}`, "d.txt": "no"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := expect(exitError, "import", dir)
	wantParts(t, got.out, "3 files: created 0, updated 0, unchanged 0, skipped 1, left out 0, unreadable 2")
	wantParts(t, got.err, "a.json: is not a JSON object", "b.json: is not a JSON object", "skipped c.json: modified must be a time")
	wantParts(t, expect(exitError, "import", t.TempDir()).err, "no regular .json files")
	wantParts(t, expect(exitError, "import", filepath.Join(dir, "d.txt")).err, "neither a directory nor a zip file")
	wantParts(t, expect(exitError, "import", filepath.Join(dir, "missing")).err, "missing", "no such file")
	wantParts(t, expect(exitError, "check", "debian", "bash", "5").err, "ecosystem must be one of")
	wantParts(t, expect(exitError, "check", "npm", "bash").err, "want an ecosystem, a package and a version")
	wantParts(t, expect(exitError, "list", "--limit", "0").err, "--limit")
	for _, command := range []string{"import", "list", "check"} {
		wantParts(t, expect(exitOK, command, "--help").out, "Examples:", "palisade advisories "+command)
	}
}
