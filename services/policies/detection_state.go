package policies

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/detectionexception"
	"github.com/palisade/palisade/ent/detectionpolicy"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// Kinds of scopes of exceptions.
const (
	scopeProject = "project"
	scopeTag     = "project_tag"
)

// exceptionKey identifies an exception in a bundle.
type exceptionKey struct{ scope, target, ruleType, rule string }

// exception is an exception of a product.
type exception struct {
	id               int64 // 0: it is not stored
	projectID, tagID int64 // one of them is 0
	kind             string
}

// detection is the detection policy of a product at one time.
type detection struct {
	product    string // code, secrets, supply-chain
	rules      map[string]*ent.RuleDocument
	exceptions map[exceptionKey]exception
	// leftOver are the stored exceptions for rules that do not exist any more. A read leaves them out, and storedRules
	// that are gone.
	leftOver    []*ent.DetectionException
	storedRules []string
	bundle      *policiesv1.DetectionPolicyBundle
	version     string
	// warnings say what the caller does not see, in a policy that the caller wants.
	warnings []*policiesv1.BundleWarning
	running  map[string]bool // of runs
}

// loadDetection reads the policy of a product. Rules, projects and tags that no longer exist are not part of it.
func loadDetection(ctx context.Context, reader *ent.Client, deploymentSlug, product string) (*detection, error) {
	_, limited := tenant.Teams(ctx)
	d := &detection{
		product: product, rules: map[string]*ent.RuleDocument{}, exceptions: map[exceptionKey]exception{},
		bundle: &policiesv1.DetectionPolicyBundle{DeploymentSlug: deploymentSlug, Product: product, Rulesets: []string{ruleset.AllRules}, Partial: limited},
	}
	rows, err := reader.RuleDocument.Query().Where(ruledocument.Product(ruleProducts[product])).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		d.rules[row.Name] = row
		if row.Mode == ruleset.ModeOff {
			d.bundle.Disabled = append(d.bundle.Disabled, row.Name)
		}
	}
	stored, err := reader.DetectionPolicy.Query().Where(detectionpolicy.Product(ruleProducts[product])).Only(ctx)
	switch {
	case ent.IsNotFound(err):
	case err != nil:
		return nil, err
	default:
		d.bundle.Rulesets, d.storedRules = stored.Rulesets, slices.Sorted(slices.Values(stored.Rules))
		d.bundle.Rules = slices.DeleteFunc(stored.Rules, func(name string) bool { return d.rules[name] == nil })
	}
	if err := d.loadExceptions(ctx, reader); err != nil {
		return nil, err
	}
	d.complete()
	return d, nil
}

// loadExceptions reads the exceptions, with the names of their projects and tags.
func (d *detection) loadExceptions(ctx context.Context, reader *ent.Client) error {
	rows, err := reader.DetectionException.Query().Where(detectionexception.Product(ruleProducts[d.product])).All(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	var projectIDs, tagIDs []int64
	for _, row := range rows {
		if row.ProjectID != nil {
			projectIDs = append(projectIDs, *row.ProjectID)
		} else {
			tagIDs = append(tagIDs, row.TagID)
		}
	}
	projects, tags := map[int64]string{}, map[int64]string{}
	if len(projectIDs) > 0 {
		found, err := reader.Project.Query().Where(store.WithIDs[predicate.Project](projectIDs)).Select(project.FieldID, project.FieldName).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range found {
			projects[row.ID] = row.Name
		}
	}
	if len(tagIDs) > 0 {
		found, err := reader.Tag.Query().Where(store.WithIDs[predicate.Tag](tagIDs)).Select(tag.FieldID, tag.FieldName).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range found {
			tags[row.ID] = row.Name
		}
	}
	for _, row := range rows {
		key, stored := exceptionKey{scopeTag, tags[row.TagID], row.RuleType, row.Rule}, exception{id: row.ID, tagID: row.TagID, kind: row.ExceptionType}
		if row.ProjectID != nil {
			key.scope, key.target, stored.projectID = scopeProject, projects[*row.ProjectID], *row.ProjectID
		}
		switch {
		case key.ruleType == ruleset.TypeRule && d.rules[key.rule] == nil:
			d.leftOver = append(d.leftOver, row)
		case key.target != "":
			d.exceptions[key] = stored
		}
	}
	return nil
}

// complete brings the bundle into its order, and sets the version.
func (d *detection) complete() {
	slices.SortFunc(d.bundle.GetRulesets(), func(a, b string) int {
		return cmp.Compare(slices.Index(ruleset.Rulesets, a), slices.Index(ruleset.Rulesets, b))
	})
	slices.Sort(d.bundle.GetRules())
	slices.Sort(d.bundle.GetDisabled())
	d.bundle.Exceptions = nil
	for _, key := range sortedExceptions(d.exceptions) {
		one := &policiesv1.DetectionPolicyException{ExceptionType: d.exceptions[key].kind, Rule: key.rule, RuleType: key.ruleType}
		if key.scope == scopeProject {
			one.Project = key.target
		} else {
			one.ProjectTagName = key.target
		}
		d.bundle.Exceptions = append(d.bundle.Exceptions, one)
	}
	d.version = detectionVersion(d.bundle)
}

func sortedExceptions(of map[exceptionKey]exception) []exceptionKey {
	keys := make([]exceptionKey, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b exceptionKey) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.target, b.target), cmp.Compare(a.ruleType, b.ruleType), cmp.Compare(a.rule, b.rule))
	})
	return keys
}

// detectionVersion is a hash of the content of a bundle in its order.
func detectionVersion(bundle *policiesv1.DetectionPolicyBundle) string {
	sum := sha256.New()
	list := func(values []string) {
		fmt.Fprintf(sum, "%d;", len(values))
		for _, value := range values {
			fmt.Fprintf(sum, "%d:%s", len(value), value)
		}
	}
	list([]string{bundle.GetProduct()})
	list(bundle.GetRulesets())
	list(bundle.GetRules())
	list(bundle.GetDisabled())
	for _, e := range bundle.GetExceptions() {
		list([]string{e.GetExceptionType(), e.GetProject(), e.GetProjectTagName(), e.GetRule(), e.GetRuleType()})
	}
	version := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	if bundle.GetPartial() {
		return partialVersion(version)
	}
	return version
}

// chosen are the rules that the policy runs besides exceptions.
func (d *detection) chosen() *ruleset.Chosen {
	return ruleset.NewChosen(d.bundle.GetRulesets(), d.bundle.GetRules())
}

// runs returns the names of the rules that scans run without exceptions.
func (d *detection) runs() map[string]bool {
	if d.running != nil {
		return d.running
	}
	chosen, off := d.chosen(), map[string]bool{}
	for _, name := range d.bundle.GetDisabled() {
		off[name] = true
	}
	runs := map[string]bool{}
	for name, row := range d.rules {
		if !off[name] && row.Visibility != ruleset.VisibilityUnlisted && chosen.Runs(name, row.Origin, ruleset.ModeMonitor) {
			runs[name] = true
		}
	}
	d.running = runs
	return runs
}
