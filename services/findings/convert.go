package findings

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	entsql "entgo.io/ent/dialect/sql"
	lru "github.com/hashicorp/golang-lru/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// catalog holds the rules and projects of a page of findings. Two queries read it.
type catalog struct {
	rules    map[int64]*findingsv1.FindingRule
	projects map[int64]*ent.Project
}

func readCatalog(
	ctx context.Context, db *ent.Client, parsed *parsedRules, rows []*ent.Finding,
) (*catalog, error) {
	rules, projects := map[int64]*findingsv1.FindingRule{}, map[int64]*ent.Project{}
	for _, row := range rows {
		rules[row.RuleID], projects[row.ProjectID] = nil, nil
	}
	// All ids are one parameter, so that the text of the statement is always the same and stays prepared.
	ruleIDs, projectIDs := slices.Collect(maps.Keys(rules)), slices.Collect(maps.Keys(projects))
	stored, err := db.Rule.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(rule.FieldID), ruleIDs)) }).
		Select(rule.FieldID, rule.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range stored {
		if rules[r.ID], err = parsed.rule(r.ID, r.Content); err != nil {
			return nil, err
		}
	}
	found, err := db.Project.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(project.FieldID), projectIDs)) }).
		Select(project.FieldID, project.FieldName, project.FieldURL, project.FieldScmType, project.FieldVisibility).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		projects[p.ID] = p
	}
	// A rule or project that was deleted between the queries becomes an empty message: clients index into it.
	for id, p := range projects {
		if p == nil {
			projects[id] = &ent.Project{ID: id}
		}
	}
	for id, r := range rules {
		if r == nil {
			rules[id] = &findingsv1.FindingRule{}
		}
	}
	return &catalog{rules: rules, projects: projects}, nil
}

// parsedRules caches parsed rules: the next page mostly shows the same rules. Each use compares the stored bytes, so
// that a changed text shows at once, whichever node changed it.
type parsedRules struct {
	latest *lru.Cache[int64, parsedRule]
}

type parsedRule struct {
	stored []byte
	rule   *findingsv1.FindingRule // shared by requests, immutable
}

func newParsedRules() *parsedRules {
	latest, err := lru.New[int64, parsedRule](5000)
	if err != nil {
		panic(err) // the size is not positive
	}
	return &parsedRules{latest: latest}
}

func (p *parsedRules) rule(id int64, stored []byte) (*findingsv1.FindingRule, error) {
	if known, ok := p.latest.Get(id); ok && bytes.Equal(known.stored, stored) {
		return known.rule, nil
	}
	content := &findingsv1.FindingRule{}
	if err := proto.Unmarshal(stored, content); err != nil {
		return nil, fmt.Errorf("rule %d: %w", id, err)
	}
	content.Help, content.HelpUri = "", "" // lists do not show them
	p.latest.Add(id, parsedRule{stored: stored, rule: content})
	return content, nil
}

func timestamp(micros int64) *timestamppb.Timestamp { return timestamppb.New(store.Time(micros)) }

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
