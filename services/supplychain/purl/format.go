package purl

import (
	"strings"

	packageurl "github.com/package-url/packageurl-go"
)

// types are the types of package URLs, by the API's words for ecosystems.
var types = map[string]string{
	"npm": packageurl.TypeNPM, "pypi": packageurl.TypePyPi, "gomod": packageurl.TypeGolang, "cargo": packageurl.TypeCargo, "maven": packageurl.TypeMaven,
	"gem": packageurl.TypeGem, "composer": packageurl.TypeComposer, "nuget": packageurl.TypeNuget, "pub": packageurl.TypePub,
	"swiftpm": packageurl.TypeSwift, "hex": packageurl.TypeHex, "mix": packageurl.TypeHex, "cocoapods": packageurl.TypeCocoapods, "opam": "opam",
}

// Format returns the package URL of a package that a scanner found, of the type "generic" without a known ecosystem.
func Format(ecosystem, name, version string) string {
	kind, known := types[ecosystem]
	if !known {
		kind = packageurl.TypeGeneric
	}
	separator := "/"
	switch kind {
	case packageurl.TypeMaven:
		separator = ":"
	case packageurl.TypeSwift:
		name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://"), ".git")
	}
	namespace, base := "", name
	if i := strings.LastIndex(name, separator); i >= 0 {
		namespace, base = name[:i], name[i+1:]
	}
	return packageurl.NewPackageURL(kind, namespace, base, version, nil, "").ToString()
}
