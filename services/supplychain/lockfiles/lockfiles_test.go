package lockfiles_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/supplychain/lockfiles"
	"github.com/palisade/palisade/services/supplychain/osv"
)

var update = flag.Bool("update", false, "rewrite golden files")

// projects returns the directories of testdata with their lockfile.
func projects(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	files, err := filepath.Glob("testdata/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if lockfiles.Known(name) {
			out[filepath.Base(filepath.Dir(name))] = name
		}
	}
	return out
}

func read(t testing.TB, name string) ([]lockfiles.Package, error) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return lockfiles.Read(name, content, func(sibling string) []byte {
		content, _ := os.ReadFile(filepath.Join(filepath.Dir(name), sibling))
		return content
	})
}

func TestRead(t *testing.T) {
	t.Parallel()
	for project, lockfile := range projects(t) {
		packages, err := read(t, lockfile)
		if err != nil {
			t.Errorf("%s: %v", project, err)
		}
		var out strings.Builder
		for _, p := range packages {
			fmt.Fprintf(&out, "%3d %s %s %s %s", p.Line, p.Ecosystem, p.Name, p.Version, p.Transitivity)
			if len(p.Children) > 0 {
				fmt.Fprintf(&out, " -> %s", strings.Join(p.Children, " "))
			}
			out.WriteString("\n")
		}
		golden := filepath.Join("testdata", project+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, _ := os.ReadFile(golden)
		if out.String() != string(want) {
			t.Errorf("%s:\n%swant\n%s", project, out.String(), want)
		}
	}
}

// TestVersionsOfAdvisories: what Read returns is what osv compares.
func TestVersionsOfAdvisories(t *testing.T) {
	t.Parallel()
	for _, lockfile := range projects(t) {
		packages, _ := read(t, lockfile)
		for _, p := range packages {
			if word, ok := osv.Ecosystem(p.Ecosystem); !ok || word != p.Ecosystem {
				t.Errorf("%s: %q is no ecosystem", lockfile, p.Ecosystem)
			}
			affected := &storev1.AffectedVersions{Ranges: []*storev1.AffectedRange{{
				Semver: p.Ecosystem == "gomod" || p.Ecosystem == "npm",
				Events: []*storev1.AffectedEvent{{Introduced: "0"}, {Fixed: "999999.0.0"}},
			}}}
			if !osv.Affects(affected, p.Ecosystem, p.Version) {
				t.Errorf("%s: the version of %s, %q, cannot be compared", lockfile, p.Name, p.Version)
			}
		}
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"go.mod": true, "a/b/package-lock.json": true, "requirements.txt": true, "requirements-dev.txt": true, "x/requirements/dev.txt": false,
		"pylock.dev.toml": true, "package.json": false, "Cargo.toml": false, "go.sum": false, "": false,
	} {
		if got := lockfiles.Known(name); got != want {
			t.Errorf("%q is known: %v", name, got)
		}
	}
}

// summary reads a lockfile beside one manifest.
func summary(t *testing.T, lockfile, content, manifest string) string {
	t.Helper()
	packages, err := lockfiles.Read(lockfile, []byte(content), func(string) []byte {
		if manifest == "" {
			return nil
		}
		return []byte(manifest)
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range packages {
		out = append(out, fmt.Sprintf("%s %s %s %v", p.Name, p.Version, p.Transitivity, p.Children))
	}
	return strings.Join(out, "; ")
}

func TestSpecialCases(t *testing.T) {
	t.Parallel()
	nested := `{"dependencies":{"a":{"version":"1.0.0"}}}`
	yarn := "a@^1:\n  version \"1.0.0\"\n\nb@^1:\n  version \"1.1.0\"\n"
	utf16 := "\xff\xfeF\x00l\x00a\x00s\x00k\x00=\x00=\x002\x00.\x003\x00\n\x00"
	for _, c := range []struct{ about, lockfile, content, manifest, want string }{
		{"no manifest", "package-lock.json", nested, "", "a 1.0.0 unknown []"},
		{"not in the manifest", "package-lock.json", nested, `{"dependencies":{"b":"1"}}`, "a 1.0.0 transitive []"},
		{"version 2 has both forms", "npm-shrinkwrap.json", `{"dependencies":{"a":{"version":"1.0.0"}},
			"packages":{"":{"peerDependencies":{"a":"1"}},"node_modules/a":{"version":"1.0.0"}}}`, "", "a 1.0.0 direct []"},
		{"a workspace without members in the lockfile", "yarn.lock", yarn, `{"workspaces":["x"],"dependencies":{"a":"^1"}}`,
			"a 1.0.0 direct []; b 1.1.0 unknown []"},
		{"line ends of Windows", "yarn.lock", strings.ReplaceAll(yarn, "\n", "\r\n"), `{"dependencies":{"b":"^1"}}`,
			"a 1.0.0 transitive []; b 1.1.0 direct []"},
		{"line ends of Windows", "Gemfile.lock", "GEM\r\n  specs:\r\n    a (1.0)\r\n      b\r\n    b (2.0)\r\n\r\nDEPENDENCIES\r\n  a\r\n",
			"", "a 1.0 direct [b@2.0]; b 2.0 transitive []"},
		{"UTF-16", "requirements.txt", utf16, "", "Flask 2.3 unknown []"},
		{"a comment", "requirements.txt", "a==1 # via our proxy\nb==1\n", "", "a 1 unknown []; b 1 unknown []"},
		{"an umbrella", "mix.lock", `"a": {:hex, :a, "1.0.0", "x"}`, `apps_path: "apps"`, "a 1.0.0 unknown []"},
		{"no toolchain", "go.mod", "module a\n\ngo 1.24rc2\n", "", "stdlib 1.24.0-rc.2 direct []"},
		{"toolchain of a vendor", "go.mod", "module a\n\ngo 1.21\n\ntoolchain go1.21.3-custom\n", "", "stdlib 1.21.3 direct []"},
		{"no version of Go", "go.mod", "module a\n\nrequire example.com/b v1.0.0 // indirect\n", "", "example.com/b v1.0.0 transitive []"},
		{"the closest of several", "packages.lock.json", `{"dependencies":{"net6.0":{"A":{"type":"Transitive","resolved":"1.0"}},
			"net8.0":{"A":{"type":"Direct","resolved":"1.0"}}}}`, "", "A 1.0 direct []"},
		{"only what poetry installs", "poetry.lock", "[[package]]\nname = \"a\"\nversion = \"1\"\n", "[project]\nname = \"b\"\n",
			"a 1 transitive []"},
	} {
		if got := summary(t, c.lockfile, c.content, c.manifest); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.about, got, c.want)
		}
	}
}

// TestAdvisoriesOfGo: versions of modules begin with v, versions of the standard library do not.
func TestAdvisoriesOfGo(t *testing.T) {
	t.Parallel()
	content := "module a\n\ngo 1.21\n\nrequire example.com/b v1.2.3\n"
	packages, err := lockfiles.Read("go.mod", []byte(content), none)
	if err != nil || len(packages) != 2 {
		t.Fatalf("%+v, %v", packages, err)
	}
	for i, fixes := range []map[string]bool{
		{"1.2.4": true, "1.2.3": false},    // example.com/b
		{"1.21.8": true, "1.20.14": false}, // stdlib
	} {
		for fixed, want := range fixes {
			affected := &storev1.AffectedVersions{Ranges: []*storev1.AffectedRange{{
				Semver: true, Events: []*storev1.AffectedEvent{{Introduced: "0"}, {Fixed: fixed}},
			}}}
			if got := osv.Affects(affected, packages[i].Ecosystem, packages[i].Version); got != want {
				t.Errorf("%s %s, fixed in %s: %v", packages[i].Name, packages[i].Version, fixed, got)
			}
		}
	}
}

func TestUnknownFile(t *testing.T) {
	t.Parallel()
	if _, err := lockfiles.Read("a/package.json", []byte("{}"), none); err == nil || strings.Contains(err.Error(), "a/") {
		t.Errorf("error %v", err)
	}
}
