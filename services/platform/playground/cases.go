package playground

import (
	"bufio"
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Case is a comment in the code that expects a result of a rule on the next line of code, or none.
type Case struct {
	MustMatch bool
	Line      int // from 1
	Rule      string
	Passed    bool
}

// comment matches "# ruleid: a, b" and "// ok: a", with the comment signs of most languages.
var comment = regexp.MustCompile(`(?:#|//|--|;|%|/\*|<!--|\(\*)\s*(ruleid|ok)\s*:\s*([\w./-]+(?:\s*,\s*[\w./-]+)*)`)

// maxCases bounds the cases of a piece of code.
const maxCases = 10_000

// Cases checks the expectations in the code against the engine's output.
func Cases(target []byte, output json.RawMessage) []Case {
	found := resultsOf(output)
	var cases, waiting []Case
	lines := bufio.NewScanner(bytes.NewReader(target))
	lines.Buffer(nil, len(target)+1)
	for n := 1; lines.Scan(); n++ {
		if match := comment.FindStringSubmatch(lines.Text()); match != nil {
			for rule := range strings.SplitSeq(match[2], ",") {
				waiting = append(waiting, Case{MustMatch: match[1] == "ruleid", Rule: strings.TrimSpace(rule)})
			}
			continue
		}
		for _, c := range waiting {
			c.Line = n
			c.Passed = c.MustMatch == slices.ContainsFunc(found[n], c.isBy)
			cases = append(cases, c)
		}
		if waiting = nil; len(cases) >= maxCases {
			break
		}
	}
	return cases
}

// isBy reports whether the rule has this id in the output. Engines put the path of the rule's file before it.
func (c *Case) isBy(id string) bool { return id == c.Rule || strings.HasSuffix(id, "."+c.Rule) }

// resultsOf returns the ids of the rules with a result on each line.
func resultsOf(output json.RawMessage) map[int][]string {
	var answer struct {
		Results []struct {
			Rule  string `json:"check_id"`
			Start struct{ Line int }
		}
	}
	if json.Unmarshal(output, &answer) != nil {
		return nil // another engine's words
	}
	found := map[int][]string{}
	for _, result := range answer.Results {
		found[result.Start.Line] = append(found[result.Start.Line], result.Rule)
	}
	return found
}
