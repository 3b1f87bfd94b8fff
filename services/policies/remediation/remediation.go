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
	// New is true if the finding is not in the base of the scan (see docs/policies.md, "What is new").
	New bool
	// BlockMode says that the rule's mode fails the scan, and that the scanner leaves that to the server.
	BlockMode bool
	// Place is what only automations compare; nil for policies.
	Place *Place
}

// Decision is the result of the policies for the findings of a scan.
type Decision struct {
	// Block is true if the scan must fail.
	Block bool
	// Reason names the policies, and the mode of rules, with the number of their findings; empty if nothing blocks.
	Reason string
	// MatchBasedIDs are the ids of the blocking findings, sorted and distinct, without empty ones.
	MatchBasedIDs []string
	// Blockers are the policies that block, in their order, and then the mode of rules.
	Blockers []Blocker
}

// Blocker is a policy that blocks, or the mode of rules.
type Blocker struct {
	// Slug is the slug of the policy; empty for the mode of rules.
	Slug string
	// Name is its name.
	Name string
	// Reason is what the policy tells people; may be empty.
	Reason string
	// RuleMode says that it is the mode of rules, not a policy.
	RuleMode bool
	// Findings are the positions of its findings among the evaluated ones.
	Findings []int
}

// ruleMode is the name of the blocker for rules in mode block.
const ruleMode = "rules in mode block"

// Policy is a compiled policy.
type Policy struct {
	id         int64 // 0 if it is not stored
	slug, name string
	reason     string // shown to people with the name
	blocks     bool
	actions    []string
	acts       []Act
	version    string
	updatedAt  int64
	filter     Filter
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
		policy.id, policy.slug, policy.updatedAt = row.ID, row.Slug, row.UpdatedAt
		policies = append(policies, policy)
	}
	return policies, nil
}

// Compile compiles a policy. It returns an error for unknown words.
func Compile(from *policiesv1.RemediationPolicy) (Policy, error) {
	policy := Policy{name: from.GetName(), filter: Filter{Any: from.GetFilters().GetMode() == ModeAny}}
	for _, action := range from.GetActions() {
		policy.actions = append(policy.actions, action.GetType())
		switch action.GetType() {
		case ActionBlock:
			policy.blocks, policy.reason = true, strings.Join(strings.Fields(action.GetConfig()[ConfigReason]), " ")
		case ActionNotify, ActionTicket, ActionSetState:
			policy.acts = append(policy.acts, Act{action.GetType(), action.GetConfig()})
		}
	}
	if len(policy.acts) > 0 {
		policy.version = versionOf(from)
	}
	for _, c := range from.GetFilters().GetConditions() {
		at := slices.IndexFunc(conditionTypes, func(t ConditionType) bool { return t.Type == c.GetType() })
		if at < 0 {
			return Policy{}, fmt.Errorf("there is no condition type %q", c.GetType())
		}
		kind := conditionTypes[at]
		policy.filter.Conditions = append(policy.filter.Conditions, kind.Condition(c.GetValues(), false, c.GetMode() == ModeExclude))
	}
	return policy, nil
}

// Block evaluates the policies on the findings of a scan. The decision does not depend on the order of findings. The
// order of policies affects only the reason.
func Block(policies []Policy, findings []Facts) Decision {
	var ids, reasons []string
	byPolicy, byMode := make([][]int, len(policies)), []int(nil)
	for i := range findings {
		f := findings[i].Canonical()
		if resolved[f.Status] {
			continue
		}
		blocked := f.BlockMode
		if blocked {
			byMode = append(byMode, i)
		}
		for _, p := range applying(policies, &f) {
			if policies[p].blocks {
				byPolicy[p] = append(byPolicy[p], i)
				blocked = true
			}
		}
		if blocked && f.MatchBasedID != "" {
			ids = append(ids, f.MatchBasedID)
		}
	}
	var blockers []Blocker
	for p, found := range byPolicy {
		if len(found) > 0 {
			blockers = append(blockers, Blocker{Slug: policies[p].slug, Name: policies[p].name, Reason: policies[p].reason, Findings: found})
		}
	}
	if len(byMode) > 0 {
		blockers = append(blockers, Blocker{Name: ruleMode, RuleMode: true, Findings: byMode})
	}
	for _, b := range blockers {
		reasons = append(reasons, b.describe())
	}
	slices.Sort(ids)
	return Decision{Block: len(blockers) > 0, Reason: strings.Join(reasons, "; "), MatchBasedIDs: slices.Compact(ids), Blockers: blockers}
}

// describe explains why it blocks, for the log of the scan.
func (b *Blocker) describe() string {
	text := b.Name + ": " + countOf(len(b.Findings))
	if !b.RuleMode {
		text = "policy " + text
	}
	if b.Reason != "" {
		text += " (" + b.Reason + ")"
	}
	return text
}

func countOf(findings int) string {
	if findings == 1 {
		return "1 finding"
	}
	return fmt.Sprintf("%d findings", findings)
}

// resolved are the statuses of findings that need no action.
var resolved = map[string]bool{
	lifecycle.Fixed: true, lifecycle.Removed: true, lifecycle.Muted: true, lifecycle.Ignored: true,
}
