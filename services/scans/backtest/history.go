package backtest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/services/internal/store"
)

// idsAtOnce is the number of ids in one query.
const idsAtOnce = 5000

// history is what is stored about the period, in memory.
type history struct {
	db       *ent.Client
	in       Input
	projects map[int64]*replayed
	// scans are the scans of the period by id.
	scans map[int64]*scanOf
	// reachesBack is the time of the oldest compared state.
	reachesBack int64
	found       int
	rules       map[int64]*ent.Rule
	analyses    numbers[analysis]
	kinds       numbers[kind]
	steps       []step
}

// replayed is a project with its history.
type replayed struct {
	Project
	refs     map[string]*refOf
	scans    []*scanOf // of the period, by their end
	compared map[string][]*ent.Scan
	findings []*findingOf
	outcomes map[int32]*outcome // by kind of finding
	byKey    map[int64][]*findingOf
	codes    codes
}

// refOf is a ref of a project.
type refOf struct {
	name string
	// scans are its scans in the period, by end. hasFull and hasDiff report whether there are full scans and diff scans,
	// hasOlder whether there is a scan of an older commit than an earlier scan.
	scans                      []*scanOf
	hasFull, hasDiff, hasOlder bool
}

// numbers gives equal values one number.
type numbers[T comparable] struct {
	of   map[T]int32
	list []T
}

func (n *numbers[T]) number(value T) int32 {
	number, ok := n.of[value]
	if !ok {
		if n.of == nil {
			n.of = map[T]int32{}
		}
		number = int32(len(n.list)) //nolint:gosec // fewer than maxFindings
		n.of[value], n.list = number, append(n.list, value)
	}
	return number
}

func newHistory(db *ent.Client, in Input) *history {
	return &history{
		db: db, in: in, projects: map[int64]*replayed{}, scans: map[int64]*scanOf{}, reachesBack: in.From, rules: map[int64]*ent.Rule{},
	}
}

// inOrder returns the projects by id.
func (h *history) inOrder() []*replayed {
	return slices.SortedFunc(maps.Values(h.projects), func(a, b *replayed) int { return cmp.Compare(a.ID, b.ID) })
}

func (p *replayed) ref(name string) *refOf {
	of := p.refs[name]
	if of == nil {
		of = &refOf{name: name}
		p.refs[name] = of
	}
	return of
}

// readProjects reads the projects and their tags.
func (h *history) readProjects(ctx context.Context) error {
	query := h.db.Project.Query()
	if len(h.in.Projects) > 0 {
		query.Where(store.OneOf(project.FieldID, h.in.Projects))
	}
	rows, err := query.Select(project.FieldID, project.FieldName, project.FieldPrimaryBranch, project.FieldDefaultBranch).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		h.projects[row.ID] = &replayed{
			Project: Project{ID: row.ID, Name: row.Name, primary: cmp.Or(row.PrimaryBranch, row.DefaultBranch)},
			refs:    map[string]*refOf{}, compared: map[string][]*ent.Scan{}, outcomes: map[int32]*outcome{},
		}
	}
	names := map[int64]string{}
	tags, err := h.db.Tag.Query().Select(tag.FieldID, tag.FieldName).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range tags {
		names[row.ID] = row.Name
	}
	links := h.db.ProjectTag.Query()
	if len(h.in.Projects) > 0 {
		links.Where(store.OneOf(projecttag.FieldProjectID, h.in.Projects))
	}
	linked, err := links.All(ctx)
	for _, link := range linked {
		if p := h.projects[link.ProjectID]; p != nil {
			p.tags = append(p.tags, names[link.TagID])
		}
	}
	return err
}

// readRules reads the rules of the findings.
func (h *history) readRules(ctx context.Context) error {
	ids := slices.Sorted(maps.Keys(h.rules))
	for part := range slices.Chunk(ids, idsAtOnce) {
		rows, err := h.db.Rule.Query().Where(store.OneOf(rule.FieldID, part)).
			Select(rule.FieldID, rule.FieldName, rule.FieldCategory, rule.FieldConfidence).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			h.rules[row.ID] = row
		}
	}
	for id, of := range h.rules {
		if of == nil {
			delete(h.rules, id)
		}
	}
	return nil
}
