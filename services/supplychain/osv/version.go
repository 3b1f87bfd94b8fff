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

// maxVersion bounds the versions that are compared, in bytes: none is longer in practice, and parsers take their time.
const maxVersion = 255

var errNoVersion = errors.New("not a version of this ecosystem")

// order compares versions as an ecosystem does: negative when a comes before b. The error says that one is no version.
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
	case ecosystem == "opam": // as Debian orders them: no list of malicious packages needs it
		return func(a, b string) (int, error) {
			if a == b {
				return 0, nil
			}
			return 0, errNoVersion
		}
	}
	return parsed(semantically, (*semver.Version).Compare)
}

// semantically reads semantic versions: most are strict, which is read a lot faster than what is merely like one.
func semantically(version string) (*semver.Version, error) {
	if v, err := semver.StrictNewVersion(version); err == nil {
		return v, nil
	}
	return semver.NewVersion(version)
}

// segments reads versions of any number of parts, as gem, CocoaPods, NuGet and Composer have them. NuGet and Composer
// differ from gem in build metadata, which does not count, and in the case of letters.
func segments(version string) (gem.Version, error) {
	version, _, _ = strings.Cut(strings.ToLower(version), "+")
	return gem.NewVersion(strings.TrimPrefix(version, "v"))
}

// parsed compares versions. It keeps the last b, so that many are compared with the same one; it is not for several
// goroutines.
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
