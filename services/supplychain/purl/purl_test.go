package purl_test

import (
	"testing"

	"github.com/palisade/palisade/services/supplychain/purl"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]purl.Package{
		"pkg:npm/%40types/node@20.1.0":                 {Type: "npm", Ecosystem: "npm", Name: "@types/node", Version: "20.1.0"},
		"pkg:npm/lodash":                               {Type: "npm", Ecosystem: "npm", Name: "lodash"},
		"pkg:maven/org.slf4j/slf4j-api@2.0.1?type=jar": {Type: "maven", Ecosystem: "maven", Name: "org.slf4j:slf4j-api", Version: "2.0.1"},
		"pkg:golang/github.com/acme/web@v1.2.3#cmd":    {Type: "golang", Ecosystem: "gomod", Name: "github.com/acme/web", Version: "v1.2.3"},
		"pkg:apk/alpine/zlib@1.2.11-r1?arch=x86_64":    {Type: "apk", Name: "zlib", Version: "1.2.11-r1"},
		"pkg:deb/debian/libssl3@3.0.11-1~deb12u2":      {Type: "deb", Name: "libssl3", Version: "3.0.11-1~deb12u2"},
		"pkg:pypi/Django@4.2":                          {Type: "pypi", Ecosystem: "pypi", Name: "django", Version: "4.2"},
		"pkg:gem/rails@7.0.0":                          {Type: "gem", Ecosystem: "gem", Name: "rails", Version: "7.0.0"},
		"pkg:cargo/serde@1.0.0":                        {Type: "cargo", Ecosystem: "cargo", Name: "serde", Version: "1.0.0"},
		"pkg:swift/github.com/apple/swift-nio@2.0.0":   {Type: "swift", Ecosystem: "swiftpm", Name: "github.com/apple/swift-nio", Version: "2.0.0"},
	} {
		if got, ok := purl.Parse(text); !ok || got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	for _, text := range []string{"", "lodash", "pkg:", "pkg:npm", "pkg:npm/", "urn:cdx:1/2#pkg", "https://acme.test"} {
		if got, ok := purl.Parse(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		purl, ecosystem, name, version string
		want                           bool
	}{
		{"pkg:npm/lodash@4.17.4", "npm", "lodash", "4.17.4", true},
		{"pkg:npm/lodash", "npm", "lodash", "4.17.4", true},
		{"pkg:npm/lodash@4.17.5", "npm", "lodash", "4.17.4", false},
		{"pkg:npm/lodash@4.17.4", "npm", "lodash", "", false},
		{"pkg:npm/lodash", "npm", "lodash.merge", "", false},
		{"pkg:npm/lodash", "pypi", "lodash", "", false},
		{"pkg:npm/lodash", "no_package_manager", "lodash", "1", true},
		{"pkg:npm/lodash?repository_url=x", "", "lodash", "1", true},
		{"pkg:npm/%40acme/lodash", "npm", "lodash", "", false},
		{"pkg:npm/lodash", "", "@acme/lodash", "", false},
		{"pkg:pypi/flask-sqlalchemy", "pypi", "Flask_SQLAlchemy", "", true},
		{"pkg:golang/golang.org/x/net@v0.1.0", "gomod", "golang.org/x/net", "0.1.0", true},
		{"pkg:maven/org.slf4j/slf4j-api", "maven", "org.slf4j:slf4j-api", "2", true},
		{"pkg:apk/alpine/zlib@1.2.11-r1?arch=x86_64", "no_package_manager", "zlib", "1.2.11-r1", true},
		{"pkg:apk/alpine/zlib@1.2.11-r1", "", "alpine/zlib", "1.2.11-r1", true},
		{"pkg:deb/debian/zlib", "npm", "zlib", "1", false},
	} {
		p, ok := purl.Parse(c.purl)
		if got := ok && p.Names(c.ecosystem, c.name, c.version); got != c.want {
			t.Errorf("%s and %s %s %s: %v", c.purl, c.ecosystem, c.name, c.version, got)
		}
	}
}

// FuzzParse checks that a package URL always names the package that it says.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"pkg:npm/%40types/node@20.1.0?a=b#c", "pkg:maven/a/b@1", "pkg:golang/a.b/c/d@v1", "pkg:apk/alpine/zlib", "pkg:x/%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := purl.Parse(text)
		if !ok {
			return
		}
		if p.Name == "" || p.Type == "" {
			t.Errorf("%q: %+v", text, p)
		}
		if !p.Names(p.Ecosystem, p.Name, p.Version) || p.Names(p.Ecosystem, p.Name+"x", p.Version) {
			t.Errorf("%q names not exactly %+v", text, p)
		}
	})
}
