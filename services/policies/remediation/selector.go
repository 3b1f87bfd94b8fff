package remediation

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/remediationpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
)

// Selectors are the policies of a deployment by slug, for what names policies to select new findings of scans.
type Selectors map[string]selector

// selector is a policy that may be named.
type selector struct {
	active bool
	// unmet is the type of the condition that no new finding meets; empty if there is none.
	unmet string
	// never says why no finding at all meets the conditions; empty if some may.
	never string
}

// LoadSelectors reads all policies of the context's deployment in one query, and what they name with one for each kind.
func LoadSelectors(ctx context.Context, reader *ent.Client) (Selectors, error) {
	rows, err := reader.RemediationPolicy.Query().
		Select(remediationpolicy.FieldSlug, remediationpolicy.FieldActive, remediationpolicy.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	policies := make([]*policiesv1.RemediationPolicy, len(rows))
	for i, row := range rows {
		stored := &policiesv1.RemediationPolicy{}
		if err := proto.Unmarshal(row.Content, stored); err != nil {
			return nil, fmt.Errorf("remediation policy %s: %w", row.Slug, err)
		}
		policies[i] = Canonical(stored)
	}
	exist, err := namesOf(ctx, reader, policies)
	if err != nil {
		return nil, err
	}
	all := make(Selectors, len(rows))
	for i, row := range rows {
		filters := policies[i].GetFilters()
		all[row.Slug] = selector{active: row.Active, unmet: unmetByNew(filters), never: exist.never(filters)}
	}
	return all, nil
}

// Usable returns the slugs of the policies that can select new findings, sorted.
func (s Selectors) Usable() (slugs []string) {
	for _, slug := range slices.Sorted(maps.Keys(s)) {
		if s.Problem(slug) == "" {
			slugs = append(slugs, slug)
		}
	}
	return slugs
}

// Has reports whether there is a policy of the slug.
func (s Selectors) Has(slug string) bool {
	_, ok := s[slug]
	return ok
}

// Problem says why the policy of a slug selects no new finding; empty if it can.
func (s Selectors) Problem(slug string) string {
	policy, exists := s[slug]
	switch {
	case !exists:
		return fmt.Sprintf("there is no policy %q", slug)
	case !policy.active:
		return fmt.Sprintf("the policy %q is not active", slug)
	case policy.unmet != "":
		return fmt.Sprintf("no new finding meets the condition %s of the policy %q: use its action %s instead",
			policy.unmet, slug, ActionNotify)
	case policy.never != "":
		return fmt.Sprintf("no finding meets the conditions of the policy %q: %s", slug, policy.never)
	}
	return ""
}

// unmetByNew returns the type of a condition that keeps all findings out that a scan has just found first; empty if
// there is none. Such a finding is new, and has no verdict yet.
func unmetByNew(filters *policiesv1.RemediationPolicyFilters) string {
	unmet := func(c *policiesv1.RemediationPolicyCondition) bool {
		switch c.GetType() {
		case "finding_state":
			return slices.Contains(c.GetValues(), "new") == (c.GetMode() == ModeExclude)
		case "autotriage_verdict":
			return c.GetMode() != ModeExclude
		}
		return false
	}
	met := func(c *policiesv1.RemediationPolicyCondition) bool { return !unmet(c) }
	conditions := filters.GetConditions()
	if filters.GetMode() == ModeAny && slices.ContainsFunc(conditions, met) {
		return ""
	}
	if at := slices.IndexFunc(conditions, unmet); at >= 0 {
		return conditions[at].GetType()
	}
	return ""
}
