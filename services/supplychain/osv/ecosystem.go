package osv

import (
	"regexp"
	"strings"
)

// Ecosystems are the words of the contract (facts 3.3) for where packages come from. mix takes its packages from hex.
var Ecosystems = []string{
	"npm", "pypi", "gomod", "cargo", "maven", "gem", "composer", "nuget", "pub", "swiftpm", "hex", "cocoapods", "mix", "opam",
}

// ecosystems maps what OSV and others call an ecosystem, in lower case, to the word of the contract.
var ecosystems = map[string]string{
	"go": "gomod", "golang": "gomod", "crates.io": "cargo", "rubygems": "gem", "packagist": "composer", "swifturl": "swiftpm", "mix": "hex",
}

func init() {
	for _, name := range Ecosystems {
		if ecosystems[name] == "" {
			ecosystems[name] = name
		}
	}
}

// Ecosystem returns the word of the contract for an ecosystem, spelled as there or as in OSV (PyPI, crates.io,
// "Maven:…"); ok is false for others.
func Ecosystem(name string) (word string, ok bool) {
	name, _, _ = strings.Cut(name, ":") // a part of an ecosystem, such as a Maven repository
	word, ok = ecosystems[strings.ToLower(strings.TrimSpace(name))]
	return word, ok
}

var pythonSeparators = regexp.MustCompile(`[-_.]+`)

// PackageName returns the one spelling of a package's name in an ecosystem, a word that Ecosystem returned: two names
// mean the same package exactly when their spellings are equal.
func PackageName(ecosystem, name string) string {
	name = strings.TrimSpace(name)
	switch ecosystem {
	case "pypi": // PEP 503
		return strings.ToLower(pythonSeparators.ReplaceAllString(name, "-"))
	case "cargo": // crates.io takes no two names that differ only so
		return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	case "npm", "nuget", "composer", "pub", "hex":
		return strings.ToLower(name)
	case "maven": // group:artifact, also written group/artifact
		return strings.ReplaceAll(name, "/", ":")
	case "gomod":
		return strings.TrimRight(name, "/")
	case "swiftpm": // a URL of a repository
		name = strings.ToLower(name)
		name = strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://")
		return strings.TrimSuffix(strings.TrimRight(name, "/"), ".git")
	}
	return name
}
