package document

import (
	"fmt"
	"regexp"
	"strings"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

// comparison is one part of a range of versions. Scanners compare versions that are not of PEP 440 as texts.
var comparison = regexp.MustCompile(`^((==|!=|<=|>=|<|>)\s*[^,;\s)=<>|]+|===\s*[^,\s]+)$`)

// rangeProblem says why a scanner cannot read a range of versions; empty if it can. Scanners read ranges as the
// specifiers of Python packages: a part that they do not know ends the scan of each project that has the package.
func rangeProblem(text string) string {
	parts := 0
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		switch {
		case part == "":
			continue
		case comparison.MatchString(part), isCompatible(part):
			parts++
			continue
		}
		hint := ""
		switch {
		case strings.Contains(part, "||"):
			hint = "; write alternatives as items of depends-on-either"
		case strings.HasPrefix(part, "=") && !strings.HasPrefix(part, "=="):
			hint = "; write == for one version"
		case strings.HasPrefix(part, "^"):
			hint = "; write ^1.2 as >= 1.2, < 2"
		case strings.ContainsAny(part, " \t"):
			hint = "; put commas between comparisons"
		}
		return fmt.Sprintf("%q is not a comparison with ==, !=, <, <=, >, >= or ~= such as >= 1.0.0%s", clip(part), hint)
	}
	if parts == 0 {
		return "it has no comparison such as >= 1.0.0"
	}
	return ""
}

// isCompatible reports whether a part is a comparison that only PEP 440 has.
func isCompatible(part string) bool {
	_, err := pep440.NewSpecifiers(part)
	return err == nil && strings.HasPrefix(part, "~=") && !strings.Contains(part, "|")
}
