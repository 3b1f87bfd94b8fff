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
	"github.com/palisade/palisade/services/findings/rulehelp"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/codehost"
)

// catalogCache caches the rules and projects that findings show. An entry is valid until the catalog revision of its
// deployment changes, so a changed text shows at once, whichever node changed it.
type catalogCache struct {
	rules    *lru.Cache[int64, *catalogEntry]
	projects *lru.Cache[int64, *catalogEntry]
}

// catalogEntry is what findings show of a rule or a project. Requests share it, so it is immutable.
type catalogEntry struct {
	revision   int64
	rule       *findingsv1.FindingRule
	assistant  *findingsv1.Assistant // the help of a rule as its explanation; nil without help
	categories []string              // of a rule
	repository *findingsv1.FindingRepository
	links      codehost.Repository // of a project
	boards     projectBoards       // of a project
}

func newCatalogCache() *catalogCache {
	c := &catalogCache{}
	for _, cache := range []**lru.Cache[int64, *catalogEntry]{&c.rules, &c.projects} {
		var err error
		if *cache, err = lru.New[int64, *catalogEntry](5000); err != nil {
			panic(err) // the size is not positive
		}
	}
	return c
}

// catalogEntries holds one entry for each row of a page, in the order of the rows.
type catalogEntries []*catalogEntry

func ruleIDOf(row *listed) int64    { return row.ruleID }
func projectIDOf(row *listed) int64 { return row.projectID }

// lookup returns the entries of a page. It sends at most one query for rules and two for projects. A rule or project
// that was deleted concurrently becomes an empty message, not nil: clients index into it.
func (c *catalogCache) lookup(
	ctx context.Context, db *ent.Client, rows []*listed, revision int64,
) (rules, projects catalogEntries, err error) {
	both := make(catalogEntries, 2*len(rows))
	rules, projects = both[:len(rows):len(rows)], both[len(rows):]
	if missing := rules.fill(c.rules, rows, ruleIDOf, revision); len(missing) > 0 {
		if err := c.readRules(ctx, db, missing, revision); err != nil {
			return nil, nil, err
		}
		rules.complete(rows, ruleIDOf, missing)
	}
	if missing := projects.fill(c.projects, rows, projectIDOf, revision); len(missing) > 0 {
		if err := c.readProjects(ctx, db, missing, revision); err != nil {
			return nil, nil, err
		}
		projects.complete(rows, projectIDOf, missing)
	}
	return rules, projects, nil
}

// fill sets the entries with a current revision from the cache. It returns a map with the ids of the missing entries.
func (e catalogEntries) fill(
	cache *lru.Cache[int64, *catalogEntry], rows []*listed, id func(*listed) int64, revision int64,
) (missing map[int64]*catalogEntry) {
	for i := range rows {
		wanted := id(rows[i])
		if i > 0 && id(rows[i-1]) == wanted {
			e[i] = e[i-1]
		} else if entry, ok := cache.Get(wanted); ok && entry.revision >= revision {
			e[i] = entry
		}
		if e[i] != nil {
			continue
		}
		if missing == nil {
			missing = map[int64]*catalogEntry{}
		}
		missing[wanted] = nil
	}
	return missing
}

// complete sets the missing entries.
func (e catalogEntries) complete(rows []*listed, id func(*listed) int64, read map[int64]*catalogEntry) {
	for i := range rows {
		if e[i] == nil {
			e[i] = read[id(rows[i])]
		}
	}
}

func (c *catalogCache) readRules(ctx context.Context, db *ent.Client, into map[int64]*catalogEntry, revision int64) error {
	ids := slices.Collect(maps.Keys(into))
	found, err := db.Rule.Query().Where(func(sel *entsql.Selector) {
		sel.Where(store.InIDs(sel.C(rule.FieldID), ids))
	}).
		Select(rule.FieldID, rule.FieldContent).All(ctx)
	if err != nil {
		return err
	}
	for id := range into {
		into[id] = ruleEntry(&findingsv1.FindingRule{}, revision)
	}
	for _, row := range found {
		content := &findingsv1.FindingRule{}
		if err := proto.Unmarshal(row.Content, content); err != nil {
			return err
		}
		into[row.ID] = ruleEntry(content, revision)
		c.rules.Add(row.ID, into[row.ID])
	}
	return nil
}

func ruleEntry(about *findingsv1.FindingRule, revision int64) *catalogEntry {
	entry := &catalogEntry{revision: revision, rule: about}
	if help := rulehelp.Explanation(about, rulehelp.MaxListed); help != nil {
		entry.assistant = &findingsv1.Assistant{RuleExplanation: help}
	}
	about.Help, about.HelpUri, about.SecretType, about.References, about.PublishedAt = "", "", "", nil, nil // lists do not show them in the rule
	if about.GetCategory() != "" {
		entry.categories = []string{about.GetCategory()}
	}
	return entry
}

func (c *catalogCache) readProjects(ctx context.Context, db *ent.Client, into map[int64]*catalogEntry, revision int64) error {
	ids := slices.Collect(maps.Keys(into))
	found, err := db.Project.Query().Where(func(sel *entsql.Selector) {
		sel.Where(store.InIDs(sel.C(project.FieldID), ids))
	}).
		Select(project.FieldID, project.FieldName, project.FieldURL, project.FieldScmType).All(ctx)
	if err != nil {
		return err
	}
	assigned, err := boardsOf(ctx, db, ids)
	if err != nil {
		return err
	}
	for id := range into {
		into[id] = projectEntry(&ent.Project{}, revision)
	}
	for _, row := range found {
		into[row.ID] = projectEntry(row, revision)
		into[row.ID].boards = assigned[row.ID]
		c.projects.Add(row.ID, into[row.ID])
	}
	return nil
}

func projectEntry(row *ent.Project, revision int64) *catalogEntry {
	return &catalogEntry{
		revision:   revision,
		repository: &findingsv1.FindingRepository{Name: row.Name, Url: row.URL},
		links:      codehost.NewRepository(row.ScmType, row.URL),
	}
}
