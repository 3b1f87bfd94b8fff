package policies

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
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
	projects map[string]string // the names of existing projects, by the name in the bundle
	// limited says that the caller does not see all projects. notCompared are then the names that it does not see.
	limited     bool
	notCompared []*policiesv1.BundleWarning
}

// named is a value that must exist in the database.
type named struct {
	reference          remediation.Reference
	value, slug, field string
}

// checked is a bundle in the words of the request, with slugs, and all its problems. For a caller who does not see all
// projects, policies lack what the caller does not see, and warnings say so.
type checked struct {
	policies []*policiesv1.RemediationPolicy
	problems []*policiesv1.BundleValidationError
	warnings []*policiesv1.BundleWarning
}

// check checks a bundle.
func check(ctx context.Context, reader *ent.Client, deploymentSlug string, bundle *policiesv1.RemediationPoliciesBundle) (*checked, error) {
	c := newChecker(ctx)
	c.partial(bundle.GetPartial())
	if got := bundle.GetDeploymentSlug(); got != "" && got != deploymentSlug {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, "deployment_slug", got, "deployment_slug must be %q or left out", deploymentSlug)
	}
	policies := make([]*policiesv1.RemediationPolicy, 0, len(bundle.GetPolicies()))
	seen, names := map[string]bool{}, map[string]string{}
	for i, from := range bundle.GetPolicies() {
		policy, err := known(from)
		if err != nil {
			return nil, err
		}
		c.policy(fmt.Sprintf("policies[%d]", i), policy)
		if slug := policy.GetSlug(); seen[slug] {
			c.add(errorsv1.Reason_REASON_DUPLICATE_SLUG, fmt.Sprintf("policies[%d].slug", i), slug, "two policies have the slug %s", apierr.Quote(slug))
		} else if name := looks(policy.GetName()); names[name] != "" { // people read it when a scan fails
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, fmt.Sprintf("policies[%d].name", i), policy.GetName(),
				"two policies have the name %s, or names that look like it", apierr.Quote(names[name]))
		} else if slug != "" {
			seen[slug], names[name] = true, strings.TrimSpace(policy.GetName())
		}
		policies = append(policies, policy)
	}
	seenBy, err := c.references(ctx, reader)
	if err != nil {
		return nil, err
	}
	if c.limited {
		seenBy.redact(policies)
	}
	c.ownNames(policies)
	for i, policy := range policies {
		if field := fmt.Sprintf("policies[%d]", i); !c.hasProblem(field) {
			c.impossible(field, policy)
		}
	}
	return &checked{policies, c.problems, c.notCompared}, nil
}

// looks returns what people see of a name: names that differ only in letter case, white space, invisible characters or
// the Unicode form of characters look alike.
func looks(name string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Cc) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, name)
	return norm.NFKC.String(strings.ToLower(norm.NFKC.String(strings.Join(strings.Fields(visible), " "))))
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

// known copies a policy without the fields that this version does not know: nothing else is stored.
func known(from *policiesv1.RemediationPolicy) (*policiesv1.RemediationPolicy, error) {
	policy := &policiesv1.RemediationPolicy{}
	content, err := proto.Marshal(from)
	if err == nil {
		err = proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(content, policy)
	}
	return policy, err
}

// policy checks a policy. It sets the slug of a policy without one.
func (c *checker) policy(field string, policy *policiesv1.RemediationPolicy) {
	if policy.GetSlug() == "" {
		policy.Slug = slugOf(policy.GetName())
	}
	c.slug = policy.GetSlug()
	defer func() { c.slug = "" }()
	switch {
	case !c.required(field+".name", strings.TrimSpace(policy.GetName())):
	case !slugForm.MatchString(policy.GetSlug()):
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field+".slug", policy.GetSlug(),
			"%s.slug must be lower-case letters and digits with single hyphens between them; got %s", field, apierr.Quote(policy.GetSlug()))
	}
	if strings.HasPrefix(policy.GetSlug(), reservedPrefix) {
		c.add(errorsv1.Reason_REASON_RESERVED_SLUG, field+".slug", policy.GetSlug(), "%s.slug %s is reserved: slugs that begin with %s belong to the server",
			field, apierr.Quote(policy.GetSlug()), reservedPrefix)
	}
	if policy.GetFilters() == nil {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field+".filters", "", "%s.filters is required", field)
	} else {
		c.filters(field+".filters", policy.GetFilters())
	}
	c.actions(field+".actions", policy.GetActions())
}

// slugOf derives a slug from a name: each character other than a to z and digits becomes a hyphen.
func slugOf(name string) string {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(parts, "-")
}

func (c *checker) filters(field string, from *policiesv1.RemediationPolicyFilters) {
	c.word(field+".mode", from.GetMode(), remediation.ModeAll, remediation.ModeAny)
	if from.GetMode() == remediation.ModeAny && len(from.GetConditions()) == 0 {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field+".conditions", "", "%s.conditions must not be empty where the mode is any", field)
	}
	for i, condition := range from.GetConditions() {
		place := fmt.Sprintf("%s.conditions[%d]", field, i)
		if condition.GetMode() != "" {
			c.word(place+".mode", condition.GetMode(), remediation.ConditionModes()...)
		}
		if len(condition.GetValues()) == 0 && !(c.limited && hideable(condition)) {
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place+".values", "", "%s.values must not be empty", place)
		}
		kind, known := remediation.ConditionTypeOf(condition.GetType())
		if !known {
			c.unsupported(errorsv1.Reason_REASON_UNSUPPORTED_CONDITION_TYPE, place+".type", condition.GetType(), conditionWords())
			continue
		}
		c.values(place, kind, condition.GetValues())
	}
}

// hasProblem reports whether a part of a field has a problem.
func (c *checker) hasProblem(field string) bool {
	return slices.ContainsFunc(c.problems, func(p *policiesv1.BundleValidationError) bool {
		return strings.HasPrefix(p.GetContext()["field"], field+".")
	})
}

// impossible adds a problem for conditions that no finding meets together. What a limited caller may not see is left
// out.
func (c *checker) impossible(field string, from *policiesv1.RemediationPolicy) {
	filters := remediation.Canonical(from).GetFilters()
	for _, condition := range filters.GetConditions() {
		if c.limited && hideable(condition) {
			condition.Values = nil
		}
	}
	conflict := remediation.ImpossibleFilters(filters)
	if conflict == nil {
		return
	}
	place, of := fmt.Sprintf("%s.filters.conditions[%d]", field, conflict.At), filters.GetConditions()[conflict.At].GetType()
	c.slug = from.GetSlug()
	if len(conflict.Only) > 0 {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place+".type", of,
			"%s.type: only findings of the product %s have the property %s, and another condition leaves them out", place, strings.Join(conflict.Only, ", "), of)
	} else {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place, of, "%s: the conditions on %s leave no value, so no finding meets them", place, of)
	}
	c.slug = ""
}

func conditionWords() (words []string) {
	for _, kind := range remediation.ConditionTypes() {
		words = append(append(words, kind.Type), kind.Also...)
	}
	return words
}

// values checks the values of a condition.
func (c *checker) values(field string, kind remediation.ConditionType, from []string) {
	seen := map[string]bool{}
	for i, value := range from {
		place := fmt.Sprintf("%s.values[%d]", field, i)
		value = kind.Canonical(strings.TrimSpace(value))
		switch {
		case !c.required(place, value), seen[value]:
		case len(kind.Values) > 0:
			c.word(place, value, kind.Values...)
		case kind.Type == refCategory && !c.limited: // the category of a rule that the caller does not see is unknown
			c.named = append(c.named, named{reference: refCategory, value: value, slug: c.slug, field: place})
		case kind.Reference != remediation.RefNone:
			c.named = append(c.named, named{reference: kind.Reference, value: value, slug: c.slug, field: place})
		}
		seen[value] = true
	}
}

func (c *checker) actions(field string, from []*policiesv1.RemediationPolicyAction) {
	if len(from) == 0 {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field, "", "%s must not be empty", field)
	}
	seen := map[string]bool{}
	for i, action := range from {
		place := fmt.Sprintf("%s[%d]", field, i)
		kind, known := remediation.ActionTypeOf(action.GetType())
		switch {
		case remediation.Unavailable(action.GetType()):
			c.add(errorsv1.Reason_REASON_UNSUPPORTED_ACTION_TYPE, place+".type", action.GetType(),
				"%s.type: the action %s is known, but this version does not have it: it must be one of %s", place, action.GetType(), strings.Join(actionWords(), ", "))
			continue
		case !known:
			c.unsupported(errorsv1.Reason_REASON_UNSUPPORTED_ACTION_TYPE, place+".type", action.GetType(), actionWords())
			continue
		}
		if seen[kind.Type] {
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place+".type", action.GetType(), "%s: the policy has the action %s already", place, action.GetType())
		}
		seen[kind.Type] = true
		c.config(place+".config", kind, action.GetConfig())
	}
}

func actionWords() (words []string) {
	for _, kind := range remediation.ActionTypes() {
		words = append(append(words, kind.Type), kind.Also...)
	}
	return words
}

// unsupported adds a problem about an unknown type.
func (c *checker) unsupported(reason errorsv1.Reason, field, got string, words []string) {
	c.add(reason, field, got, "%s must be one of %s; got %s", field, strings.Join(words, ", "), apierr.Quote(got))
}

func (c *checker) config(field string, kind remediation.ActionType, got map[string]string) {
	for _, key := range kind.Requires {
		c.required(field+"."+key, got[key])
	}
	known := slices.Concat(kind.Requires, kind.Optional)
	for _, key := range sortedKeys(got) {
		place, value := field+"."+key, got[key]
		switch {
		case !slices.Contains(known, key):
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place, value, "%s: the action %s has no setting %s%s", field, kind.Type, apierr.Quote(key), settings(known))
		case value == "": // as if it were absent
		case len(kind.Values[key]) > 0:
			c.word(place, strings.ToLower(value), kind.Values[key]...)
		case key == remediation.ConfigRule:
			c.id(place, value, remediation.RefNotificationRule)
		case key == remediation.ConfigInstance:
			c.id(place, value, remediation.RefTicketingInstance)
		}
	}
	state, reason := strings.ToLower(got[remediation.ConfigState]), got[remediation.ConfigReason]
	if kind.Type == remediation.ActionSetState && reason != "" && state != lifecycle.Ignored {
		place := field + "." + remediation.ConfigReason
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place, reason, "%s is allowed only with the state %s; got %s", place, lifecycle.Ignored, apierr.Quote(reason))
	}
}

// settings lists the settings of an action for an error.
func settings(known []string) string {
	if len(known) == 0 {
		return ": it has none"
	}
	return ": it has " + strings.Join(known, ", ")
}

// id checks the id of an object.
func (c *checker) id(field, value string, of remediation.Reference) {
	if id, err := strconv.ParseInt(value, 10, 64); err != nil || id <= 0 || strconv.FormatInt(id, 10) != value {
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, field, value, "%s must be the id of a %s; got %s", field, of, apierr.Quote(value))
		return
	}
	c.named = append(c.named, named{reference: of, value: value, slug: c.slug, field: field})
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
