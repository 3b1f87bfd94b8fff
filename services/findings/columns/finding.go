package columns

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/findings/lifecycle"
)

// Status is the status of a finding.
type Status uint8

// The statuses of package lifecycle. None is before the finding was found.
const (
	None Status = iota
	Open
	Reviewing
	Fixing
	Ignored
	ProvisionallyIgnored
	Fixed
	Removed
)

var statuses = map[string]Status{
	lifecycle.Open: Open, lifecycle.Reviewing: Reviewing, lifecycle.Fixing: Fixing, lifecycle.Ignored: Ignored,
	lifecycle.ProvisionallyIgnored: ProvisionallyIgnored, lifecycle.Fixed: Fixed, lifecycle.Removed: Removed,
}

// TransitionSQL is the SQL expression that packs the columns at and to_status of an event.
func TransitionSQL() string {
	var b strings.Builder
	b.WriteString("at / 1000000 * 8 + CASE to_status")
	for _, word := range slices.Sorted(maps.Keys(statuses)) {
		fmt.Fprintf(&b, " WHEN '%s' THEN %d", word, statuses[word])
	}
	return b.String() + " ELSE 0 END"
}

// TransitionOf unpacks the value of TransitionSQL.
func TransitionOf(packed int64) Transition {
	return Transition{At: uint32(max(0, min(packed>>3, 1<<32-1))), Status: Status(packed & 7)}
}

// Open reports whether a finding with this status is in the backlog.
func (s Status) Open() bool { return s >= Open && s <= Fixing }

// Attr packs all attributes of a finding except place and rule into one number, so that one table lookup decides
// whether a filter matches.
type Attr uint16

// attribute is a part of an Attr. Its words are numbered from 1 in this order; 0 is any other word or null.
type attribute struct {
	column string
	shift  int
	bits   int
	words  []string
}

// The parts of an Attr.
var (
	issueType  = attribute{"issue_type", 0, 3, []string{"sast", "ai_sast", "sca", "secrets"}}
	severity   = attribute{"severity", 3, 3, []string{"low", "medium", "high", "critical"}}
	exposure   = attribute{"exposure", 6, 3, []string{"reachable", "always_reachable", "conditionally_reachable", "unreachable"}}
	validation = attribute{"validation_state", 9, 3, []string{"valid", "invalid", "error"}}
	verdict    = attribute{"autotriage_verdict", 12, 2, []string{"true_positive", "false_positive"}}
	policy     = attribute{"policy_mode", 14, 2, []string{"rule-board-pr-comments", "rule-board-block"}}
)

// Attrs is the number of values of an Attr.
const Attrs = 1 << 16

func (a attribute) of(attr Attr) string {
	n := int(attr>>a.shift) & (1<<a.bits - 1)
	if n == 0 || n > len(a.words) {
		return ""
	}
	return a.words[n-1]
}

func (a attribute) number(word string) Attr {
	for i, w := range a.words {
		if w == word {
			return Attr(i+1) << a.shift
		}
	}
	return 0
}

// Words is an unpacked Attr in the words of the findings table; "" is a word that reports do not distinguish.
type Words struct{ IssueType, Severity, Exposure, Validation, Verdict, Policy string }

// Attr packs the words.
func (w Words) Attr() Attr {
	return issueType.number(w.IssueType) | severity.number(w.Severity) | exposure.number(w.Exposure) |
		validation.number(w.Validation) | verdict.number(w.Verdict) | policy.number(w.Policy)
}

// Words unpacks an Attr.
func (a Attr) Words() Words {
	return Words{issueType.of(a), severity.of(a), exposure.of(a), validation.of(a), verdict.of(a), policy.of(a)}
}

// Product is the contract's group of issue types.
type Product int

// The products.
const (
	NoProduct Product = iota
	Code
	SCA
	Secrets
)

// Product returns the finding's product.
func (a Attr) Product() Product {
	switch issueType.of(a) {
	case "sast", "ai_sast":
		return Code
	case "sca":
		return SCA
	case "secrets":
		return Secrets
	}
	return NoProduct
}

// Severity numbers the severities from low (1) to critical (4).
func (a Attr) Severity() int { return int(a>>severity.shift) & (1<<severity.bits - 1) }

// Shown reports whether a policy shows the finding to developers.
func (a Attr) Shown() bool { return policy.of(a) != "" }
