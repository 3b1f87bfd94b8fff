package formats

import (
	"strings"
	"testing"
)

// TestGitLabSolutions: each scanner writes the fixed version into the solution in its own words.
func TestGitLabSolutions(t *testing.T) {
	for solution, want := range map[string]string{
		"Upgrade to version 4.17.21 or above.": "4.17.21",
		"Upgrade to versions 1.4.9, 2.0.1.":    "1.4.9",
		"Upgrade apt to 1.4.9":                 "1.4.9",
		"Upgrade apt from 1.4.8 to 1.4.9":      "1.4.9",
		"No solution provided":                 "",
	} {
		v := gitlabVulnerability{Solution: solution}
		if got := strings.Join(v.dependency().Fixed, ","); got != want {
			t.Errorf("%s: %q, want %q", solution, got, want)
		}
	}
}
