package ruleset

import (
	"context"
	"fmt"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/detectionexception"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/ruleboardproject"
	"github.com/palisade/palisade/ent/ruleboardrule"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/rules/document"
)

// Words of detection policies and rule boards.
const (
	// AllRules is the ruleset of all rules. The other rulesets are the origins of rules.
	AllRules = "default"

	TypeRule    = "rule"
	TypeRuleset = "ruleset"

	Include = "include"
	Exclude = "exclude"
)

// Rulesets are the names of all rulesets.
var Rulesets = []string{AllRules, OriginStarter, OriginImport, OriginPublish}

// Chosen are the rules of a product that a detection policy runs. nil runs all.
type Chosen struct{ rulesets, rules map[string]bool }

// NewChosen chooses rulesets, and rules besides.
func NewChosen(rulesets, rules []string) *Chosen { return &Chosen{setOf(rulesets), setOf(rules)} }

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// Runs reports whether a rule runs where no exception says otherwise.
func (c *Chosen) Runs(name, origin, mode string) bool {
	return mode != ModeOff && (c == nil || c.rulesets[AllRules] || c.rulesets[origin] || c.rules[name])
}

// item is a rule or ruleset of a product.
type item struct{ product, ruleType, name string }

// scope is what the project of a scan changes: which rules run, and in which modes.
type scope struct {
	chosen     map[string]*Chosen // by product
	exceptions map[item]string    // include or exclude
	modes      map[item]string    // of the boards that the project is assigned to
}

// scopeOf reads the scope of a project, in one query without a project and three with one. It is not cached: a change
// has an effect on the next scan.
func scopeOf(ctx context.Context, reader *ent.Client, projectName string) (*scope, error) {
	s := &scope{chosen: map[string]*Chosen{}, exceptions: map[item]string{}, modes: map[item]string{}}
	policies, err := reader.DetectionPolicy.Query().All(ctx)
	if err != nil {
		return nil, err
	}
	for _, policy := range policies {
		s.chosen[policy.Product] = NewChosen(policy.Rulesets, policy.Rules)
	}
	if projectName == "" {
		return s, nil
	}
	exceptions, err := reader.DetectionException.Query().Where(exceptionsFor(ctx, projectName)).All(ctx)
	if err != nil {
		return nil, err
	}
	s.except(exceptions)
	modes, err := reader.RuleboardRule.Query().Where(onBoardOf(ctx, projectName)).All(ctx)
	for _, row := range modes {
		s.modes[item{row.Product, row.RuleType, row.Rule}] = row.Mode
	}
	return s, err
}

// except adds exceptions. One for a project counts more than one for a tag, and exclude more than include.
func (s *scope) except(rows []*ent.DetectionException) {
	for _, ofProject := range []bool{false, true} {
		for _, kind := range []string{Include, Exclude} {
			for _, row := range rows {
				if (row.ProjectID != nil) == ofProject && row.ExceptionType == kind {
					s.exceptions[item{row.Product, row.RuleType, row.Rule}] = kind
				}
			}
		}
	}
}

// exceptionsFor selects the exceptions for a project and for its tags.
func exceptionsFor(ctx context.Context, projectName string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		tags := sql.Dialect(s.Dialect()).Table(projecttag.Table)
		deploymentID, _ := tenant.FromContext(ctx)
		s.Where(sql.Or(
			sql.In(s.C(detectionexception.FieldProjectID), byname.IDs(ctx, s, projectName)),
			sql.In(s.C(detectionexception.FieldTagID), sql.Dialect(s.Dialect()).Select(tags.C(projecttag.FieldTagID)).From(tags).Where(sql.And(
				sql.EQ(tags.C(projecttag.FieldDeploymentID), deploymentID),
				sql.In(tags.C(projecttag.FieldProjectID), byname.IDs(ctx, s, projectName)),
			))),
		))
	}
}

// onBoardOf selects the modes of the boards that a project is assigned to.
func onBoardOf(ctx context.Context, projectName string) func(*sql.Selector) {
	return func(s *sql.Selector) {
		assigned := sql.Dialect(s.Dialect()).Table(ruleboardproject.Table)
		deploymentID, _ := tenant.FromContext(ctx)
		s.Where(sql.In(s.C(ruleboardrule.FieldRuleboardID), sql.Dialect(s.Dialect()).Select(assigned.C(ruleboardproject.FieldRuleboardID)).
			From(assigned).Where(sql.And(
			sql.EQ(assigned.C(ruleboardproject.FieldDeploymentID), deploymentID),
			sql.In(assigned.C(ruleboardproject.FieldProjectID), byname.IDs(ctx, s, projectName)),
		))))
	}
}

// first returns the value for a rule: the value of its name, its origin or all rules; "" without one.
func first(of map[item]string, r *rendered) string {
	for _, key := range []item{{r.product, TypeRule, r.name}, {r.product, TypeRuleset, r.origin}, {r.product, TypeRuleset, AllRules}} {
		if value := of[key]; value != "" {
			return value
		}
	}
	return ""
}

// modeOf returns the mode of a rule in the scope; off if it does not run.
func (s *scope) modeOf(r *rendered) string {
	mode := r.mode
	if own := first(s.modes, r); own != "" {
		mode = own
	}
	exception := first(s.exceptions, r)
	switch {
	case exception == Include && mode == ModeOff:
		return ModeMonitor
	case exception == Exclude, exception == "" && !s.chosen[r.product].Runs(r.name, r.origin, mode):
		return ModeOff
	}
	return mode
}

// apply returns the rules in the modes of the scope.
func (s *scope) apply(all []*rendered) ([]*rendered, error) {
	if len(s.chosen)+len(s.exceptions)+len(s.modes) == 0 {
		return all, nil
	}
	out := make([]*rendered, len(all))
	for i, r := range all {
		out[i] = r
		mode := s.modeOf(r)
		if mode == r.mode {
			continue
		}
		var err error
		if out[i], err = r.inMode(mode); err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.name, err)
		}
	}
	return out, nil
}

// inMode returns the rule in another mode. The form for scanners of a rule that is off is not needed.
func (r *rendered) inMode(mode string) (*rendered, error) {
	changed := *r
	changed.mode, changed.decidable = mode, mode == ModeBlock && r.source == nil
	if mode == ModeOff {
		return &changed, nil
	}
	setMode(&changed.annotation, mode)
	source := r.json
	if r.source != nil {
		source = r.source
	}
	var err error
	changed.json, err = document.Annotate(source, changed.annotation)
	return &changed, err
}
