package policies

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tag"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// detectionChecker checks a bundle.
type detectionChecker struct {
	checker
	current *detection
	// targets and tags are the existing projects and tags, by the name in the bundle. The letter case of projects may
	// differ there.
	targets, tags map[string]target
}

// target is a project or a tag with its own name.
type target struct {
	id   int64
	name string
}

// check returns the policy that a bundle wants, with warnings about what a limited caller does not see, or all problems
// of the bundle.
func (d *detection) check(ctx context.Context, reader *ent.Client, bundle *policiesv1.DetectionPolicyBundle) (*detection, []*policiesv1.BundleValidationError, error) {
	c := &detectionChecker{checker: *newChecker(ctx), current: d}
	c.partial(bundle.GetPartial())
	if err := c.find(ctx, reader, bundle.GetExceptions()); err != nil {
		return nil, nil, err
	}
	for _, must := range []struct{ field, got, want string }{
		{"deployment_slug", bundle.GetDeploymentSlug(), d.bundle.GetDeploymentSlug()}, {"product", bundle.GetProduct(), d.product},
	} {
		if must.got != "" && must.got != must.want {
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, must.field, must.got, "%s must be %q or left out", must.field, must.want)
		}
	}
	c.names("rulesets", bundle.GetRulesets(), c.ruleset)
	c.names("rules", bundle.GetRules(), c.rule)
	c.names("disabled", bundle.GetDisabled(), c.rule)
	wanted := &detection{product: d.product, rules: d.rules, exceptions: c.exceptions(bundle.GetExceptions())}
	if len(c.problems) > 0 {
		return nil, c.problems, nil
	}
	wanted.bundle = &policiesv1.DetectionPolicyBundle{
		DeploymentSlug: d.bundle.GetDeploymentSlug(), Product: d.product, Rulesets: slices.Clone(bundle.GetRulesets()),
		Rules: slices.Clone(bundle.GetRules()), Disabled: slices.Clone(bundle.GetDisabled()), Partial: c.limited,
	}
	wanted.warnings = c.notCompared
	wanted.complete()
	return wanted, nil, nil
}

// find reads the ids of the projects and tags that exceptions name.
func (c *detectionChecker) find(ctx context.Context, reader *ent.Client, exceptions []*policiesv1.DetectionPolicyException) error {
	c.targets, c.tags = map[string]target{}, map[string]target{}
	var projects, tags []string
	for _, e := range exceptions {
		if e.GetProject() != "" {
			projects = append(projects, e.GetProject())
		}
		if e.GetProjectTagName() != "" {
			tags = append(tags, e.GetProjectTagName())
		}
	}
	if len(projects) > 0 {
		found, err := byname.All(ctx, reader, projects)
		if err != nil {
			return err
		}
		for name, row := range found {
			c.targets[name] = target{row.ID, row.Name}
		}
	}
	if len(tags) > 0 {
		rows, err := reader.Tag.Query().Where(store.OneOf(tag.FieldName, tags)).Select(tag.FieldID, tag.FieldName).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			c.tags[row.Name] = target{row.ID, row.Name}
		}
	}
	return nil
}

// names checks a list of distinct names.
func (c *detectionChecker) names(field string, names []string, check func(field, name string)) {
	seen := map[string]bool{}
	for i, name := range names {
		place := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case !c.required(place, name):
		case seen[name]:
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place, name, "%s: %s is named twice", place, apierr.Quote(name))
		default:
			check(place, name)
		}
		seen[name] = true
	}
}

func (c *detectionChecker) ruleset(field, name string) {
	if !slices.Contains(ruleset.Rulesets, name) {
		c.add(errorsv1.Reason_REASON_UNKNOWN_REFERENCE, field, name, "%s: there is no ruleset %s: there are %s", field, apierr.Quote(name),
			strings.Join(ruleset.Rulesets, ", "))
	}
}

func (c *detectionChecker) rule(field, name string) {
	if c.current.rules[name] == nil {
		c.add(errorsv1.Reason_REASON_UNKNOWN_REFERENCE, field, name, "%s: there is no rule %s of the product %s", field, apierr.Quote(name), c.current.product)
	}
}

// exceptions checks the exceptions.
func (c *detectionChecker) exceptions(from []*policiesv1.DetectionPolicyException) map[exceptionKey]exception {
	wanted := map[exceptionKey]exception{}
	for i, e := range from {
		place := fmt.Sprintf("exceptions[%d]", i)
		c.word(place+".exception_type", e.GetExceptionType(), ruleset.Include, ruleset.Exclude)
		c.word(place+".rule_type", e.GetRuleType(), ruleset.TypeRule, ruleset.TypeRuleset)
		if c.required(place+".rule", e.GetRule()) {
			switch e.GetRuleType() {
			case ruleset.TypeRule:
				c.rule(place+".rule", e.GetRule())
			case ruleset.TypeRuleset:
				c.ruleset(place+".rule", e.GetRule())
			}
		}
		key, value := c.target(place, e)
		if c.limited && value.projectID == 0 && value.tagID == 0 && key.target != "" {
			continue // target has added a warning or an error
		}
		if _, twice := wanted[key]; twice {
			c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place, e.GetRule(), "%s: there is another exception for %s %s in %s %s",
				place, key.ruleType, apierr.Quote(key.rule), key.scope, apierr.Quote(key.target))
		}
		wanted[key] = value
	}
	return wanted
}

// target checks where an exception applies.
func (c *detectionChecker) target(place string, e *policiesv1.DetectionPolicyException) (exceptionKey, exception) {
	key := exceptionKey{scopeProject, e.GetProject(), e.GetRuleType(), e.GetRule()}
	known, field := c.targets, place+".project"
	if e.GetProjectTagName() != "" {
		key.scope, key.target, known, field = scopeTag, e.GetProjectTagName(), c.tags, place+".project_tag_name"
	}
	found, exists := known[key.target]
	switch {
	case e.GetProject() != "" && e.GetProjectTagName() != "":
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place+".project", e.GetProject(), "%s must name a project or a tag, not both", place)
	case key.target == "":
		c.add(errorsv1.Reason_REASON_INVALID_ARGUMENT, place+".project", "", "%s must name a project or a tag", place)
	case !exists && c.limited:
		c.leaveOut(field, key.scope, key.target)
	case !exists:
		c.add(errorsv1.Reason_REASON_UNKNOWN_REFERENCE, field, key.target, "%s: there is no %s %s", field, key.scope, apierr.Quote(key.target))
	}
	if exists {
		key.target = found.name
	}
	if key.scope == scopeTag {
		return key, exception{tagID: found.id, kind: e.GetExceptionType()}
	}
	return key, exception{projectID: found.id, kind: e.GetExceptionType()}
}
