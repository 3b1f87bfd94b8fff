// Package remediation evaluates a deployment's remediation policies on findings: it decides whether a scan fails.
// vocabulary.go has the words of policies.
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

// Facts are the properties of a finding that conditions compare, in the tables' words and any case. An empty property
// matches no value.
type Facts struct {
	// MatchBasedID is the identity for the answer to scanners; may be empty.
	MatchBasedID string
	// Product is code, supply_chain or secrets, or the type of the finding: sast, ai_sast, sca.
	Product string
	// Severity is critical, high, medium or low; Confidence high, medium or low.
	Severity, Confidence string
	// RuleName is the rule's canonical name, Category its category, Project the project's name.
	RuleName, Category, Project string
	// Tags are the project's tags.
	Tags []string
	// Reachability is the exposure of supply-chain findings, ValidationState the state of secrets, Verdict the verdict of
	// autotriage.
	Reachability, ValidationState, Verdict string
	// Status is a status of package lifecycle. Findings that are gone or that a person ignored never block. Findings that
	// only autotriage ignored still block (contract facts, section 4).
	Status string
	// New is true if the finding did not exist before the scan.
	New bool
}

// Decision is the result of the policies for the findings of a scan.
type Decision struct {
	// Block is true if the scan must fail.
	Block bool
	// Reason names the policies with the number of their findings; empty if nothing blocks.
	Reason string
	// MatchBasedIDs are the ids of the blocking findings, sorted and distinct, without empty ones.
	MatchBasedIDs []string
}

// Policy is a compiled policy.
type Policy struct {
	name       string
	reason     string // shown to people with the name
	blocks     bool
	any        bool
	conditions []condition
}

// condition matches findings with a word among values, or without any if exclude is set.
type condition struct {
	words   func(*Facts) []string
	values  map[string]bool
	exclude bool
}

// Load reads the active policies of the context's deployment in one query.
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

// Compile compiles a policy. It returns an error for unknown words.
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

// matches reports whether the policy applies to the finding. The words of f are canonical.
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

// Block evaluates the policies on the findings of a scan. The result does not depend on the order of findings. The
// order of policies affects only the reason.
func Block(policies []Policy, findings []Facts) Decision {
	var ids, reasons []string
	counts := make([]int, len(policies))
	for i := range findings {
		f := canonical(findings[i])
		if resolved[f.Status] {
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

// describe explains why the policy blocks, for the log of the scan.
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

// resolved are the statuses of findings that need no action.
var resolved = map[string]bool{
	lifecycle.Fixed: true, lifecycle.Removed: true, lifecycle.Muted: true, lifecycle.Ignored: true,
}
