package gitignore_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/policies/gitignore"
)

// checkIgnore asks Git which pattern ignores each path; "" for none.
func checkIgnore(t testing.TB, dir string, patterns, paths []string) []string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(strings.Join(patterns, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("git", "-C", dir, "-c", "core.excludesFile=/dev/null", "-c", "core.ignoreCase=false",
		"check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin")
	command.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	out, err := command.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		t.Fatalf("git check-ignore: %v", err)
	}
	fields := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	if len(fields) != 4*len(paths) {
		t.Fatalf("%d paths have %d fields", len(paths), len(fields))
	}
	found := make([]string, len(paths))
	for i := range paths {
		if pattern := string(fields[4*i+2]); !strings.HasPrefix(pattern, "!") {
			found[i] = pattern
		}
	}
	return found
}

func repository(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// compare requires that the list answers as Git does.
func compare(t interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}, patterns, paths, git []string) {
	t.Helper()
	list, err := gitignore.New(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		if got, _ := list.Match(path); strings.TrimRight(got, " ") != strings.TrimRight(git[i], " ") {
			t.Errorf("%q: %s is ignored by %q, according to Git by %q", patterns, path, got, git[i])
		}
	}
}

func TestAsGit(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	paths := []string{
		"a.go", "a/b.go", "a/b/c.go", "vendor/x.go", "src/vendor/x.go", "vendor/ours/x.go", "gen/a.go", "gen/a.txt", "docs/a b", "docs/a ",
		"x/y/z/w.js", "x/z", "#a", "!a", "a*b", "[a]", "a]", "-", "a-b", "lib.min.js", "Vendor/x.go", "a/a/a", "a\\b", "a/+", "a/,",
	}
	for _, patterns := range [][]string{
		{"vendor/"}, {"/vendor/"}, {"vendor"}, {"vendor/**"}, {"**/vendor"}, {"/vendor/*", "!/vendor/ours/"}, {"vendor/", "!vendor/ours/x.go"},
		{"*.go", "!gen"}, {"*.go", "!gen/"}, {"*.go", "!gen/*"}, {"gen/*", "!gen/*.txt"}, {"*", "!*.go"}, {"*", "!*/", "!*.go"}, {"/*"}, {"**"}, {"/**"},
		{"x/**/z"}, {"x/**/w.js"}, {"**/z/**"}, {"x/*/w.js"}, {"x**z"}, {"a**"}, {"a/**/"}, {"docs/a\\ "}, {"docs/a "}, {"\\#a"}, {"\\!a"}, {"a\\*b"},
		{"[!a].go"}, {"[^a]*"}, {"\\[a]"}, {"[]a]"}, {"a[]]"}, {"[a-c].go"}, {"[[:alpha:]].go"}, {"[[:punct:]]"}, {"a/[+-9]"}, {"a[+-9]b"}, {"a[/]b"},
		{"[a-]"}, {"[-a]"}, {"[\\-]"}, {"?"}, {"??"}, {"a?b"}, {"lib.min.*"}, {"*.min.js"}, {"a", "!a", "a"}, {"a//b"}, {"./a"}, {"a/."}, {"***"}, {"a/***"},
		{"[[:print:]]"}, {"[[:graph:]]*"}, {"a[[:space:]-]b"}, {"[[:digit:][:lower:]].go"}, {"a\\\\b"},
	} {
		compare(t, patterns, paths, checkIgnore(t, dir, patterns, paths))
	}
}

// TestAsGitAlways: random lists and paths have the answers of Git.
func TestAsGitAlways(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	name := rapid.SampledFrom([]string{"a", "b", "ab", "a.go", "b.go", "c-d"})
	piece := rapid.SampledFrom([]string{"a", "b", "ab", "*", "**", "?", "*.go", "a*", "[ab]", "[!a]", "[a-c]*", "c?d", "\\a", "*b*"})
	rapid.Check(t, func(r *rapid.T) {
		patterns := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) string {
			text := strings.Join(rapid.SliceOfN(piece, 1, 4).Draw(r, "pieces"), "/")
			return rapid.SampledFrom([]string{"", "!", "/", "!/"}).Draw(r, "before") + text + rapid.SampledFrom([]string{"", "/"}).Draw(r, "behind")
		}), 1, 5).Draw(r, "patterns")
		paths := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) string {
			return strings.Join(rapid.SliceOfN(name, 1, 4).Draw(r, "names"), "/")
		}), 1, 20).Draw(r, "paths")
		compare(r, patterns, paths, checkIgnore(t, dir, patterns, paths))
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"": "blank", "  ": "blank", "# a": "comment", "/": "no path", "//": "no path", "!": "no path", "a\nb": "one line", "a\x00": "one line", "a\r": "one line",
		"[a": "no ]", "[": "no ]", "[]": "no ]", "[a\\": "no ]", "[z-a]": "ends before", "[[:word:]]": "class", `a\`: "single",
	} {
		_, err := gitignore.New("ok", text)
		bad := (*gitignore.Error)(nil)
		if !errors.As(err, &bad) || bad.Index != 1 || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestCharacters: a wildcard matches a character. For Git it matches a byte.
func TestCharacters(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"?.go", "[!a].go", "[à-ü].go", "é.go", "*.go"} {
		list, err := gitignore.New(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if _, ignored := list.Match("src/é.go"); !ignored {
			t.Errorf("%q does not ignore é.go", pattern)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	list, err := gitignore.New("/vendor/")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"vendor/a": true, "./vendor/a": true, "/vendor/a": true, "vendor": false, "a/vendor/b": false, "": false, ".": false} {
		if _, got := list.Match(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
	if _, ignored := (*gitignore.List)(nil).Match("a"); ignored {
		t.Error("no list ignores a path")
	}
}

// FuzzNew: no pattern and no path makes the matcher fail.
func FuzzNew(f *testing.F) {
	f.Add("vendor/**", "vendor/a")
	f.Add("[[:alpha:]", "a")
	f.Fuzz(func(_ *testing.T, text, path string) {
		if list, err := gitignore.New(text); err == nil {
			list.Match(path)
		}
	})
}
