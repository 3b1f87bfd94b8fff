package osv

import (
	"cmp"
	"errors"
	"strings"

	"github.com/Masterminds/semver/v3"
	gem "github.com/aquasecurity/go-gem-version"
	pep440 "github.com/aquasecurity/go-pep440-version"
	maven "github.com/masahiro331/go-mvn-version"
)

// maxVersion is the maximum length of a compared version, in bytes. Real versions are shorter, and parsers are slow.
const maxVersion = 255

var errNoVersion = errors.New("not a version of this ecosystem")

// order returns an ecosystem's version comparison: negative if a comes before b. It returns an error for an invalid
// version.
func order(ecosystem string, semantic bool) func(a, b string) (int, error) {
	switch {
	case semantic:
		return parsed(semantically, (*semver.Version).Compare)
	case ecosystem == "pypi":
		return parsed(pep440.Parse, pep440.Version.Compare)
	case ecosystem == "maven":
		return parsed(maven.NewVersion, maven.Version.Compare)
	case ecosystem == "gem", ecosystem == "cocoapods", ecosystem == "nuget", ecosystem == "composer":
		return parsed(segments, gem.Version.Compare)
	case ecosystem == "opam": // as Debian orders them: sufficient for lists of malicious packages
		return func(a, b string) (int, error) {
			if a == b {
				return 0, nil
			}
			return 0, errNoVersion
		}
	}
	return parsed(semantically, (*semver.Version).Compare)
}

// semantically parses semantic versions. Most are strict, and strict parsing is much faster than tolerant parsing.
func semantically(version string) (*semver.Version, error) {
	if v, err := semver.StrictNewVersion(version); err == nil {
		return v, nil
	}
	return semver.NewVersion(version)
}

// segments parses versions of any number of parts, for gem, CocoaPods, NuGet and Composer. Unlike gem, NuGet and
// Composer ignore build metadata and letter case.
func segments(version string) (gem.Version, error) {
	version, _, _ = strings.Cut(strings.ToLower(version), "+")
	return gem.NewVersion(strings.TrimPrefix(version, "v"))
}

// parsed compares versions. It caches the last parsed b, because many versions are compared with one; it is not safe
// for concurrent use.
func parsed[V any](parse func(string) (V, error), compare func(a, b V) int) func(a, b string) (int, error) {
	var right V
	text, read := "", false
	return func(a, b string) (int, error) {
		if len(a) > maxVersion || len(b) > maxVersion {
			return 0, errNoVersion
		}
		left, err := parse(a)
		if err != nil {
			return 0, err
		}
		if !read || text != b {
			right, err = parse(b)
			if text, read = b, err == nil; err != nil {
				return 0, err
			}
		}
		return cmp.Compare(compare(left, right), 0), nil
	}
}
