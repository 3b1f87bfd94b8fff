package notifications

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/digestpart"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
)

// partsAtOnce is how many parts of a digest are read together. Each names up to 600 findings.
const partsAtOnce = 50

// left are the statuses of findings that a digest leaves out.
var left = []string{lifecycle.Fixed, lifecycle.Removed, lifecycle.Ignored, lifecycle.ProvisionallyIgnored}

// keepParts stores what the next digests of rules need to know about a scan. waits has the rules whose findings wait. A
// rule that lost its digest at the same time is not one of them.
func (e *engine) keepParts(ctx context.Context, tx *ent.Tx, rules []*ent.NotificationRule, told tallies, about *scanContext) (waits map[int64]bool, err error) {
	var ids []int64
	for _, rule := range rules {
		if rule.SendFindings && len(rule.Digest) > 0 && told[policiesKey(rule)] != nil {
			ids = append(ids, rule.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	query := tx.NotificationRule.Query().Where(store.WithIDs[predicate.NotificationRule](ids), notificationrule.DigestNotNil(), notificationrule.NextDigestAtNotNil()).
		Order(ent.Asc(notificationrule.FieldID))
	if e.store.Postgres() {
		query.ForShare() // a rule that is replaced now finds the part, or is replaced after this transaction
	}
	kept, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	waits = map[int64]bool{}
	var parts []*ent.DigestPartCreate
	now := store.Now()
	for _, rule := range kept {
		if len(rule.Digest) == 0 || told[policiesKey(rule)] == nil {
			continue
		}
		stored, err := json.Marshal(told[policiesKey(rule)])
		if err != nil {
			return nil, err
		}
		waits[rule.ID] = true
		parts = append(parts, tx.DigestPart.Create().SetRuleID(rule.ID).SetProjectID(about.scan.ProjectID).SetScanID(about.scan.ID).SetTally(stored).SetCreatedAt(now))
	}
	for some := range slices.Chunk(parts, store.RowsAtOnce) {
		if err := tx.DigestPart.CreateBulk(some...).Exec(ctx); err != nil {
			return nil, err
		}
	}
	return waits, nil
}

// collection is what the parts of a digest say together.
type collection struct {
	parts []int64 // ids
	// projects has the numbers of findings by project and severity, first the ids of the first ones of each severity.
	projects map[int64]map[string]int64
	first    map[string][]int64
	// gone counts findings that are left out; maybeMore: not all findings were looked at.
	gone      int64
	maybeMore bool
	since     int64
}

// collect reads the parts of a rule's next digest, some at a time.
func (d *Digests) collect(ctx context.Context, rule *ent.NotificationRule) (*collection, error) {
	c := &collection{projects: map[int64]map[string]int64{}, first: map[string][]int64{}}
	for after := int64(0); ; {
		parts, err := d.store.Reader.DigestPart.Query().Where(digestpart.RuleID(rule.ID), digestpart.IDGT(after)).
			Order(ent.Asc(digestpart.FieldID)).Limit(partsAtOnce).All(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.add(ctx, d.store.Reader, parts); err != nil || len(parts) < partsAtOnce {
			return c, err
		}
		after = parts[len(parts)-1].ID
	}
}

// add adds some parts, without the findings that are gone by now.
func (c *collection) add(ctx context.Context, db *ent.Client, parts []*ent.DigestPart) error {
	told := make([]tally, len(parts))
	var ids, projectIDs []int64
	for i, part := range parts {
		c.parts, projectIDs = append(c.parts, part.ID), append(projectIDs, part.ProjectID)
		if err := json.Unmarshal(part.Tally, &told[i]); err != nil {
			return fmt.Errorf("part %d of a digest: %w", part.ID, err)
		}
		for _, first := range told[i].First {
			ids = append(ids, first...)
		}
	}
	present, err := db.Finding.Query().Where(store.WithIDs[predicate.Finding](ids), finding.StatusNotIn(left...)).IDs(ctx)
	if err != nil {
		return err
	}
	isPresent := make(map[int64]bool, len(present))
	for _, id := range present {
		isPresent[id] = true
	}
	names, err := projectNames(ctx, db, projectIDs)
	for i, part := range parts {
		if _, exists := names[part.ProjectID]; !exists {
			c.dropProject(told[i])
			continue
		}
		c.addTally(part.ProjectID, told[i], isPresent)
	}
	return err
}

// dropProject counts the findings of a deleted project.
func (c *collection) dropProject(told tally) {
	for _, count := range told.Counts {
		c.gone += count
	}
}

func (c *collection) addTally(projectID int64, told tally, isPresent map[int64]bool) {
	if c.since == 0 || told.Since < c.since {
		c.since = told.Since
	}
	for severity, count := range told.Counts {
		looked := told.First[severity]
		there := slices.DeleteFunc(slices.Clone(looked), func(id int64) bool { return !isPresent[id] })
		gone := int64(len(looked) - len(there))
		c.gone += gone
		c.maybeMore = c.maybeMore || count > int64(len(looked))
		if count -= gone; count == 0 {
			continue
		}
		if c.projects[projectID] == nil {
			c.projects[projectID] = map[string]int64{}
		}
		c.projects[projectID][severity] += count
		c.first[severity] = append(c.first[severity], there[:min(len(there), payload.NamedAtOnce-len(c.first[severity]))]...)
	}
}

// counts are the numbers of all projects.
func (c *collection) counts() []payload.SeverityCount {
	all := map[string]int64{}
	for _, counts := range c.projects {
		for severity, n := range counts {
			all[severity] += n
		}
	}
	return bySeverity(all)
}

// message reads the names of the first projects and of the worst findings.
func (c *collection) message(ctx context.Context, db *ent.Client, console string) (m payload.Collected, err error) {
	m.Gone, m.MaybeMore = c.gone, c.maybeMore
	order := slices.SortedFunc(maps.Keys(c.projects), c.compare)
	shown := order[:min(len(order), payload.MaxProjects)]
	for _, id := range order[len(shown):] {
		m.MoreProjects++
		for _, n := range c.projects[id] {
			m.MoreFindings += n
		}
	}
	var ids []int64
	for _, severity := range payload.Severities {
		ids = append(ids, c.first[severity]...)
	}
	ids = ids[:min(len(ids), payload.NamedAtOnce)]
	rows, err := db.Finding.Query().Where(store.WithIDs[predicate.Finding](ids)).All(ctx)
	if err != nil {
		return m, err
	}
	slices.SortFunc(rows, func(a, b *ent.Finding) int { return cmp.Compare(slices.Index(ids, a.ID), slices.Index(ids, b.ID)) })
	wanted := slices.Clone(shown)
	for _, row := range rows {
		wanted = append(wanted, row.ProjectID)
	}
	names, err := projectNames(ctx, db, wanted)
	if err != nil {
		return m, err
	}
	for _, id := range shown {
		m.Projects = append(m.Projects, payload.CollectedProject{ID: id, Name: names[id], Counts: bySeverity(c.projects[id])})
	}
	err = describeFindings(ctx, db, rows, names, console, &m)
	return m, err
}

// compare puts the project with more findings of the worst severity first.
func (c *collection) compare(a, b int64) int {
	for _, severity := range payload.Severities {
		if order := cmp.Compare(c.projects[b][severity], c.projects[a][severity]); order != 0 {
			return order
		}
	}
	return cmp.Compare(a, b)
}

func projectNames(ctx context.Context, db *ent.Client, ids []int64) (map[int64]string, error) {
	rows, err := db.Project.Query().Where(store.WithIDs[predicate.Project](ids)).Select(project.FieldID, project.FieldName).All(ctx)
	names := map[int64]string{}
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	return names, err
}

// describeFindings names findings of any projects and scans in a message.
func describeFindings(
	ctx context.Context, db *ent.Client, rows []*ent.Finding, names map[int64]string, console string, m *payload.Collected,
) error {
	about := &scanContext{scan: &ent.Scan{}, project: &ent.Project{}, rules: map[int64]*findingsv1.FindingRule{}}
	if err := about.readRules(ctx, db, rows); err != nil {
		return err
	}
	described, err := about.findings(rows)
	for i, f := range described {
		m.Refs = append(m.Refs, f.Ref)
		m.Named = append(m.Named, payload.DigestFinding{
			ID: f.ID, Severity: f.Severity, Rule: f.CheckID, Path: f.Path, Line: f.Line, Message: f.Message,
			Project: names[rows[i].ProjectID], Link: findingLink(console, f.ID),
		})
	}
	return err
}
