package policies

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/policies/remediation"
)

// A caller who is limited to teams reads partial bundles: they lack the projects, tags and rules that the caller does
// not see, and say so. Comparisons by such a caller leave the same out on both sides. Whether a bundle is partial
// depends on the caller alone, so it does not tell whether anything is hidden.

const (
	// partialBundle is the code of the warning that a comparison is partial.
	partialBundle = "PARTIAL"
	// notCompared is the code of the warning about one name that is left out.
	notCompared = "NOT_COMPARED"
)

// hidden are the kinds of objects that a limited caller may not see.
var hidden = map[remediation.Reference]bool{remediation.RefProject: true, remediation.RefTag: true, remediation.RefRule: true}

// visible are the names that the caller sees, by kind.
type visible map[remediation.Reference]map[string]bool

// newChecker returns a checker for the caller.
func newChecker(ctx context.Context) *checker {
	_, limited := tenant.Teams(ctx)
	c := &checker{projects: map[string]string{}, limited: limited}
	if limited {
		c.notCompared = append(c.notCompared, &policiesv1.BundleWarning{
			Code:    partialBundle,
			Message: "you do not see all projects: projects, tags and rules that you do not see are not compared",
		})
	}
	return c
}

// partial refuses the bundle of a limited caller from one who sees everything: it lacks what its reader did not see.
func (c *checker) partial(is bool) {
	if is && !c.limited {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, "partial", "true",
			"partial: somebody who does not see all projects has read this bundle, so it may lack policies of other projects; read it again as an administrator")
	}
}

// leaveOut adds a warning about a name that the caller does not see.
func (c *checker) leaveOut(field, kind, name string) {
	c.notCompared = append(c.notCompared, &policiesv1.BundleWarning{
		Code: notCompared, PolicySlug: c.slug,
		Message: fmt.Sprintf("%s: there is no %s %s, or you do not see it; it is not compared", field, kind, apierr.Quote(name)),
	})
}

// hideable reports whether the values of a condition name objects that a limited caller may not see.
func hideable(condition *policiesv1.RemediationPolicyCondition) bool {
	kind, _ := remediation.ConditionTypeOf(condition.GetType())
	return hidden[kind.Reference]
}

// redact removes the names that the caller does not see from the conditions of policies.
func (v visible) redact(policies []*policiesv1.RemediationPolicy) {
	for _, policy := range policies {
		for _, condition := range policy.GetFilters().GetConditions() {
			if !hideable(condition) {
				continue
			}
			kind, _ := remediation.ConditionTypeOf(condition.GetType())
			condition.Values = slices.DeleteFunc(condition.GetValues(), func(value string) bool {
				return !v[kind.Reference][strings.TrimSpace(value)]
			})
		}
	}
}

// loadVisible reads the policies of the context's deployment as the caller sees them.
func loadVisible(ctx context.Context, reader *ent.Client) (*state, error) {
	all, err := load(ctx, reader)
	c := newChecker(ctx)
	if err != nil || !c.limited {
		return all, err
	}
	policies := make([]*policiesv1.RemediationPolicy, len(all.policies))
	for i, policy := range all.policies {
		policies[i] = proto.CloneOf(policy)
		for _, condition := range policy.GetFilters().GetConditions() {
			if !hideable(condition) {
				continue
			}
			kind, _ := remediation.ConditionTypeOf(condition.GetType())
			for _, value := range condition.GetValues() {
				c.named = append(c.named, named{reference: kind.Reference, value: strings.TrimSpace(value)})
			}
		}
	}
	seen, err := c.references(ctx, reader)
	if err != nil {
		return nil, err
	}
	seen.redact(policies)
	s := newState(policies)
	s.partial, s.version = true, partialVersion(s.version)
	return s, nil
}

// partialVersion is the version of what a limited caller sees. It never equals the version of a whole bundle.
func partialVersion(version string) string {
	return version + "-" + strings.ToLower(partialBundle)
}
