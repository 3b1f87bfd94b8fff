package nodestest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the root of the repository.
const root = "../.."

// program returns the path of a Debian program, and installs the package if it is missing.
func program(t testing.TB, name string) string {
	t.Helper()
	var messages bytes.Buffer
	cmd := exec.Command(filepath.Join(root, ".ci", "debian-program"), name)
	cmd.Stderr = &messages
	path, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		t.Skipf("this test needs %s: %s", name, strings.TrimSpace(messages.String()))
	case err != nil:
		t.Fatalf("%s: %v\n%s", name, err, messages.String())
	}
	return strings.TrimSpace(string(path))
}

// reference returns the code block of a language in docs/scale.md, so that the documented configuration is the one
// tested.
func reference(t testing.TB, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "scale.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n```" + language + "\n(.*?)```\n").FindSubmatch(page)
	if block == nil {
		t.Fatalf("docs/scale.md shows no %s configuration", language)
	}
	return string(block[1])
}

// replaceAll replaces texts that must exist.
func replaceAll(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the configuration in docs/scale.md has no %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// process runs a program until the test ends.
func process(t testing.TB, cmd *exec.Cmd) *output {
	t.Helper()
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // fails because of the kill
		if t.Failed() {
			t.Logf("%s wrote:\n%s", cmd.Path, tail(out.String()))
		}
	})
	return out
}

// tail returns the end of a long text.
func tail(text string) string {
	const most = 8 << 10
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}
