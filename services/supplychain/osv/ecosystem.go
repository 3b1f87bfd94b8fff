package osv

import (
	"regexp"
	"strings"
)

// Ecosystems are the contract's words for ecosystems (facts 3.3). mix uses packages of hex.
var Ecosystems = []string{
	"npm", "pypi", "gomod", "cargo", "maven", "gem", "composer", "nuget", "pub", "swiftpm", "hex", "cocoapods", "mix", "opam",
}

// ecosystems maps lower-case names of OSV and other sources to the contract's words.
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

// Ecosystem returns the contract's word for an ecosystem, given as such or in OSV's spelling (PyPI, crates.io,
// "Maven:…"); ok is false for others.
func Ecosystem(name string) (word string, ok bool) {
	name, _, _ = strings.Cut(name, ":") // a part of an ecosystem, such as a Maven repository
	word, ok = ecosystems[strings.ToLower(strings.TrimSpace(name))]
	return word, ok
}

var pythonSeparators = regexp.MustCompile(`[-_.]+`)

// PackageName normalises a package name in an ecosystem (a word from Ecosystem): two names are the same package exactly
// if the results are equal.
func PackageName(ecosystem, name string) string {
	name = strings.TrimSpace(name)
	switch ecosystem {
	case "pypi": // PEP 503
		return strings.ToLower(pythonSeparators.ReplaceAllString(name, "-"))
	case "cargo": // crates.io rejects names that differ only in this
		return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	case "npm", "nuget", "composer", "pub", "hex":
		return strings.ToLower(name)
	case "maven": // group:artifact, also written group/artifact
		return strings.ReplaceAll(name, "/", ":")
	case "gomod":
		return strings.TrimRight(name, "/")
	case "swiftpm": // a repository URL
		name = strings.ToLower(name)
		name = strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://")
		return strings.TrimSuffix(strings.TrimRight(name, "/"), ".git")
	}
	return name
}
