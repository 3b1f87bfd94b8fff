package policies

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/policies/remediation"
)

// reservedPrefix is the slug prefix of policies that the server manages: the modes of rules (contract, policy modes).
const reservedPrefix = "rule-board-"

// maxNamed is the maximum number of problems in the error text of an apply; a dry run lists all.
const maxNamed = 10

var slugForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// checker collects the problems of a bundle.
type checker struct {
	problems []*policiesv1.BundleValidationError
	slug     string // of the current policy
	named    []named
}

// named is a value that must exist in the database.
type named struct {
	reference          remediation.Reference
	value, slug, field string
}

// check returns the policies of a bundle in stored form, or all its problems.
func check(ctx context.Context, reader *ent.Client, deploymentSlug string, bundle *policiesv1.RemediationPoliciesBundle) ([]*policiesv1.RemediationPolicy, []*policiesv1.BundleValidationError, error) {
	c := &checker{}
	if got := bundle.GetDeploymentSlug(); got != "" && got != deploymentSlug {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, "deployment_slug", got, "deployment_slug must be %q or left out", deploymentSlug)
	}
	policies := make([]*policiesv1.RemediationPolicy, 0, len(bundle.GetPolicies()))
	seen := map[string]bool{}
	for i, from := range bundle.GetPolicies() {
		policy := c.policy(fmt.Sprintf("policies[%d]", i), from)
		if slug := policy.GetSlug(); seen[slug] {
			c.add(errorsv1.Reason_REASON_DUPLICATE_SLUG, fmt.Sprintf("policies[%d].slug", i), slug, "two policies have the slug %s", apierr.Quote(slug))
		} else if slug != "" {
			seen[slug] = true
		}
		policies = append(policies, policy)
	}
	if err := c.references(ctx, reader); err != nil {
		return nil, nil, err
	}
	return policies, c.problems, nil
}

func (c *checker) add(reason errorsv1.Reason, field, got, format string, args ...any) {
	place := map[string]string{"field": field}
	if got != "" {
		place["value"] = got
	}
	c.problems = append(c.problems, &policiesv1.BundleValidationError{
		Code: apierr.ReasonName(reason), Message: fmt.Sprintf(format, args...), PolicySlug: c.slug, Context: place,
	})
}

// required adds a problem if a field is empty.
func (c *checker) required(field, got string) bool {
	if got == "" {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field, "", "%s is required", field)
	}
	return got != ""
}

// word adds a problem if a field has none of the allowed words.
func (c *checker) word(field, got string, words ...string) {
	if c.required(field, got) && !slices.Contains(words, got) {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field, got, "%s must be one of %s; got %s", field, strings.Join(words, ", "), apierr.Quote(got))
	}
}

func (c *checker) policy(field string, from *policiesv1.RemediationPolicy) *policiesv1.RemediationPolicy {
	policy := &policiesv1.RemediationPolicy{
		Slug: from.GetSlug(), Name: strings.TrimSpace(from.GetName()), Description: strings.TrimSpace(from.GetDescription()), Active: from.GetActive(),
		Filters: &policiesv1.RemediationPolicyFilters{Mode: from.GetFilters().GetMode()},
	}
	if policy.Slug == "" {
		policy.Slug = slugOf(policy.GetName())
	}
	c.slug = policy.GetSlug()
	defer func() { c.slug = "" }()
	switch {
	case !c.required(field+".name", policy.GetName()):
	case !slugForm.MatchString(policy.GetSlug()):
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field+".slug", policy.GetSlug(),
			"%s.slug must be lower-case letters and digits with single hyphens between them; got %s", field, apierr.Quote(policy.GetSlug()))
	}
	if strings.HasPrefix(policy.GetSlug(), reservedPrefix) {
		c.add(errorsv1.Reason_REASON_RESERVED_SLUG, field+".slug", policy.GetSlug(), "%s.slug %s is reserved: slugs that begin with %s belong to the server",
			field, apierr.Quote(policy.GetSlug()), reservedPrefix)
	}
	if from.GetFilters() == nil {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field+".filters", "", "%s.filters is required", field)
	} else {
		c.filters(field+".filters", from.GetFilters(), policy.GetFilters())
	}
	c.actions(field+".actions", from, policy)
	return policy
}

// slugOf derives a slug from a name: each character other than a to z and digits becomes a hyphen.
func slugOf(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(parts, "-")
}

func (c *checker) filters(field string, from, to *policiesv1.RemediationPolicyFilters) {
	c.word(field+".mode", from.GetMode(), remediation.ModeAll, remediation.ModeAny)
	if from.GetMode() == remediation.ModeAny && len(from.GetConditions()) == 0 {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field+".conditions", "", "%s.conditions must not be empty where the mode is any", field)
	}
	kinds := remediation.ConditionTypes()
	for i, condition := range from.GetConditions() {
		place := fmt.Sprintf("%s.conditions[%d]", field, i)
		out := &policiesv1.RemediationPolicyCondition{Type: condition.GetType(), Mode: condition.GetMode()}
		to.Conditions = append(to.GetConditions(), out)
		if out.GetMode() == "" {
			out.Mode = remediation.ModeInclude
		}
		c.word(place+".mode", out.GetMode(), remediation.ModeInclude, remediation.ModeExclude)
		if len(condition.GetValues()) == 0 {
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place+".values", "", "%s.values must not be empty", place)
		}
		at := slices.IndexFunc(kinds, func(t remediation.ConditionType) bool { return t.Type == condition.GetType() })
		if at < 0 {
			c.unsupported(errorsv1.Reason_REASON_UNSUPPORTED_CONDITION_TYPE, place+".type", condition.GetType(), wordsOf(kinds, func(t remediation.ConditionType) string { return t.Type }))
			continue
		}
		out.Values = c.values(place, kinds[at], condition.GetValues())
	}
}

// values returns the values of a condition in stored form, without duplicates.
func (c *checker) values(field string, kind remediation.ConditionType, from []string) []string {
	var values []string
	for i, value := range from {
		place := fmt.Sprintf("%s.values[%d]", field, i)
		value = kind.Canonical(strings.TrimSpace(value))
		switch {
		case !c.required(place, value), slices.Contains(values, value):
			continue
		case len(kind.Values) > 0:
			c.word(place, value, kind.Values...)
		case kind.Reference != remediation.RefNone:
			c.named = append(c.named, named{reference: kind.Reference, value: value, slug: c.slug, field: place})
		}
		values = append(values, value)
	}
	return values
}

func (c *checker) actions(field string, from, to *policiesv1.RemediationPolicy) {
	if len(from.GetActions()) == 0 {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field, "", "%s must not be empty", field)
	}
	kinds, seen := remediation.ActionTypes(), map[string]bool{}
	for i, action := range from.GetActions() {
		place := fmt.Sprintf("%s[%d]", field, i)
		to.Actions = append(to.GetActions(), &policiesv1.RemediationPolicyAction{Type: action.GetType(), Config: action.GetConfig()})
		at := slices.IndexFunc(kinds, func(t remediation.ActionType) bool { return t.Type == action.GetType() })
		if at < 0 {
			c.unsupported(errorsv1.Reason_REASON_UNSUPPORTED_ACTION_TYPE, place+".type", action.GetType(), wordsOf(kinds, func(t remediation.ActionType) string { return t.Type }))
			continue
		}
		if seen[action.GetType()] {
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place+".type", action.GetType(), "%s: the policy has the action %s already", place, action.GetType())
		}
		seen[action.GetType()] = true
		c.config(place+".config", kinds[at], action.GetConfig())
	}
}

// unsupported adds a problem about an unknown type.
func (c *checker) unsupported(reason errorsv1.Reason, field, got string, words []string) {
	c.add(reason, field, got, "%s must be one of %s; got %s", field, strings.Join(words, ", "), apierr.Quote(got))
}

func wordsOf[T any](kinds []T, word func(T) string) []string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		words[i] = word(kind)
	}
	return words
}

func (c *checker) config(field string, kind remediation.ActionType, got map[string]string) {
	for _, key := range kind.Requires {
		c.required(field+"."+key, got[key])
	}
	for _, key := range sortedKeys(got) {
		if !slices.Contains(kind.Requires, key) && !slices.Contains(kind.Optional, key) {
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field+"."+key, got[key], "%s: the action %s has no setting %s", field, kind.Type, apierr.Quote(key))
		}
	}
}

// bundleError builds the error of an apply, with the code of the first problem.
func bundleError(problems []*policiesv1.BundleValidationError) error {
	reason := errorsv1.Reason(errorsv1.Reason_value["REASON_"+problems[0].GetCode()])
	code := codes.InvalidArgument
	if reason == errorsv1.Reason_REASON_RESERVED_SLUG {
		code = codes.AlreadyExists
	}
	bad := &errdetails.BadRequest{}
	var texts []string
	for i, problem := range problems {
		if i == maxNamed {
			texts = append(texts, fmt.Sprintf("and %d more", len(problems)-maxNamed))
			break
		}
		texts = append(texts, problem.GetMessage())
		bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: "bundle." + problem.GetContext()["field"], Description: problem.GetMessage(), Reason: problem.GetCode(),
		})
	}
	return apierr.New(code, reason, strings.Join(texts, "; "), bad)
}
