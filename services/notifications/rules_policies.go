package notifications

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/policies/remediation"
)

// namesPolicy reports whether one of the slugs is not a mode of rules: then it must be a remediation policy. Their
// slugs cannot be equal to the ones of modes.
func namesPolicy(slugs []string) bool {
	return slices.ContainsFunc(slugs, func(slug string) bool { return !isMode(slug) })
}

func isMode(slug string) bool {
	_, ok := policies[slug]
	return ok
}

// selectorsOf reads the remediation policies, if one of the rules may name one.
func selectorsOf(ctx context.Context, db *ent.Client, rows []*ent.NotificationRule) (remediation.Selectors, error) {
	if !slices.ContainsFunc(rows, func(row *ent.NotificationRule) bool { return namesPolicy(row.PolicySlugs) }) {
		return nil, nil
	}
	return remediation.LoadSelectors(ctx, db)
}

// checkPolicies refuses slugs by which a rule would select nothing. old is the rule that is replaced, or nil: the slugs
// that it has are kept, and config_error says what is wrong with them.
func checkPolicies(ctx context.Context, db *ent.Client, slugs []string, old *ent.NotificationRule) error {
	if !namesPolicy(slugs) {
		return nil
	}
	selectors, err := remediation.LoadSelectors(ctx, db)
	if err != nil {
		return err
	}
	for i, slug := range slugs {
		if isMode(slug) || old != nil && slices.Contains(old.PolicySlugs, slug) {
			continue
		}
		field := fmt.Sprintf("policy_slugs[%d]", i)
		if problem := selectors.Problem(slug); selectors.Has(slug) && problem != "" {
			return apierr.InvalidArgument("notificationRule."+field, "%s would select nothing: %s", field, problem)
		} else if problem != "" {
			known := append(slices.Sorted(maps.Keys(policies)), selectors.Usable()...)
			return apierr.InvalidArgument("notificationRule."+field, "%s must be one of %s, got %s",
				field, strings.Join(known, ", "), apierr.Quote(slug))
		}
	}
	return nil
}

// policiesText is the config_error text about policies that select nothing; "" if there are none.
func policiesText(slugs []string, selectors remediation.Selectors) string {
	var parts []string
	for _, slug := range slugs {
		if isMode(slug) {
			continue
		}
		if problem := selectors.Problem(slug); problem != "" {
			parts = append(parts, problem)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "policy_slugs has policies for which the rule sends nothing: " + strings.Join(parts, "; ")
}
