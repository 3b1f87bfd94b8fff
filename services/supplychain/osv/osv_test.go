package osv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"pgregory.net/rapid"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

func TestParse(t *testing.T) {
	read := func(name string) *Advisory {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		advisory, err := Parse(raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return advisory
	}
	a := read("MAL-2026-1001.json")
	if a.ID != "MAL-2026-1001" || a.Title != "Malicious code in tinycolour-utils (npm)" || !a.Malicious || !a.Withdrawn.IsZero() ||
		len(a.Packages) != 1 || a.Packages[0].Ecosystem != "npm" || a.Packages[0].Name != "tinycolour-utils" {
		t.Errorf("got %+v", a)
	}
	if b := read("MAL-2026-1002.json"); len(b.Packages) != 2 || b.Packages[0].Name != "requests-oauthlib-pro" || len(b.Packages[0].Affected.GetVersions()) != 3 {
		t.Errorf("two entries about one package and a system package: got %+v", b)
	}
	if c := read("MAL-2026-1003.json"); c.Withdrawn.IsZero() || !c.Malicious {
		t.Errorf("withdrawn: got %+v", c)
	}
	if d := read("GHSA-w7q2-4x9c-h3vp.json"); d.Malicious || d.Packages[0].Ecosystem != "gomod" {
		t.Errorf("vulnerability: got %+v", d)
	}
	if e := read("PYSEC-2026-77.json"); !e.Malicious {
		t.Errorf("malicious by origin: got %+v", e)
	}
}

func TestParseRefuses(t *testing.T) {
	ok := `"modified":"2026-05-04T10:20:30Z","affected":[{"package":{"ecosystem":"npm","name":"a"}}]`
	for body, want := range map[string]string{
		``:                        "not an OSV document",
		`[]`:                      "not an OSV document",
		`{` + ok + `}`:            "id is missing",
		`{"id":"a b",` + ok + `}`: "id must have no spaces",
		`{"id":"` + strings.Repeat("x", 129) + `",` + ok + `}`:                                                                           "id must have at most 128 bytes",
		`{"id":"M","modified":"yesterday"}`:                                                                                              "modified must be a time",
		`{"id":"M","modified":"0001-01-01T00:00:00Z"}`:                                                                                   "modified must be a time",
		`{"id":"M","withdrawn":"never",` + ok + `}`:                                                                                      "withdrawn must be a time",
		`{"id":"M","modified":"2026-05-04T10:20:30Z"}`:                                                                                   "none of its packages",
		`{"id":"M","modified":"2026-05-04T10:20:30Z","affected":[{"package":{"ecosystem":"Debian:12","name":"a"}}]}`:                     "none of its packages",
		`{"id":"M","modified":"2026-05-04T10:20:30Z","affected":[{"package":{"ecosystem":"npm","name":"a"},"ranges":[{"type":"GIT"}]}]}`: "none of its packages",
	} {
		if _, err := Parse([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", body, err, want)
		}
	}
}

func TestAffects(t *testing.T) {
	for _, c := range []struct{ name, ecosystem, affected, in, out string }{
		{"a list", "npm", `{"versions":["1.0.0","1.0.1"]}`, "1.0.0 1.0.1 v1.0.1", "1.0.2 0.9.0 x"},
		{"everything", "npm", `{"ranges":[{"semver":true,"events":[{"introduced":"0"}]}]}`, "0.0.1 99.0.0 1.0.0-rc.1 not-a-version", ""},
		{"from 0 to a fix", "npm", `{"ranges":[{"semver":true,"events":[{"introduced":"0"},{"fixed":"1.2.3"}]}]}`, "0.0.1 1.2.2 1.2.3-beta.1", "1.2.3 2.0.0 x"},
		{"two spans, in disorder", "npm", `{"ranges":[{"semver":true,"events":[{"fixed":"3.1.0"},{"introduced":"3.0.0"},{"introduced":"1.0.0"},{"fixed":"1.5.0"}]}]}`, "1.0.0 1.4.9 3.0.0 3.0.9", "0.9.0 1.5.0 2.0.0 3.1.0"},
		{"one version", "npm", `{"ranges":[{"semver":true,"events":[{"last_affected":"1.0.0"},{"introduced":"1.0.0"}]}]}`, "1.0.0", "0.9.9 1.0.1"},
		{"a limit", "npm", `{"ranges":[{"events":[{"introduced":"1.0.0"},{"limit":"2.0.0"}]}]}`, "1.0.0 1.9.9", "2.0.0 3.0.0"},
		{"no limit", "npm", `{"ranges":[{"events":[{"introduced":"1.0.0"},{"limit":"*"}]}]}`, "1.0.0 99.0.0", "0.1.0"},
		{"an event that is no version", "npm", `{"ranges":[{"events":[{"introduced":"0"},{"fixed":"soon"}]}]}`, "", "1.0.0"},
		{"no events", "npm", `{"ranges":[{}]}`, "", "1.0.0"},
		{"nothing", "npm", `{}`, "", "1.0.0"},
		{"Go", "gomod", `{"ranges":[{"semver":true,"events":[{"introduced":"1.2.0"},{"fixed":"1.3.0"}]}]}`, "v1.2.0 v1.2.9 v1.2.1-0.20260101120000-abcdefabcdef v1.2.5+incompatible", "v1.3.0 v1.1.9"},
		{"Python", "pypi", `{"ranges":[{"events":[{"introduced":"1.0"},{"last_affected":"1.4.post1"}]}]}`, "1.0 1.0.0 1.4 1.4.post1 1!0.5.dev1 1.4rc1", "1.5 1.0rc1 0.9"},
		{"Python, a list", "pypi", `{"versions":["1.0.0"]}`, "1.0 1.0.0 1", "1.0.1 x"},
		{"Ruby", "gem", `{"ranges":[{"events":[{"introduced":"2.0.0"},{"fixed":"2.0.0.4"}]}]}`, "2.0.0 2.0.0.3 2.0.0.4.pre", "2.0.0.4 1.9.9"},
		{"Maven", "maven", `{"ranges":[{"events":[{"introduced":"1.0"},{"fixed":"1.2"}]}]}`, "1.0 1.1-jre 1.2-SNAPSHOT 1.2-rc1", "1.2 1.2.1 1.0-alpha"},
		{"NuGet", "nuget", `{"ranges":[{"events":[{"introduced":"1.0.0.1"},{"fixed":"1.0.0.3"}]}]}`, "1.0.0.1 1.0.0.2+Build.7", "1.0.0 1.0.0.3"},
		{"Composer", "composer", `{"ranges":[{"events":[{"introduced":"1.0.0-RC1"},{"fixed":"1.0.1"}]}]}`, "v1.0.0 1.0.0-RC1 1.0.0-rc2", "1.0.0-beta2 1.0.1"},
		{"opam has lists", "opam", `{"versions":["0.3.1~beta"],"ranges":[{"events":[{"introduced":"0.1"},{"fixed":"0.2"}]}]}`, "0.3.1~beta", "0.1 0.3.1"},
	} {
		affected := &storev1.AffectedVersions{}
		if err := protojson.Unmarshal([]byte(c.affected), affected); err != nil {
			t.Fatal(err)
		}
		for _, version := range strings.Fields(c.in) {
			if strings.HasPrefix(version, "1!") { // a version with an epoch is higher than all without
				if Affects(affected, c.ecosystem, version) {
					t.Errorf("%s: %s is affected", c.name, version)
				}
			} else if !Affects(affected, c.ecosystem, version) {
				t.Errorf("%s: %s is not affected", c.name, version)
			}
		}
		for _, version := range strings.Fields(c.out) {
			if Affects(affected, c.ecosystem, version) {
				t.Errorf("%s: %s is affected", c.name, version)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ given, ecosystem, name, want string }{
		{"PyPI", "pypi", "Requests_OAuthlib.Pro", "requests-oauthlib-pro"},
		{"npm", "npm", "@Acme/Left-Pad", "@acme/left-pad"},
		{"crates.io", "cargo", "Serde_JSON", "serde-json"},
		{"Go", "gomod", "github.com/Acme/log/", "github.com/Acme/log"},
		{"Maven:https://repo.acme.test", "maven", "com.acme/util", "com.acme:util"},
		{"RubyGems", "gem", "Rack_x", "Rack_x"},
		{"Packagist", "composer", "Acme/Log", "acme/log"},
		{"SwiftURL", "swiftpm", "https://git.acme.test/Log.git", "git.acme.test/log"},
		{"mix", "hex", "Plug", "plug"},
		{"NuGet", "nuget", "Acme.Log", "acme.log"},
		{" OPAM ", "opam", "dune", "dune"},
	} {
		ecosystem, ok := Ecosystem(c.given)
		if !ok || ecosystem != c.ecosystem {
			t.Errorf("%s is %q, want %s", c.given, ecosystem, c.ecosystem)
		}
		if got := PackageName(ecosystem, c.name); got != c.want {
			t.Errorf("%s: %s is %s, want %s", c.given, c.name, got, c.want)
		}
	}
	for _, unknown := range []string{"", "Debian:12", "no_package_manager", "npmx"} {
		if word, ok := Ecosystem(unknown); ok {
			t.Errorf("%q is %s", unknown, word)
		}
	}
}

// FuzzParse: each document is parsed or rejected, the result fits the tables, and each version has an answer.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.json")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, "1.2.3")
	}
	f.Add([]byte(`{"id":"MAL-1","modified":"2026-05-04T10:20:30Z","affected":[{"package":{"ecosystem":"Maven","name":"a:b"},"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"-----1"},{"fixed":"1..2-"}]}]}]}`), "1-.-")
	f.Fuzz(func(t *testing.T, raw []byte, version string) {
		advisory, err := Parse(raw)
		if err != nil {
			return
		}
		if advisory.ID == "" || advisory.Title == "" || len(advisory.Packages) == 0 || strings.ContainsAny(advisory.ID+advisory.Title, "\x00\n") {
			t.Fatalf("got %+v", advisory)
		}
		for _, p := range advisory.Packages {
			if again := PackageName(p.Ecosystem, p.Name); again != p.Name {
				t.Fatalf("%s: %q becomes %q", p.Ecosystem, p.Name, again)
			}
			Affects(p.Affected, p.Ecosystem, version)
		}
	})
}

// FuzzAffects: an invalid version only causes an error, and listed versions are affected.
func FuzzAffects(f *testing.F) {
	f.Add("pypi", "1!2.0.post1.dev3+local", "1.0")
	f.Add("maven", "1.0-alpha-1-SNAPSHOT", "-----1")
	f.Add("nuget", "1.0.0.0-Beta", "1")
	f.Add("gem", "1.0.a", "1..0")
	f.Fuzz(func(t *testing.T, ecosystem, version, other string) {
		affected := &storev1.AffectedVersions{Ranges: []*storev1.AffectedRange{{Events: []*storev1.AffectedEvent{
			{Introduced: other}, {Fixed: version}, {LastAffected: other + ".1"}, {Limit: version},
		}}}}
		Affects(affected, ecosystem, version)
		if trimmed := strings.TrimSpace(version); !Affects(&storev1.AffectedVersions{Versions: []string{other, trimmed}}, ecosystem, version) {
			t.Fatalf("%q is listed", version)
		}
	})
}

// TestWithinManyVersions uses one function for many versions, as filters do. It must give the same answers as a new
// function per version.
func TestWithinManyVersions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		versions := rapid.StringMatching(`v?[0-9]{1,2}(\.[0-9]{1,2}){0,3}([-.]?(rc|alpha|beta|SNAPSHOT|dev|post)[.]?[0-9]?)?|nothing|`)
		lower, upper := versions.Draw(t, "lower"), versions.Draw(t, "upper")
		within := Within(lower, upper)
		for range rapid.IntRange(2, 20).Draw(t, "versions") {
			ecosystem, version := rapid.SampledFrom(Ecosystems).Draw(t, "ecosystem"), versions.Draw(t, "version")
			if got, want := within(ecosystem, version), Within(lower, upper)(ecosystem, version); got != want {
				t.Fatalf("%s %q between %q and %q: %v, want %v", ecosystem, version, lower, upper, got, want)
			}
		}
	})
}
