package formats

import "regexp"

var (
	upperBound = regexp.MustCompile(`<\s*v?(\d[\w.+-]*)`)
	lowerBound = regexp.MustCompile(`(?:>=|\^|~|^=?)\s*v?(\d[\w.+-]*)`)
)

// maxVersions bounds the versions of one problem.
const maxVersions = 20

// below returns the versions that end a range of vulnerable versions: 4.3.1 of ">=4.0.0 <4.3.1".
func below(ranges string) []string { return matches(upperBound, ranges) }

// from returns the versions that begin a range of versions without the problem: 0.13.10 of ">=0.13.10, <0.14.0".
func from(ranges string) []string { return matches(lowerBound, ranges) }

func matches(pattern *regexp.Regexp, text string) (versions []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, maxVersions) {
		versions = append(versions, m[1])
	}
	return versions
}
