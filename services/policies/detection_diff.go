package policies

import (
	"context"
	"maps"
	"slices"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/ruleset"
)

const (
	kindDetection = "detection_policy"
	kindException = "detection_policy_exception"

	// maxShownRules is how many rules an entry of a difference lists.
	maxShownRules = 1000
)

// detectionChange is an entry of a difference.
type detectionChange struct {
	entry         *policiesv1.DetectionPolicyDiffEntry
	starts, stops map[string]bool // names of rules
	where         exception       // the project or tag; the zero value is everywhere
}

// detectionChanges are the entries of a difference, in order.
type detectionChanges []*detectionChange

// compare returns the differences between two policies.
func (d *detection) compare(wanted *detection) (changes detectionChanges) {
	before, after := d.content(), wanted.content()
	if !sameContent(before, after) {
		change := &detectionChange{entry: &policiesv1.DetectionPolicyDiffEntry{
			Kind: kindDetection, Key: &policiesv1.DetectionPolicyDiffKey{Product: d.product}, Before: before, After: after,
		}}
		change.starts, change.stops = without(wanted.runs(), d.runs()), without(d.runs(), wanted.runs())
		changes = append(changes, change)
	}
	all := maps.Clone(d.exceptions)
	maps.Copy(all, wanted.exceptions)
	for _, key := range sortedExceptions(all) {
		old, isOld := d.exceptions[key]
		now, isNow := wanted.exceptions[key]
		if isOld && isNow && old.kind == now.kind {
			continue
		}
		change := &detectionChange{where: all[key], entry: &policiesv1.DetectionPolicyDiffEntry{
			Kind: kindException, Before: exceptionContent(old), After: exceptionContent(now),
			Key: &policiesv1.DetectionPolicyDiffKey{
				Product: d.product, ScopeType: key.scope, ScopeTarget: key.target, Rule: key.rule, RuleType: key.ruleType,
			},
		}}
		ran, runs := d.runsWith(key, old.kind), wanted.runsWith(key, now.kind)
		change.starts, change.stops = without(runs, ran), without(ran, runs)
		changes = append(changes, change)
	}
	return changes
}

func (d *detection) content() *policiesv1.DetectionPolicyDiffContent {
	return &policiesv1.DetectionPolicyDiffContent{Rulesets: d.bundle.GetRulesets(), Rules: d.bundle.GetRules(), Disabled: d.bundle.GetDisabled()}
}

func sameContent(a, b *policiesv1.DetectionPolicyDiffContent) bool {
	return slices.Equal(a.GetRulesets(), b.GetRulesets()) && slices.Equal(a.GetRules(), b.GetRules()) && slices.Equal(a.GetDisabled(), b.GetDisabled())
}

func exceptionContent(of exception) *policiesv1.DetectionPolicyDiffContent {
	if of.kind == "" {
		return nil
	}
	return &policiesv1.DetectionPolicyDiffContent{ExceptionType: of.kind}
}

// runsWith returns which rules of an exception run under the policy with this exception alone. kind is empty without
// the exception.
func (d *detection) runsWith(key exceptionKey, kind string) map[string]bool {
	base, runs := d.runs(), map[string]bool{}
	add := func(name string, row *ent.RuleDocument) {
		if row.Visibility != ruleset.VisibilityUnlisted && (kind == ruleset.Include || kind == "" && base[name]) {
			runs[name] = true
		}
	}
	if key.ruleType == ruleset.TypeRule {
		add(key.rule, d.rules[key.rule])
		return runs
	}
	for name, row := range d.rules {
		if key.rule == ruleset.AllRules || key.rule == row.Origin {
			add(name, row)
		}
	}
	return runs
}

// without returns the names of a that are not in b.
func without(a, b map[string]bool) map[string]bool {
	left := map[string]bool{}
	for name := range a {
		if !b[name] {
			left[name] = true
		}
	}
	return left
}

// openFindings are the open findings of a rule in a project.
type openFindings struct {
	ProjectID int64  `sql:"project_id"`
	Rule      string `sql:"name"`
	Findings  int32  `sql:"findings"`
}

// count sets the open findings of all entries, with one query for findings and one for tags.
func (c detectionChanges) count(ctx context.Context, reader *ent.Client) error {
	names, tagIDs := map[string]bool{}, []int64{}
	for _, change := range c {
		maps.Copy(names, change.starts)
		maps.Copy(names, change.stops)
		if change.where.tagID != 0 {
			tagIDs = append(tagIDs, change.where.tagID)
		}
	}
	if len(names) == 0 {
		return nil
	}
	rows, err := countOpen(ctx, reader, slices.Sorted(maps.Keys(names)))
	if err != nil {
		return err
	}
	tagged := map[[2]int64]bool{} // tag, project
	if len(tagIDs) > 0 {
		links, err := reader.ProjectTag.Query().Where(store.OneOf(projecttag.FieldTagID, tagIDs)).All(ctx)
		if err != nil {
			return err
		}
		for _, link := range links {
			tagged[[2]int64{link.TagID, link.ProjectID}] = true
		}
	}
	for _, change := range c {
		for _, row := range rows {
			here := change.where == exception{} || change.where.projectID == row.ProjectID || tagged[[2]int64{change.where.tagID, row.ProjectID}]
			if here && (change.starts[row.Rule] || change.stops[row.Rule]) {
				change.entry.OpenFindings += row.Findings
			}
		}
	}
	return nil
}

// countOpen counts the open findings of rules by project, on primary branches.
func countOpen(ctx context.Context, reader *ent.Client, names []string) (rows []openFindings, err error) {
	deploymentID, _ := tenant.FromContext(ctx)
	open := []string{lifecycle.Open, lifecycle.Reviewing, lifecycle.Fixing}
	err = reader.Finding.Query().Where(store.OneOf(finding.FieldStatus, open)).Modify(onPrimaryBranch, func(f *sql.Selector) {
		of := sql.Table(rule.Table).As("checked")
		f.Join(of).On(f.C(finding.FieldRuleID), of.C(rule.FieldID))
		f.Where(sql.And(sql.EQ(of.C(rule.FieldDeploymentID), deploymentID), sql.EQ(of.C(rule.FieldTool), ruleset.Tool), store.In(of.C(rule.FieldName), names)))
		f.Select(f.C(finding.FieldProjectID), of.C(rule.FieldName), sql.As(sql.Count("*"), "findings"))
		f.GroupBy(f.C(finding.FieldProjectID), of.C(rule.FieldName))
	}).Scan(ctx, &rows)
	return rows, err
}

// entries returns the entries that create, change and delete something.
func (c detectionChanges) entries() (creates, updates, deletes []*policiesv1.DetectionPolicyDiffEntry) {
	for _, change := range c {
		change.entry.Starts, change.entry.Stops = shown(change.starts), shown(change.stops)
		switch {
		case change.entry.GetBefore() == nil:
			creates = append(creates, change.entry)
		case change.entry.GetAfter() == nil:
			deletes = append(deletes, change.entry)
		default:
			updates = append(updates, change.entry)
		}
	}
	return creates, updates, deletes
}

func shown(names map[string]bool) []string {
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(len(sorted), maxShownRules)]
}
