package issuefilter

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/internal/store"
)

// Chosen are the findings of columns that conditions select.
type Chosen struct {
	columns.Filter
	// Checks are conditions that no index helps with. The filter does not have them yet: see [Chosen.Check] and
	// [Chosen.CheckAll].
	Checks []predicate.Finding
	// Projects are the projects that the caller sees and that the conditions name, also archived ones.
	Projects map[int64]*ent.Project
	// Others are the places of the other side: of archived projects if the conditions select those that are not, and else
	// the contrary.
	Others []bool

	deploymentID int64
}

// Check returns the ids that satisfy the checks.
func (c *Chosen) Check(ctx context.Context, db *ent.Client, ids []int64) (map[int64]bool, error) {
	kept, err := idsOf(ctx, db, c.deploymentID, append([]predicate.Finding{store.WithIDs[predicate.Finding](ids)}, c.Checks...))
	return setOf(kept), err
}

// CheckAll reads the findings that satisfy the checks, for numbers of all.
func (c *Chosen) CheckAll(ctx context.Context, db *ent.Client) error {
	if len(c.Checks) == 0 {
		return nil
	}
	where := c.Checks
	if c.IDs != nil {
		where = append([]predicate.Finding{store.WithIDs[predicate.Finding](c.IDs)}, where...)
	}
	var err error
	c.IDs, err = idsOf(ctx, db, c.deploymentID, where)
	return err
}

// Choose converts conditions to a filter of columns. At most three statements look up projects, rules, and the findings
// of the conditions that columns cannot decide; they use the policies of the caller.
func (c *Conditions) Choose(ctx context.Context, db *ent.Client, of *columns.Snapshot) (*Chosen, error) {
	parts := c.divide()
	chosen := &Chosen{Checks: parts.checks, deploymentID: c.DeploymentID}
	var err error
	if chosen.Projects, err = parts.projects(ctx, db.Project); err != nil {
		return nil, err
	}
	chosen.Places, chosen.Others = parts.placesOf(of.Places(), chosen.Projects)
	if chosen.Rules, err = parts.rulesOf(ctx, db.Rule, c.DeploymentID, of.Rules()); err != nil {
		return nil, err
	}
	chosen.Kinds = parts.kindsOf(of.Kinds())
	for _, t := range parts.times {
		chosen.Since = max(chosen.Since, t.from)
		if t.until != 0 && (chosen.Until == 0 || t.until < chosen.Until) {
			chosen.Until = t.until
		}
	}
	if len(parts.sql) > 0 {
		if chosen.IDs, err = idsOf(ctx, db, c.DeploymentID, parts.sql); err != nil {
			return nil, err
		}
	}
	if len(parts.except) > 0 {
		if chosen.Except, err = idsOf(ctx, db, c.DeploymentID, []predicate.Finding{anyOption(parts.except)}); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// idsOf reads the ids of the findings that satisfy conditions, in ascending order; never nil, which means all. They are
// one text: stepping through rows costs more than reading them from an index.
func idsOf(ctx context.Context, db *ent.Client, deploymentID int64, where []predicate.Finding) ([]int64, error) {
	joined, err := db.Finding.Query().Where(finding.DeploymentID(deploymentID)).Where(where...).Aggregate(func(s *entsql.Selector) string {
		if s.Dialect() == dialect.Postgres {
			return "COALESCE(string_agg(CAST(" + s.C(finding.FieldID) + " AS text), ','), '')"
		}
		return "COALESCE(group_concat(" + s.C(finding.FieldID) + "), '')"
	}).String(ctx)
	ids := make([]int64, 0, len(joined)/8)
	for word := range strings.SplitSeq(joined, ",") {
		if id, err := strconv.ParseInt(word, 10, 64); err == nil { // "" without any
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// divided are conditions by how columns decide them.
type divided struct {
	places, rules, kinds, times []term
	// sql are conditions that only SQL can decide, and except is the same for findings to leave out.
	sql, except []predicate.Finding
	// checks are conditions without an index.
	checks []predicate.Finding
}

func (c *Conditions) divide() *divided {
	d := &divided{}
	for _, one := range c.List {
		switch {
		case one.term != nil && one.term.about(isPlace):
			d.places = append(d.places, *one.term)
		case one.term != nil && one.term.column == finding.FieldRuleID:
			d.rules = append(d.rules, *one.term)
		case one.term != nil && one.term.column == finding.FieldRelevantSince:
			d.times = append(d.times, *one.term)
		case one.term != nil && one.term.about(isFact):
			d.kinds = append(d.kinds, *one.term)
		case one.scans:
			d.checks = append(d.checks, one.Where)
		case one.except != nil:
			d.except = append(d.except, one.except)
		case one.term != nil && one.term.null && one.term.any == nil: // most findings have null
			d.except = append(d.except, noneOf(one.term.column, one.term.words))
		default:
			d.sql = append(d.sql, one.Where)
		}
	}
	return d
}

// noneOf selects findings that have a value in a column, but none of the words.
func noneOf(column string, words []string) predicate.Finding {
	has := predicate.Finding(entsql.FieldNotNull(column)) // as the indexes say it; NOT (… IS NULL) uses none
	if len(words) == 0 {
		return has
	}
	return finding.And(has, term{column: column, words: words, not: true}.ofWords())
}

// about reports whether a test holds for all parts of a term.
func (t term) about(holds func(term) bool) bool {
	parts := t.any
	if parts == nil {
		parts = t.all
	}
	if parts == nil {
		return holds(t)
	}
	return !slices.ContainsFunc(parts, func(part term) bool { return !part.about(holds) })
}

func isPlace(t term) bool {
	switch t.column {
	case finding.FieldProjectID, finding.FieldRef, primaryBranch, archived:
		return true
	}
	return false
}

func isFact(t term) bool {
	_, _, known := columns.Facts(0).Word(t.column)
	return known && !slices.ContainsFunc(t.words, func(word string) bool { return !columns.Knows(t.column, word) })
}

// projects reads the projects that the caller sees and that the conditions name.
func (d *divided) projects(ctx context.Context, db *ent.ProjectClient) (map[int64]*ent.Project, error) {
	query := db.Query().Select(project.FieldID, project.FieldName, project.FieldPrimaryBranch, project.FieldDefaultBranch, project.FieldArchivedAt)
	for _, t := range d.places {
		if t.rows != nil {
			query.Where(condition(t.rows))
		}
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*ent.Project, len(rows))
	for _, row := range rows {
		byID[row.ID] = row
	}
	return byID, nil
}

// PrimaryRef is the primary branch of a project: the one that a person set, or else the default branch.
func PrimaryRef(p *ent.Project) string {
	if p.PrimaryBranch != "" {
		return p.PrimaryBranch
	}
	return p.DefaultBranch
}

func (d *divided) placesOf(places []columns.Place, projects map[int64]*ent.Project) (chosen, others []bool) {
	chosen, others = make([]bool, len(places)), make([]bool, len(places))
	for i, place := range places {
		owner, seen := projects[place.Project]
		if !seen {
			continue
		}
		matches, onThisSide := true, true
		for _, t := range d.places {
			if holds := t.ofPlace(place, owner); t.column == archived {
				onThisSide = holds
			} else if !holds {
				matches = false
				break
			}
		}
		chosen[i], others[i] = matches && onThisSide, matches && !onThisSide
	}
	return chosen, others
}

func (t term) ofPlace(place columns.Place, owner *ent.Project) bool {
	switch {
	case t.any != nil:
		return slices.ContainsFunc(t.any, func(option term) bool { return option.ofPlace(place, owner) })
	case t.all != nil:
		return !slices.ContainsFunc(t.all, func(part term) bool { return !part.ofPlace(place, owner) })
	case t.rows != nil: // the projects are read so
		return true
	case t.column == primaryBranch:
		return place.Ref == PrimaryRef(owner)
	case t.column == archived:
		return (owner.ArchivedAt != nil) != t.not
	case t.column == finding.FieldProjectID:
		_, found := slices.BinarySearch(t.ids, place.Project)
		return found
	}
	return slices.Contains(t.words, place.Ref)
}

// rulesOf reports for each rule whether it satisfies the conditions; nil means all.
func (d *divided) rulesOf(ctx context.Context, db *ent.RuleClient, deploymentID int64, known []int64) ([]bool, error) {
	if len(d.rules) == 0 {
		return nil, nil
	}
	query := db.Query().Where(rule.DeploymentID(deploymentID))
	named := false
	for _, t := range d.rules {
		if t.rows != nil {
			query.Where(condition(t.rows))
			named = true
		}
	}
	var ids map[int64]bool
	if named {
		rows, err := query.IDs(ctx)
		if err != nil {
			return nil, err
		}
		ids = setOf(rows)
	}
	chosen := make([]bool, len(known))
	for i, id := range known {
		chosen[i] = ids == nil || ids[id]
	}
	for _, t := range d.rules {
		if t.rows == nil {
			listed := setOf(t.ids)
			for i, id := range known {
				chosen[i] = chosen[i] && listed[id]
			}
		}
	}
	return chosen, nil
}

func setOf(ids []int64) map[int64]bool {
	set := make(map[int64]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// kindsOf reports for each kind whether it satisfies the conditions; nil means all.
func (d *divided) kindsOf(kinds []columns.Facts) []bool {
	if len(d.kinds) == 0 {
		return nil
	}
	chosen := make([]bool, len(kinds))
	for i, facts := range kinds {
		chosen[i] = !slices.ContainsFunc(d.kinds, func(t term) bool { return !t.ofFacts(facts) })
	}
	return chosen
}

func (t term) ofFacts(facts columns.Facts) bool {
	switch {
	case t.any != nil:
		return slices.ContainsFunc(t.any, func(option term) bool { return option.ofFacts(facts) })
	case t.all != nil:
		return !slices.ContainsFunc(t.all, func(part term) bool { return !part.ofFacts(facts) })
	}
	word, null, known := facts.Word(t.column)
	if null {
		return t.null && !t.not
	}
	return (known && slices.Contains(t.words, word)) != t.not
}

// RefID is the id of a ref of a project (IssueRef.id).
func RefID(projectID int64, ref string) string { return strconv.FormatInt(projectID, 10) + ":" + ref }
