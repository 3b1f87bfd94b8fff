package supplychain

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// transitivities maps stored words to the contract's.
var transitivities = map[string]string{
	dependencies.Direct: "DIRECT", dependencies.Transitive: "TRANSITIVE", dependencies.Unknown: "UNKNOWN_TRANSITIVITY",
}

// condition is one condition of a filter.
type condition struct {
	where predicate.Dependency
	// index is the same condition in the form of an index of lists; nil if there is no index.
	index predicate.Dependency
	// singleValue: it has a single value of the index's first column, so that the index has the order of the list.
	singleValue bool
	// key is the cache key among conditions with an index.
	key string
	// hasProject: the index also contains projects, in order.
	hasProject bool
	// haveEntries: entries holds the index entries.
	haveEntries bool
	entries     []entry
}

// indexed builds a condition on one or more values of an index's first column.
func indexed[T any](column string, values []T, where predicate.Dependency) condition {
	return condition{where: where, index: where, singleValue: len(values) == 1, key: fmt.Sprintf("%s/%#v", column, values)}
}

// conditions converts a filter, which may be nil. It returns INVALID_ARGUMENT for filters that cannot be answered.
func (s *SupplyChain) conditions(ctx context.Context, db *ent.Client, f *supplychainv1.DependencyFilter) ([]condition, error) {
	if len(f.GetLicensePolicySettings()) > 0 {
		return nil, apierr.InvalidArgument("dependencyFilter.licensePolicySettings",
			"dependencyFilter.licensePolicySettings must be empty: there are no licence policies; dependencyFilter.license finds packages by licence")
	}
	all, err := s.ofPackages(ctx, db, f)
	if err != nil {
		return nil, err
	}
	if version := f.GetVersion(); version != "" {
		all = append(all, indexed(dependency.FieldVersion, []string{version}, dependency.Version(version)))
	}
	if lockfile := f.GetLockfilePath(); lockfile != "" {
		all = append(all, indexed(dependency.FieldLockfile, []string{lockfile}, dependency.Lockfile(lockfile)))
	}
	if ids := f.GetRepositoryId(); len(ids) > 0 {
		in := func(q *entsql.Selector) { q.Where(store.InIDs(q.C(dependency.FieldProjectID), ids)) }
		// A range on projects lets PostgreSQL start its index scan at the first one. SQLite skips from one to the next.
		between := store.Unindexed(dependency.And(dependency.ProjectIDGTE(slices.Min(ids)), dependency.ProjectIDLTE(slices.Max(ids))))
		c := indexed(dependency.FieldProjectID, ids, dependency.And(in, between))
		c.hasProject = true
		all = append(all, c)
	}
	if words := f.GetEcosystem(); len(words) > 0 {
		all = append(all, indexed(dependency.FieldEcosystem, words, store.OneOf(dependency.FieldEcosystem, words)))
	}
	if words := f.GetTransitivity(); len(words) > 0 {
		var stored []string
		for word, shown := range transitivities {
			if slices.Contains(words, shown) {
				stored = append(stored, word)
			}
		}
		slices.Sort(stored)
		all = append(all, indexed(dependency.FieldTransitivity, stored, store.OneOf(dependency.FieldTransitivity, stored)))
	}
	return all, nil
}

// limits are the thresholds between ways to execute a query.
type limits struct {
	// maxNames is the maximum number of packages selected by name. More packages usually have many dependencies.
	maxNames int
	// maxLookups is the maximum number of dependencies looked up by id at once, or scanned for a page; up to twice as many
	// for large pages.
	maxLookups int
	// maxIntersect is the maximum number of index entries to intersect with another index's entries.
	maxIntersect int
	// assumedPerRepository is the assumed number of dependencies per repository.
	assumedPerRepository int
	// maxSortable is the maximum number of index entries to sort into list order.
	maxSortable int
}

// defaultLimits were measured with a million dependencies (docs/decisions/0021).
var defaultLimits = limits{maxNames: 2500, maxLookups: 5000, maxIntersect: 25_000, assumedPerRepository: 2000, maxSortable: 100_000}

// window is how many index entries are looked up first, because they usually suffice.
func (l limits) window() int { return l.maxLookups / 5 }

// maxLookupsFor is maxLookups for a page size.
func (l limits) maxLookupsFor(size int) int { return min(max(l.maxLookups, 10*size), 2*l.maxLookups) }

// queryPlan is the plan to find a filter's dependencies.
type queryPlan struct {
	list []condition
	// base holds the conditions outside of the filter.
	base []predicate.Dependency
	// driving is the position of the driving condition: few entries, which are read completely; -1 if there is none.
	driving int
	// size is the page size.
	size        int
	limits      limits
	selectivity *selectivity
}

// planQuery plans the query of a filter, which may be nil. Databases plan with average selectivity: they overestimate a
// condition that matches nothing, and assume that matches are spread evenly when all are in the last projects. So it
// counts the matches of each condition in all projects. It returns the errors of conditions.
func (s *SupplyChain) planQuery(ctx context.Context, db *ent.Client, f *supplychainv1.DependencyFilter, size int) (queryPlan, error) {
	list, err := s.conditions(ctx, db, f)
	if err != nil {
		return queryPlan{}, err
	}
	c := queryPlan{list: list, size: size, limits: s.limits, selectivity: s.selectivity}
	if !f.GetIncludeArchived() {
		deploymentID, _ := tenant.FromContext(ctx)
		c.base = append(c.base, notArchived(deploymentID))
	}
	if c.driving, err = c.atMost(ctx, db, c.limits.maxLookupsFor(size)); err != nil || c.driving >= 0 {
		return c, err
	}
	c.driving = slices.IndexFunc(list, func(one condition) bool { return one.haveEntries })
	return c, nil
}

// maxIntersect sets a driving condition if two conditions are selective enough to intersect their entries.
func (c queryPlan) intersect(ctx context.Context, db *ent.Client) (queryPlan, error) {
	if c.driving >= 0 || len(c.list) < 2 {
		return c, nil
	}
	all, err := c.allAtMost(ctx, db, c.limits.maxIntersect)
	if len(all) > 1 {
		c.driving = all[0]
	}
	return c, err
}

// where is the condition on a dependency found through driving, or on any for -1. It prevents the use of indexes,
// except the one of projects.
func (c queryPlan) where(driving int) predicate.Dependency {
	all := slices.Clone(c.base)
	for i, one := range c.list {
		switch {
		case i == driving: // implied by its entries
		case one.hasProject && driving < 0:
			all = append(all, one.where)
		default:
			all = append(all, store.Unindexed(one.where))
		}
	}
	return dependency.And(all...)
}

// atMost returns the first condition that matches at most most dependencies; -1 if there is none.
func (c queryPlan) atMost(ctx context.Context, db *ent.Client, most int) (int, error) {
	for i, one := range c.list {
		if few, err := c.selectivity.atMost(ctx, db, one, most); few || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// allAtMost returns all conditions that match at most most dependencies.
func (c queryPlan) allAtMost(ctx context.Context, db *ent.Client, most int) (all []int, err error) {
	for i, one := range c.list {
		few, err := c.selectivity.atMost(ctx, db, one, most)
		if err != nil {
			return nil, err
		}
		if few {
			all = append(all, i)
		}
	}
	return all, nil
}

// entriesOf reads all index entries of a condition, unordered, with packIDs or packAll. If there are many, it
// intersects them with the entries of other selective conditions.
func (c queryPlan) entriesOf(ctx context.Context, db *ent.Client, driving int, pack []ent.AggregateFunc) ([]entry, error) {
	entries, err := c.list[driving].readEntries(ctx, db, pack)
	if err != nil || len(entries) <= c.limits.window() {
		return entries, err
	}
	others, err := c.allAtMost(ctx, db, c.limits.maxIntersect)
	if err != nil {
		return nil, err
	}
	for _, i := range others {
		if i == driving || len(entries) <= c.limits.window() {
			continue
		}
		other, err := c.list[i].readEntries(ctx, db, packIDs)
		if err != nil {
			return nil, err
		}
		entries = intersection(entries, other)
	}
	return entries, nil
}

// ofProjects reports whether the filter selects projects.
func (c queryPlan) ofProjects() bool {
	return slices.ContainsFunc(c.list, func(c condition) bool { return c.hasProject })
}

// ordered returns the first condition with an index in list order; nil if there is none.
func (c queryPlan) ordered() predicate.Dependency {
	for _, one := range c.list {
		if one.singleValue {
			return one.index
		}
	}
	return nil
}

// dependencies reads up to most dependencies after a cursor, in list order. If no condition is selective, matches are
// likely among the next rows, so it scans a bounded range first.
func (c queryPlan) dependencies(ctx context.Context, db *ent.Client, cursor int64, most int) ([]*ent.Dependency, error) {
	c, err := c.intersect(ctx, db)
	if err != nil {
		return nil, err
	}
	next, ordered := dependency.IDGT(cursor), c.ordered()
	if c.driving >= 0 || ordered == nil && (len(c.list) == 0 || c.ofProjects()) {
		return c.after(ctx, db, cursor, most)
	}
	if ordered != nil {
		next = dependency.And(ordered, next)
	}
	last, err := db.Dependency.Query().Where(next).Order(dependency.ByID()).Offset(c.limits.maxLookupsFor(c.size)).Limit(1).IDs(ctx)
	if err != nil {
		return nil, err
	}
	if len(last) == 0 {
		return inOrder(ctx, db, most, next, c.where(-1))
	}
	rows, err := inOrder(ctx, db, most, next, c.where(-1), dependency.IDLTE(last[0]))
	if err != nil || len(rows) == most {
		return rows, err
	}
	more, err := c.after(ctx, db, last[0], most-len(rows))
	return append(rows, more...), err
}

// after reads the dependencies after a cursor through the best index of the conditions.
func (c queryPlan) after(ctx context.Context, db *ent.Client, cursor int64, most int) ([]*ent.Dependency, error) {
	if c.driving >= 0 {
		return c.dependenciesByEntries(ctx, db, c.driving, cursor, most)
	}
	best, err := c.atMost(ctx, db, c.limits.maxSortable)
	if err != nil {
		return nil, err
	}
	if best >= 0 && !c.list[best].singleValue {
		return c.dependenciesByEntries(ctx, db, best, cursor, most)
	}
	where := []predicate.Dependency{c.where(-1), dependency.IDGT(cursor)}
	if best >= 0 {
		where = append(where, c.list[best].index)
	} else if ordered := c.ordered(); ordered != nil {
		where = append(where, ordered)
	}
	return inOrder(ctx, db, most, where...)
}

// dependenciesByEntries reads dependencies through a condition's index entries, in windows and in list order.
func (c queryPlan) dependenciesByEntries(ctx context.Context, db *ent.Client, driving int, cursor int64, most int) (rows []*ent.Dependency, err error) {
	entries, err := c.entriesOf(ctx, db, driving, packIDs)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, e := range entries {
		if e.id > cursor {
			ids = append(ids, e.id)
		}
	}
	slices.Sort(ids)
	for window := c.limits.window() + 4*c.size; len(rows) < most && len(ids) > 0; window *= 2 {
		next := ids[:min(window, len(ids))]
		ids = ids[len(next):]
		more, err := inOrder(ctx, db, most-len(rows), withIDs(next), c.where(driving))
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// inOrder reads the first dependencies that match conditions.
func inOrder(ctx context.Context, db *ent.Client, most int, where ...predicate.Dependency) ([]*ent.Dependency, error) {
	return db.Dependency.Query().Where(where...).Order(dependency.ByID()).Limit(most).Select(listed...).All(ctx)
}

// repository is a project with its number of matching dependencies, and how many of them have known paths.
type repository struct {
	ProjectID int64 `sql:"project_id"`
	Count     int   `sql:"number"`
	Paths     int   `sql:"paths"`
}

// repositories reads up to most repositories with matching dependencies after a cursor, by id. It uses index entries,
// which contain the project. If no condition is selective, matches are likely in the next projects, so it scans these
// first.
func (c queryPlan) repositories(ctx context.Context, db *ent.Client, cursor int64, most int) ([]repository, error) {
	c, err := c.intersect(ctx, db)
	if err != nil {
		return nil, err
	}
	behind, driving := dependency.ProjectIDGT(cursor), c.driving
	if driving < 0 && !c.ofProjects() {
		if driving, err = c.atMost(ctx, db, c.limits.maxSortable); err != nil {
			return nil, err
		}
	}
	if driving >= 0 {
		return c.repositoriesByEntries(ctx, db, driving, cursor, most)
	}
	if c.ofProjects() {
		return repositories(ctx, db, most, c.where(-1), behind)
	}
	var last []int64
	err = db.Dependency.Query().Where(behind).Order(dependency.ByProjectID(), dependency.ByID()).Offset(min(c.limits.assumedPerRepository*most, c.limits.maxSortable)).Limit(1).
		Select(dependency.FieldProjectID).Scan(ctx, &last)
	if err != nil {
		return nil, err
	}
	if len(last) == 0 {
		return repositories(ctx, db, most, c.where(-1), behind)
	}
	found, err := repositories(ctx, db, most, c.where(-1), behind, dependency.ProjectIDLTE(last[0]))
	if err != nil || len(found) == most {
		return found, err
	}
	more, err := repositories(ctx, db, most-len(found), c.where(-1), dependency.ProjectIDGT(last[0]))
	return append(found, more...), err
}

// repositoriesByEntries reads repositories through a condition's index entries.
func (c queryPlan) repositoriesByEntries(ctx context.Context, db *ent.Client, driving int, cursor int64, most int) (found []repository, err error) {
	entries, err := c.entriesOf(ctx, db, driving, packAll)
	if err != nil {
		return nil, err
	}
	of := map[int64][]int64{} // ids by project
	for _, e := range entries {
		if e.project > cursor {
			of[e.project] = append(of[e.project], e.id)
		}
	}
	projects := slices.Sorted(maps.Keys(of))
	least, window := most, c.limits.window()
	for ; len(found) < most && len(projects) > 0; least, window = 2*least, 2*window {
		var ids []int64
		n := 0
		for n < len(projects) && (n < least || len(ids)+len(of[projects[n]]) <= window) {
			ids = append(ids, of[projects[n]]...)
			n++
		}
		projects = projects[n:]
		some, err := repositories(ctx, db, most-len(found), withIDs(ids), c.where(driving))
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// repositories reads the first projects with matching dependencies.
func repositories(ctx context.Context, db *ent.Client, most int, where ...predicate.Dependency) (found []repository, err error) {
	err = db.Dependency.Query().Where(where...).Order(dependency.ByProjectID()).Limit(most).
		GroupBy(dependency.FieldProjectID).Aggregate(ent.As(ent.Count(), "number"), withPaths).Scan(ctx, &found)
	return found, err
}

// hasProject is the plan's condition for the dependencies of one project.
func (c queryPlan) ofProject(ctx context.Context, db *ent.Client, id int64) (predicate.Dependency, error) {
	if c.driving < 0 {
		return dependency.And(dependency.ProjectID(id), c.where(-1)), nil
	}
	entries, err := c.entriesOf(ctx, db, c.driving, packAll)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, e := range entries {
		if e.project == id {
			ids = append(ids, e.id)
		}
	}
	return dependency.And(withIDs(ids), c.where(c.driving)), nil
}

// withIDs selects rows by many ids. It hides them from PostgreSQL's planner, which would choose a full scan for
// thousands of ids.
func withIDs(ids []int64) predicate.Dependency {
	return func(s *entsql.Selector) {
		if s.Dialect() != dialect.Postgres {
			store.WithIDs[predicate.Dependency](ids)(s)
			return
		}
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(s.C(dependency.FieldID) + " = ANY(ARRAY(SELECT unnest(CAST(").Arg(ids).WriteString(" AS bigint[]))))")
		}))
	}
}

// listed are the columns of lists.
var listed = []string{
	dependency.FieldID, dependency.FieldProjectID, dependency.FieldScanID, dependency.FieldLockfile, dependency.FieldEcosystem,
	dependency.FieldPackage, dependency.FieldVersion, dependency.FieldTransitivity, dependency.FieldContent,
}

// notArchived excludes archived projects. The tenant policy does not cover subqueries, so it repeats the deployment.
func notArchived(deploymentID int64) predicate.Dependency {
	return func(s *entsql.Selector) {
		archived := entsql.Table(project.Table).As("archived")
		s.Where(entsql.NotIn(s.C(dependency.FieldProjectID), entsql.Dialect(s.Dialect()).Select(archived.C(project.FieldID)).From(archived).Where(entsql.And(
			entsql.EQ(archived.C(project.FieldDeploymentID), deploymentID), entsql.NotNull(archived.C(project.FieldArchivedAt)),
		))))
	}
}
