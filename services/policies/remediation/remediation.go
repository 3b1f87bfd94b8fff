// Package remediation decides what the remediation policies of a deployment mean for findings: which of them make a
// scan fail. The words of policies are in vocabulary.go.
package remediation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/remediationpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// Facts are what conditions compare. Words are those of the tables, in any case; empty means that the finding has no
// such property: it is none of any values then.
type Facts struct {
	// MatchBasedID is the identity that scanners know, for the answer to them; may be empty.
	MatchBasedID string
	// Product is code, supply_chain or secrets, or the type of the finding: sast, ai_sast, sca.
	Product string
	// Severity is critical, high, medium or low; Confidence high, medium or low.
	Severity, Confidence string
	// RuleName is the canonical name of the rule, Category the rule's, Project the name of the project.
	RuleName, Category, Project string
	// Tags are those of the project.
	Tags []string
	// Reachability is the exposure of supply-chain findings, ValidationState the state of secrets, Verdict that of
	// autotriage.
	Reachability, ValidationState, Verdict string
	// Status is the one of package lifecycle. Findings that are gone or that a person ignored never block; those that only
	// autotriage ignored still do (contract facts, section 4).
	Status string
	// New is true for findings that were not there before the scan.
	New bool
}

// Decision is what policies say about the findings of a scan.
type Decision struct {
	// Block is true if the scan should fail.
	Block bool
	// Reason names the policies and counts their findings; empty if nothing blocks.
	Reason string
	// MatchBasedIDs are those of the blocking findings, sorted, each once; findings without one are not among them.
	MatchBasedIDs []string
}

// Policy is a policy that is ready to be asked.
type Policy struct {
	name       string
	reason     string // what people are told beside the name
	blocks     bool
	any        bool
	conditions []condition
}

// condition holds for findings one of whose words is among values, or none if exclude.
type condition struct {
	words   func(*Facts) []string
	values  map[string]bool
	exclude bool
}

// Load reads the active policies of the deployment of ctx, in one query.
func Load(ctx context.Context, reader *ent.Client) ([]Policy, error) {
	rows, err := reader.RemediationPolicy.Query().Where(remediationpolicy.Active(true)).
		Order(ent.Asc(remediationpolicy.FieldPosition), ent.Asc(remediationpolicy.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	policies := make([]Policy, 0, len(rows))
	for _, row := range rows {
		stored := &policiesv1.RemediationPolicy{}
		if err := proto.Unmarshal(row.Content, stored); err != nil {
			return nil, fmt.Errorf("remediation policy %s: %w", row.Slug, err)
		}
		policy, err := Compile(stored)
		if err != nil {
			return nil, fmt.Errorf("remediation policy %s: %w", row.Slug, err)
		}
		policies = append(policies, policy)
	}
	return policies, nil
}

// Compile makes a policy ready to be asked. It fails on words that the vocabulary does not have.
func Compile(from *policiesv1.RemediationPolicy) (Policy, error) {
	policy := Policy{name: from.GetName(), any: from.GetFilters().GetMode() == ModeAny}
	for _, action := range from.GetActions() {
		if action.GetType() == ActionBlock {
			policy.blocks, policy.reason = true, strings.Join(strings.Fields(action.GetConfig()[ConfigReason]), " ")
		}
	}
	for _, c := range from.GetFilters().GetConditions() {
		at := slices.IndexFunc(conditionTypes, func(t ConditionType) bool { return t.Type == c.GetType() })
		if at < 0 {
			return Policy{}, fmt.Errorf("there is no condition type %q", c.GetType())
		}
		kind := conditionTypes[at]
		compiled := condition{words: kind.words, values: map[string]bool{}, exclude: c.GetMode() == ModeExclude}
		for _, value := range c.GetValues() {
			compiled.values[kind.Canonical(value)] = true
		}
		policy.conditions = append(policy.conditions, compiled)
	}
	return policy, nil
}

// matches reports whether the policy is about the finding. The words of f are canonical.
func (p *Policy) matches(f *Facts) bool {
	for i := range p.conditions {
		if p.conditions[i].holds(f) == p.any {
			return p.any
		}
	}
	return !p.any
}

func (c *condition) holds(f *Facts) bool {
	return slices.ContainsFunc(c.words(f), func(word string) bool { return word != "" && c.values[word] }) != c.exclude
}

// Block asks the policies about the findings of a scan. The answer depends on neither the order of the findings nor,
// but for the order in the reason, that of the policies.
func Block(policies []Policy, findings []Facts) Decision {
	var ids, reasons []string
	counts := make([]int, len(policies))
	for i := range findings {
		f := canonical(findings[i])
		if decided[f.Status] {
			continue
		}
		blocked := false
		for p := range policies {
			if policies[p].blocks && policies[p].matches(&f) {
				counts[p]++
				blocked = true
			}
		}
		if blocked && f.MatchBasedID != "" {
			ids = append(ids, f.MatchBasedID)
		}
	}
	for p, n := range counts {
		if n > 0 {
			reasons = append(reasons, policies[p].describe(n))
		}
	}
	slices.Sort(ids)
	return Decision{Block: len(reasons) > 0, Reason: strings.Join(reasons, "; "), MatchBasedIDs: slices.Compact(ids)}
}

// describe says why the policy blocks, for the person who reads the log of the scan.
func (p *Policy) describe(findings int) string {
	text := fmt.Sprintf("policy %s: %d finding", p.name, findings)
	if findings != 1 {
		text += "s"
	}
	if p.reason != "" {
		text += " (" + p.reason + ")"
	}
	return text
}

// decided are the statuses of findings that ask for nothing any more.
var decided = map[string]bool{
	lifecycle.Fixed: true, lifecycle.Removed: true, lifecycle.Muted: true, lifecycle.Ignored: true,
}
