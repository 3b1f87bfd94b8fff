package export

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/exceptionrequest"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/findingmatch"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/exploit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// rowsAtOnce is how many findings are read and written together.
	rowsAtOnce = 1000
	// keptEntries bounds the cache of rules and projects.
	keptEntries = 5000
)

// exported is a finding with what belongs to it.
type exported struct {
	*ent.Finding
	content *storev1.FindingContent
	rule    *ruleRow
	project *ent.Project
	events  []*ent.FindingEvent
	matches []*ent.FindingMatch
	// requests are the requests to ignore it.
	requests []*ent.ExceptionRequest
}

// ruleRow is a rule with its decoded content.
type ruleRow struct {
	*ent.Rule
	content *findingsv1.FindingRule
}

// batch is a number of findings, by id.
type batch struct {
	rows     []*exported
	exploits exploit.Known
}

// catalog has the rules and projects of recent findings.
type catalog struct {
	rules    map[int64]*ruleRow
	projects map[int64]*ent.Project
}

func newCatalog() *catalog {
	return &catalog{rules: map[int64]*ruleRow{}, projects: map[int64]*ent.Project{}}
}

// read reads findings by their ids. Those that are gone, or that the caller does not see any more, are missing in it.
func (c *catalog) read(ctx context.Context, db *ent.Client, ids []int64, needs needs) (*batch, error) {
	query := db.Finding.Query().Order(ent.Asc(finding.FieldID))
	query.Modify(store.FoundByIDs(ids))
	rows, err := query.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	if err := c.add(ctx, db, rows); err != nil {
		return nil, err
	}
	b := &batch{rows: make([]*exported, 0, len(rows))}
	byID := make(map[int64]*exported, len(rows))
	var advisories []string
	for _, row := range rows {
		e := &exported{Finding: row, rule: c.rules[row.RuleID], project: c.projects[row.ProjectID]}
		if e.rule == nil || e.project == nil {
			continue // deleted since
		}
		if e.content, err = blob.Decode(row.Content); err != nil {
			return nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
		if row.Advisory != nil {
			advisories = append(advisories, *row.Advisory)
		}
		b.rows, byID[row.ID] = append(b.rows, e), e
	}
	if needs.exploits {
		if b.exploits, err = exploit.Read(ctx, db, advisories); err != nil {
			return nil, fmt.Errorf("read exploits: %w", err)
		}
	}
	return b, b.readHistory(ctx, db, ids, byID, needs)
}

// readHistory reads events, matches and exception requests, oldest first.
func (b *batch) readHistory(ctx context.Context, db *ent.Client, ids []int64, byID map[int64]*exported, needs needs) error {
	if needs.events {
		events, err := db.FindingEvent.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(findingevent.FieldFindingID), ids)) }).
			Order(ent.Asc(findingevent.FieldID)).All(ctx)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		for _, e := range events {
			if of := byID[e.FindingID]; of != nil {
				of.events = append(of.events, e)
			}
		}
	}
	if needs.matches {
		matches, err := db.FindingMatch.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(findingmatch.FieldFindingID), ids)) }).
			Order(ent.Asc(findingmatch.FieldID)).All(ctx)
		if err != nil {
			return fmt.Errorf("read matches: %w", err)
		}
		for _, m := range matches {
			if of := byID[m.FindingID]; of != nil {
				of.matches = append(of.matches, m)
			}
		}
	}
	if needs.requests {
		requests, err := db.ExceptionRequest.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(exceptionrequest.FieldFindingID), ids)) }).
			Order(ent.Asc(exceptionrequest.FieldID)).All(ctx)
		if err != nil {
			return fmt.Errorf("read exception requests: %w", err)
		}
		for _, r := range requests {
			if of := byID[r.FindingID]; of != nil {
				of.requests = append(of.requests, r)
			}
		}
	}
	return nil
}

// add reads the rules and projects of findings that the catalog does not have.
func (c *catalog) add(ctx context.Context, db *ent.Client, rows []*ent.Finding) error {
	if len(c.rules) > keptEntries || len(c.projects) > keptEntries {
		clear(c.rules)
		clear(c.projects)
	}
	rules, projects := missing(rows, c.rules, func(f *ent.Finding) int64 { return f.RuleID }), missing(rows, c.projects, func(f *ent.Finding) int64 { return f.ProjectID })
	if len(rules) > 0 {
		list, err := db.Rule.Query().Where(store.WithIDs[predicate.Rule](rules)).Order(ent.Asc(rule.FieldID)).All(ctx)
		if err != nil {
			return fmt.Errorf("read rules: %w", err)
		}
		for _, r := range list {
			content := &findingsv1.FindingRule{}
			if err := proto.Unmarshal(r.Content, content); err != nil {
				return fmt.Errorf("rule %d: %w", r.ID, err)
			}
			c.rules[r.ID] = &ruleRow{r, content}
		}
	}
	if len(projects) > 0 {
		list, err := db.Project.Query().Where(store.WithIDs[predicate.Project](projects)).Order(ent.Asc(project.FieldID)).All(ctx)
		if err != nil {
			return fmt.Errorf("read projects: %w", err)
		}
		for _, p := range list {
			c.projects[p.ID] = p
		}
	}
	return nil
}

// missing are the ids that findings name and known does not have.
func missing[T any](rows []*ent.Finding, known map[int64]T, id func(*ent.Finding) int64) (ids []int64) {
	seen := map[int64]bool{}
	for _, row := range rows {
		of := id(row)
		if _, ok := known[of]; !ok && !seen[of] {
			seen[of] = true
			ids = append(ids, of)
		}
	}
	return ids
}

// text is an optional column; empty if it is null.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
