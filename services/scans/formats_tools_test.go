package scans_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// runTool returns what a tool writes to stdout. Scanners that found something exit with an error.
func runTool(t *testing.T, dir string, env []string, name string, arguments ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if stdout.Len() == 0 {
		t.Fatalf("%s wrote nothing: %s", name, stderr.Bytes())
	}
	return stdout.Bytes()
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

const vulnerableModule = `package main

import "net/url"

func main() {
	address, err := url.Parse("https://example.com")
	println(address, err)
}
`

// TestGovulncheck runs govulncheck with a database of invented vulnerabilities. Its JSON and its SARIF report are about
// the same findings, and a run that did not finish closes none.
func TestGovulncheck(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "govulncheck")
	build := exec.CommandContext(t.Context(), "go", "-C", filepath.Join(root, ".ci", "tools"), "build", "-o", program, "golang.org/x/vuln/cmd/govulncheck")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	module := t.TempDir()
	writeFiles(t, module, map[string]string{"go.mod": "module example.com/shop\n\ngo 1.26\n", "main.go": vulnerableModule})
	database := "file://" + filepath.Join(root, "services/scans/testdata/govulncheck")
	scan := func(format string) []byte {
		return runTool(t, module, []string{"GOFLAGS=", "GOWORK=off"}, program, "-db", database, "-format", format, "./...")
	}
	report, sarifReport := scan("json"), scan("sarif")
	writeFiles(t, module, map[string]string{"main.go": "package main\n\nimport \"example.com/missing\"\n"})
	failed := scan("json")

	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		if answer := s.Upload(t, "shop", "main", report); !strings.Contains(answer, `"created":2,`) {
			t.Fatalf("JSON: %s", answer)
		}
		stored := storedFindings(t, s, "shop")
		for _, want := range []string{
			"rule: GO-2026-9001", "package: gomod stdlib 1.", "fixed: 1.99.0", "calls vulnerable functions in 1 package (net/url).",
			"rule: GO-2026-9002", "depends on 1 vulnerable module (stdlib), but doesn't appear to call",
		} {
			if !strings.Contains(stored, want) {
				t.Errorf("no %q in\n%s", want, stored)
			}
		}
		if answer := s.Upload(t, "shop", "main", failed); !strings.Contains(answer, `"fixed":0,"removed":0`) || !strings.Contains(answer, "ended before it checked") {
			t.Errorf("a failed run: %s", answer)
		}
		if answer := s.Upload(t, "shop", "main", sarifReport); !strings.Contains(answer, `"created":0,`) || !strings.Contains(answer, `"fixed":0,"removed":0`) {
			t.Errorf("SARIF after JSON: %s", answer)
		}
	})
}

const (
	lockfile = `{"name":"shop","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{
		"":{"name":"shop","version":"1.0.0","dependencies":{"slow-text":"1.2.3"}},"node_modules/slow-text":{"version":"1.2.3"}}}`
	advisories = `{"slow-text":[{"id":7001,"url":"https://github.com/advisories/GHSA-aaaa-bbbb-cccc","title":"Slow regular expression",
		"severity":"moderate","vulnerable_versions":"<1.2.4","cwe":["CWE-1333"],"cvss":{"score":5.3,"vectorString":null}}]}`
	packument = `{"name":"slow-text","dist-tags":{"latest":"1.2.4"},"versions":{"1.2.3":{"name":"slow-text","version":"1.2.3"},
		"1.2.4":{"name":"slow-text","version":"1.2.4"}}}`
)

// TestNPMAudit runs npm with a registry on the loopback interface.
func TestNPMAudit(t *testing.T) {
	t.Parallel()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed")
	}
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := packument
		if strings.HasSuffix(r.URL.Path, "/advisories/bulk") {
			answer = advisories
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer registry.Close()
	dir := t.TempDir()
	audit := func() []byte {
		return runTool(t, dir, []string{"NPM_CONFIG_CACHE=" + filepath.Join(dir, "cache")}, npm, "audit", "--json", "--registry", registry.URL)
	}
	writeFiles(t, dir, map[string]string{"package.json": `{"name":"shop","version":"1.0.0","dependencies":{"slow-text":"1.2.3"}}`})
	failed := audit() // there is no lockfile yet
	writeFiles(t, dir, map[string]string{"package-lock.json": lockfile})
	report := audit()

	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		if answer := s.Upload(t, "shop", "main", report); !strings.Contains(answer, `"created":1,`) {
			t.Fatalf("%s of %s", answer, report)
		}
		stored := storedFindings(t, s, "shop")
		for _, want := range []string{
			"sca unresolved medium package-lock.json", "rule: GHSA-aaaa-bbbb-cccc", "package: npm slow-text", "fixed: 1.2.4", "cwe: CWE-1333",
		} {
			if !strings.Contains(stored, want) {
				t.Errorf("no %q in\n%s", want, stored)
			}
		}
		answer := s.Upload(t, "shop", "main", failed)
		if !strings.Contains(answer, `"fixed":0,"removed":0`) || !strings.Contains(answer, "ENOLOCK") {
			t.Errorf("%s of %s", answer, failed)
		}
	})
}
