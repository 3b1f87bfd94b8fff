// Package purl reads package URLs (https://github.com/package-url/purl-spec), and compares the packages that they name.
package purl

import (
	"strings"

	packageurl "github.com/package-url/packageurl-go"

	"github.com/palisade/palisade/services/supplychain/osv"
)

// Package is what a package URL says, without qualifiers and subpath.
type Package struct {
	// Type is the URL's own word, such as "deb". Ecosystem is the API's, such as "npm", or empty.
	Type, Ecosystem string
	// Name is the full name as the ecosystem writes it: "@types/node", "org.slf4j:slf4j-api", "github.com/acme/web".
	Name    string
	Version string
}

// Parse reads a package URL.
func Parse(text string) (p Package, ok bool) {
	if !strings.HasPrefix(text, "pkg:") {
		return p, false
	}
	url, err := packageurl.FromString(text)
	if err != nil || url.Name == "" {
		return p, false
	}
	p.Type, p.Name, p.Version = url.Type, url.Name, url.Version
	p.Ecosystem, _ = osv.Ecosystem(url.Type)
	if url.Type == packageurl.TypeSwift {
		p.Ecosystem = "swiftpm"
	}
	switch url.Type {
	case packageurl.TypeDebian, packageurl.TypeRPM, packageurl.TypeApk, packageurl.TypeAlpm: // the namespace is the distribution
	case packageurl.TypeMaven:
		p.Name = join(url.Namespace, ":", url.Name)
	default:
		p.Name = join(url.Namespace, "/", url.Name)
	}
	return p, true
}

func join(namespace, separator, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + separator + name
}

// Names reports whether the package URL is about a package that a scanner found. ecosystem and version may be empty.
// Without a version the URL is about all versions; with one, only about findings of exactly this version.
func (p Package) Names(ecosystem, name, version string) bool {
	if ecosystem == "no_package_manager" {
		ecosystem = ""
	}
	switch {
	case ecosystem != "" && ecosystem != p.Ecosystem:
		return false
	case p.Version != "" && bare(p.Version) != bare(version):
		return false
	}
	want, have := osv.PackageName(p.Ecosystem, p.Name), osv.PackageName(p.Ecosystem, name)
	// Tools that do not know the ecosystem of a system's package write the distribution before its name.
	return want == have || p.Ecosystem == "" && ecosystem == "" && strings.HasSuffix(have, "/"+want)
}

// bare is a version without the "v" of Go modules.
func bare(version string) string { return strings.TrimPrefix(version, "v") }
