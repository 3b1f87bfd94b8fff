package findings

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"
	lru "github.com/hashicorp/golang-lru/v2"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/codehost"
)

// shown is what findings show of their rules and projects, as parts of encoded findings. A part is kept for as long as the
// catalog of its deployment has the same revision: a changed text shows at once, whichever node changed it.
type shown struct {
	rules    *lru.Cache[int64, shownPart]
	projects *lru.Cache[int64, shownPart]
}

// shownPart is a part of an encoded Finding: what its rule, or its project, says.
type shownPart struct {
	revision int64
	encoded  []byte
	links    codehost.Repository // of a project
}

func newShown() *shown {
	s := &shown{}
	for _, cache := range []**lru.Cache[int64, shownPart]{&s.rules, &s.projects} {
		var err error
		if *cache, err = lru.New[int64, shownPart](5000); err != nil {
			panic(err) // the size is not positive
		}
	}
	return s
}

// parts are those of one page, by the id of the rule or project.
type parts map[int64]shownPart

// known takes from a cache what is current, and returns the ids that must be read.
func (p parts) known(cache *lru.Cache[int64, shownPart], revision int64) (missing []int64) {
	for id := range p {
		if part, ok := cache.Get(id); ok && part.revision >= revision {
			p[id] = part
			continue
		}
		missing = append(missing, id)
	}
	return missing
}

// of returns the parts of a page, with at most one query for the rules and one for the projects. What was deleted
// meanwhile is shown as empty: clients index into it.
func (s *shown) of(ctx context.Context, db *ent.Client, rows []listed, revision int64) (rules, projects parts, err error) {
	rules, projects = parts{}, parts{}
	for i := range rows {
		rules[rows[i].facts.RuleID], projects[rows[i].facts.ProjectID] = shownPart{}, shownPart{}
	}
	if missing := rules.known(s.rules, revision); len(missing) > 0 {
		if err := s.readRules(ctx, db, rules, missing, revision); err != nil {
			return nil, nil, err
		}
	}
	if missing := projects.known(s.projects, revision); len(missing) > 0 {
		if err := s.readProjects(ctx, db, projects, missing, revision); err != nil {
			return nil, nil, err
		}
	}
	return rules, projects, nil
}

func (s *shown) readRules(ctx context.Context, db *ent.Client, into parts, ids []int64, revision int64) error {
	found, err := db.Rule.Query().Where(func(sel *entsql.Selector) { sel.Where(store.InIDs(sel.C(rule.FieldID), ids)) }).
		Select(rule.FieldID, rule.FieldContent).All(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if into[id], err = rulePart(&findingsv1.FindingRule{}, revision); err != nil {
			return err
		}
	}
	for _, row := range found {
		content := &findingsv1.FindingRule{}
		if err := proto.Unmarshal(row.Content, content); err != nil {
			return err
		}
		if into[row.ID], err = rulePart(content, revision); err != nil {
			return err
		}
		s.rules.Add(row.ID, into[row.ID])
	}
	return nil
}

func rulePart(about *findingsv1.FindingRule, revision int64) (shownPart, error) {
	part := &findingsv1.Finding{Confidence: about.GetConfidence(), RuleName: about.GetName(), Rule: about}
	if about.GetCategory() != "" {
		part.Categories = []string{about.GetCategory()}
	}
	encoded, err := proto.Marshal(part)
	return shownPart{revision: revision, encoded: encoded}, err
}

func (s *shown) readProjects(ctx context.Context, db *ent.Client, into parts, ids []int64, revision int64) error {
	found, err := db.Project.Query().Where(func(sel *entsql.Selector) { sel.Where(store.InIDs(sel.C(project.FieldID), ids)) }).
		Select(project.FieldID, project.FieldName, project.FieldURL, project.FieldScmType).All(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if into[id], err = projectPart(&ent.Project{}, revision); err != nil {
			return err
		}
	}
	for _, row := range found {
		if into[row.ID], err = projectPart(row, revision); err != nil {
			return err
		}
		s.projects.Add(row.ID, into[row.ID])
	}
	return nil
}

func projectPart(row *ent.Project, revision int64) (shownPart, error) {
	encoded, err := proto.Marshal(&findingsv1.Finding{Repository: &findingsv1.FindingRepository{Name: row.Name, Url: row.URL}})
	return shownPart{revision: revision, encoded: encoded, links: codehost.NewRepository(row.ScmType, row.URL)}, err
}
