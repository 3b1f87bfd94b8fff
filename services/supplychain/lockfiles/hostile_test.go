package lockfiles_test

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/supplychain/lockfiles"
)

func none(string) []byte { return nil }

// repeated returns n texts, with their number for %d.
func repeated(text string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, strings.ReplaceAll(text, "%d", "%[1]d"), i)
	}
	return out.String()
}

// bombs are files that would exhaust the stack, the memory or the time of a reader that trusts them. Those with an
// error are refused.
var bombs = map[string]struct {
	file, content string
	refused       bool
}{
	"deep JSON":          {"package-lock.json", `{"packages":` + strings.Repeat(`{"a":`, 1<<20), true},
	"deep values":        {"composer.lock", `{"packages":[{"name":"a/b","x":` + strings.Repeat("[", 4<<20), true},
	"deep packages":      {"package-lock.json", "{" + strings.Repeat(`"dependencies":{"a":{`, 1<<18), true},
	"many directories":   {"package-lock.json", directories(), true},
	"long directory":     {"package-lock.json", `{"packages":{"` + strings.Repeat("node_modules/a/", 1<<18) + `":{}}}`, true},
	"deep YAML":          {"pnpm-lock.yaml", "packages: " + strings.Repeat("[", 4<<20), true},
	"deep YAML blocks":   {"pubspec.lock", "packages: \n" + strings.Repeat("- ", 1<<19), true},
	"wide YAML":          {"pubspec.lock", "packages: [" + strings.Repeat("a,", 4<<20) + "]", true},
	"aliases in pnpm":    {"pnpm-lock.yaml", aliases("packages"), true},
	"aliases in pub":     {"pubspec.lock", aliases("packages"), true},
	"aliases in pods":    {"Podfile.lock", aliases("PODS"), true},
	"alias of itself":    {"Podfile.lock", "PODS: &a\n  - *a\n", true},
	"deep TOML":          {"Cargo.lock", "[[package]]\ndependencies = " + strings.Repeat("[", 500_000), true},
	"deeper TOML":        {"Cargo.lock", "[[package]]\ndependencies = " + strings.Repeat("[", 8<<20), true},
	"wide TOML":          {"uv.lock", "[[package]]\ndependencies = [" + strings.Repeat("1,", 4<<20) + "]", true},
	"long TOML key":      {"poetry.lock", strings.Repeat("a.", 1<<18) + "a = 1", false},
	"longer TOML key":    {"poetry.lock", strings.Repeat("a.", 1<<20) + "a = 1", true},
	"lines":              {"yarn.lock", strings.Repeat("a@1:\n", 3<<20), true},
	"versions in poetry": {"poetry.lock", manyVersions(200), false},
	"ranges in poetry":   {"poetry.lock", manyVersions(10), false},
	"deep XML":           {"pom.xml", strings.Repeat("<project>", 1<<20), true},
	"deep dependencies":  {"pom.xml", "<project><dependencies><dependency>" + strings.Repeat("<version>", 1<<20), true},
	"entities":           {"pom.xml", `<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><project><version>&c;</version></project>`, true},
	"properties": {"pom.xml", "<project><properties><a>" + strings.Repeat("${b}", 200) + "</a><b>" + strings.Repeat("${a}", 200) +
		"</b></properties><dependencies>" + repeated("<dependency><groupId>g</groupId><artifactId>a%d</artifactId>"+
		"<version>${a}</version></dependency>", 2000) + "</dependencies></project>", false},
	"packages":             {"gradle.lockfile", repeated("g:a%d:1=x\n", lockfiles.MaxPackages+1), true},
	"size":                 {"go.mod", strings.Repeat("/", lockfiles.MaxFile+1), true},
	"same name":            {"requirements.txt", repeated("a==%d # via a, a\n", 50_000), false},
	"long line":            {"yarn.lock", strings.Repeat("a@1, ", 1<<20) + ":\n  version 1\n", false},
	"long text":            {"mix.lock", `"a": {:hex, :a, "1", ` + strings.Repeat(`{:b, "1", [`, 1<<18), false},
	"long name":            {"Gemfile.lock", "GEM\n  specs:\n    " + strings.Repeat("a", 1<<20) + " (1)\n", false},
	"blocks":               {"go.mod", "module a\n" + strings.Repeat("require (\n", 1<<16), true},
	"requirements":         {"requirements.txt", strings.Repeat("a[", 1<<20) + "==1", false},
	"no value":             {"packages.lock.json", `{"dependencies":{"net8.0":{"A":null,"B":[],"C":1}}}`, true},
	"nothing":              {"Pipfile.lock", "", true},
	"another type":         {"Podfile.lock", "PODS:\n  - A (1):\n    - {a: b}\n  - [a]\n  - {B (1): c}\nDEPENDENCIES: 1\nEXTERNAL SOURCES: [a]\n", false},
	"two keys of one name": {"package-lock.json", `{"packages":{"node_modules/a":{"version":"1"},"node_modules/a":{"version":"2"}}}`, false},
}

// directories is a package with many requirements in a deep directory.
func directories() string {
	deep := strings.Repeat("a/", 500)
	return `{"packages":{"` + deep + `":{"dependencies":{"x":""` + repeated(`,"d%d":""`, 60_000) + `}}}}`
}

// aliases is a document in which each line stands for ten of the line before.
func aliases(section string) string {
	out := "a0: &a0 [x]\n"
	for i := range 12 {
		out += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	return "lockfileVersion: '9.0'\n" + out + section + ": *a12\n"
}

// manyVersions has versions of a package that no range contains.
func manyVersions(versions int) string {
	return repeated("[[package]]\nname = \"a\"\nversion = \"1.%d\"\n", versions) +
		repeated("[[package]]\nname = \"b%d\"\nversion = \"1\"\n[package.dependencies]\na = \"<0.%d\"\n", 30_000)
}

func TestHostileFiles(t *testing.T) {
	t.Parallel()
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			packages, err := lockfiles.Read(bomb.file, []byte(bomb.content), none)
			if (err != nil) != bomb.refused {
				t.Errorf("%d packages, error %.200v", len(packages), err)
			}
			if err != nil && strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("a reader has panicked: %v", err)
			}
		})
	}
}

// TestHostileManifests: a manifest that cannot be read does not hide the packages.
func TestHostileManifests(t *testing.T) {
	t.Parallel()
	for project, lockfile := range projects(t) {
		content, err := os.ReadFile(lockfile)
		if err != nil {
			t.Fatal(err)
		}
		for _, manifest := range []string{"", "{", `{"dependencies":1}`, "[[[", "\x00", strings.Repeat("[", 1<<20), "\xff\xfea"} {
			packages, err := lockfiles.Read(lockfile, content, func(string) []byte { return []byte(manifest) })
			if err != nil || len(packages) == 0 {
				t.Errorf("%s beside %.20q: %d packages, %v", project, manifest, len(packages), err)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	files := projects(f)
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(path.Base(name), content, []byte(nil))
	}
	f.Add("package-lock.json", []byte(`{"dependencies":{"a":{"version":"1"}}}`), []byte(`{"dependencies":{"a":"1"}}`))
	f.Add("poetry.lock", []byte("[[package]]\nname=\"a\"\nversion=\"1\"\n"), []byte("[tool.poetry.dependencies]\na=\"1\"\n"))
	f.Fuzz(func(t *testing.T, name string, content, manifest []byte) {
		packages, err := lockfiles.Read(name, content, func(string) []byte { return manifest })
		if err != nil {
			if strings.Contains(err.Error(), "cannot be read") {
				t.Fatal(err)
			}
			return
		}
		for i, p := range packages {
			if p.Name == "" || p.Version == "" || p.Line < 0 || p.Transitivity == "" {
				t.Errorf("package %+v", p)
			}
			if i > 0 && packages[i-1].Name == p.Name && packages[i-1].Version == p.Version {
				t.Errorf("%s %s is listed twice", p.Name, p.Version)
			}
		}
	})
}
