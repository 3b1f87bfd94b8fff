// Package position says what a finding of a vulnerable package means to others who use the software, as VEX documents
// do.
package position

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// Statuses of a product, in the words of OpenVEX.
const (
	Affected      = "affected"
	NotAffected   = "not_affected"
	Fixed         = "fixed"
	Investigating = "under_investigation"
)

// Position is what a finding says about the product.
type Position struct {
	Status string
	// Wrong says that a person found the finding to be wrong. Unreachable says that the code cannot run.
	Wrong, Unreachable bool
	// Accepted says that the risk is known, and nothing will be done about it.
	Accepted bool
	// Note is for people: why, or what to do.
	Note string
}

// Of translates a decision. After an accepted risk the product is affected, whatever its makers decided.
func Of(f *ent.Finding, content *storev1.FindingContent) Position {
	note := text(f.TriageComment)
	switch f.Status {
	case lifecycle.Fixed:
		return Position{Status: Fixed, Note: note}
	case lifecycle.Reviewing, lifecycle.ProvisionallyIgnored:
		return Position{Status: Investigating, Note: note}
	case lifecycle.Ignored:
		if f.IgnoredByPattern != nil && f.TriageState != lifecycle.Ignored {
			return Position{Status: Affected, Accepted: true, Note: "Accepted: " + pathignore.Reason(*f.IgnoredByPattern)}
		}
		if f.State == lifecycle.Muted && f.TriageState != lifecycle.Ignored {
			told := cmp.Or(content.GetSuppression().GetJustification(), content.GetSuppressionReason(), "no reason was given")
			return Position{Status: Affected, Accepted: true, Note: "Suppressed in the code: " + told}
		}
		if text(f.TriageReason) == "false_positive" {
			return Position{Status: NotAffected, Wrong: true, Unreachable: text(f.Exposure) == "unreachable", Note: note}
		}
		return Position{Status: Affected, Accepted: true, Note: cmp.Or(note, "Accepted: "+strings.ReplaceAll(text(f.TriageReason), "_", " "))}
	}
	return Position{Status: Affected, Note: cmp.Or(note, Advice(f, content))}
}

// FalsePositive begins the impact statement of a finding that a person found to be wrong. Why it is wrong is not known,
// so that no justification of OpenVEX would certainly be true.
const FalsePositive = "False positive"

// Impact is the impact statement of such a finding.
func Impact(note string) string {
	if note == "" {
		return FalsePositive
	}
	return FalsePositive + ": " + note
}

// CycloneDX returns the state, justification and response of CycloneDX; the last two may be empty.
func (p Position) CycloneDX() (state, justification, response string) {
	switch {
	case p.Wrong && p.Unreachable:
		return "not_affected", "code_not_reachable", ""
	case p.Wrong:
		return "false_positive", "", ""
	case p.Status == Fixed:
		return "resolved", "", ""
	case p.Status == Investigating:
		return "in_triage", "", ""
	case p.Accepted:
		return "exploitable", "", "will_not_fix"
	}
	return "exploitable", "", ""
}

// Advice is what to do about an affected package.
func Advice(f *ent.Finding, content *storev1.FindingContent) string {
	var versions []string
	for _, fix := range content.GetFixRecommendations() {
		versions = append(versions, strings.TrimSpace(cmp.Or(fix.GetPackage(), text(f.Package))+" "+fix.GetVersion()))
	}
	if len(versions) == 0 {
		return "No version with a fix is known."
	}
	return fmt.Sprintf("Update to %s.", strings.Join(versions, " or "))
}

// Since is when the position began to hold.
func Since(f *ent.Finding) time.Time {
	if f.TriagedAt != nil && f.Status != lifecycle.Fixed {
		return store.Time(*f.TriagedAt)
	}
	return store.Time(f.StateUpdatedAt)
}

// Vulnerability is the name of what the finding is about.
func Vulnerability(f *ent.Finding, content *storev1.FindingContent, ruleName string) string {
	return cmp.Or(content.GetVulnerabilityIdentifier(), text(f.Advisory), ruleName)
}

// Weaknesses are the numbers of weaknesses such as "CWE-89: SQL Injection". Other texts have none.
func Weaknesses(names []string) (numbers []int) {
	for _, name := range names {
		var n int
		if _, err := fmt.Sscanf(strings.ToUpper(name), "CWE-%d", &n); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// text is an optional column; empty if it is null.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
