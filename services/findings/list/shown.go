package list

import (
	"context"
	"maps"
	"slices"

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

// shown is what findings show of their rules and projects. A part is kept for as long as the catalog of its
// deployment has the same revision: a changed text shows at once, whichever node changed it.
type shown struct {
	rules    *lru.Cache[int64, *shownPart]
	projects *lru.Cache[int64, *shownPart]
}

// shownPart is what a rule, or a project, says in its findings. It is shared by requests, and never changed.
type shownPart struct {
	revision   int64
	rule       *findingsv1.FindingRule
	categories []string // of a rule
	repository *findingsv1.FindingRepository
	links      codehost.Repository // of a project
}

func newShown() *shown {
	s := &shown{}
	for _, cache := range []**lru.Cache[int64, *shownPart]{&s.rules, &s.projects} {
		var err error
		if *cache, err = lru.New[int64, *shownPart](5000); err != nil {
			panic(err) // the size is not positive
		}
	}
	return s
}

// parts are those of one page, by the place of the row.
type parts []*shownPart

func rowsRule(row *listed) int64    { return row.ruleID }
func rowsProject(row *listed) int64 { return row.projectID }

// of returns the parts of a page, with at most one query for the rules and one for the projects. What was deleted
// meanwhile is shown as empty: clients index into it.
func (s *shown) of(
	ctx context.Context, db *ent.Client, rows []*listed, revision int64,
) (rules, projects parts, err error) {
	both := make(parts, 2*len(rows))
	rules, projects = both[:len(rows):len(rows)], both[len(rows):]
	if missing := rules.fill(s.rules, rows, rowsRule, revision); len(missing) > 0 {
		if err := s.readRules(ctx, db, missing, revision); err != nil {
			return nil, nil, err
		}
		rules.complete(rows, rowsRule, missing)
	}
	if missing := projects.fill(s.projects, rows, rowsProject, revision); len(missing) > 0 {
		if err := s.readProjects(ctx, db, missing, revision); err != nil {
			return nil, nil, err
		}
		projects.complete(rows, rowsProject, missing)
	}
	return rules, projects, nil
}

// fill takes from a cache what is current, and returns the ids that must be read, for their parts.
func (p parts) fill(
	cache *lru.Cache[int64, *shownPart], rows []*listed, id func(*listed) int64, revision int64,
) (missing map[int64]*shownPart) {
	for i := range rows {
		wanted := id(rows[i])
		if i > 0 && id(rows[i-1]) == wanted {
			p[i] = p[i-1]
		} else if part, ok := cache.Get(wanted); ok && part.revision >= revision {
			p[i] = part
		}
		if p[i] != nil {
			continue
		}
		if missing == nil {
			missing = map[int64]*shownPart{}
		}
		missing[wanted] = nil
	}
	return missing
}

// complete takes what was read.
func (p parts) complete(rows []*listed, id func(*listed) int64, read map[int64]*shownPart) {
	for i := range rows {
		if p[i] == nil {
			p[i] = read[id(rows[i])]
		}
	}
}

func (s *shown) readRules(ctx context.Context, db *ent.Client, into map[int64]*shownPart, revision int64) error {
	ids := slices.Collect(maps.Keys(into))
	found, err := db.Rule.Query().Where(func(sel *entsql.Selector) {
		sel.Where(store.InIDs(sel.C(rule.FieldID), ids))
	}).
		Select(rule.FieldID, rule.FieldContent).All(ctx)
	if err != nil {
		return err
	}
	for id := range into {
		into[id] = rulePart(&findingsv1.FindingRule{}, revision)
	}
	for _, row := range found {
		content := &findingsv1.FindingRule{}
		if err := proto.Unmarshal(row.Content, content); err != nil {
			return err
		}
		into[row.ID] = rulePart(content, revision)
		s.rules.Add(row.ID, into[row.ID])
	}
	return nil
}

func rulePart(about *findingsv1.FindingRule, revision int64) *shownPart {
	part := &shownPart{revision: revision, rule: about}
	if about.GetCategory() != "" {
		part.categories = []string{about.GetCategory()}
	}
	return part
}

func (s *shown) readProjects(ctx context.Context, db *ent.Client, into map[int64]*shownPart, revision int64) error {
	ids := slices.Collect(maps.Keys(into))
	found, err := db.Project.Query().Where(func(sel *entsql.Selector) {
		sel.Where(store.InIDs(sel.C(project.FieldID), ids))
	}).
		Select(project.FieldID, project.FieldName, project.FieldURL, project.FieldScmType).All(ctx)
	if err != nil {
		return err
	}
	for id := range into {
		into[id] = projectPart(&ent.Project{}, revision)
	}
	for _, row := range found {
		into[row.ID] = projectPart(row, revision)
		s.projects.Add(row.ID, into[row.ID])
	}
	return nil
}

func projectPart(row *ent.Project, revision int64) *shownPart {
	return &shownPart{
		revision:   revision,
		repository: &findingsv1.FindingRepository{Name: row.Name, Url: row.URL},
		links:      codehost.NewRepository(row.ScmType, row.URL),
	}
}
