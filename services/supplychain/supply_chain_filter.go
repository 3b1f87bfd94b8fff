package supplychain

import (
	"context"
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

// transitivities are the contract's words for how a package comes in, by those of the table.
var transitivities = map[string]string{
	dependencies.Direct: "DIRECT", dependencies.Transitive: "TRANSITIVE", dependencies.Unknown: "UNKNOWN_TRANSITIVITY",
}

// condition is one of a filter.
type condition struct {
	where predicate.Dependency
	// by is the same condition for an index of lists, which begins with its column; nil: there is none.
	by predicate.Dependency
	// one: it is one value of that column, which the index has in the order of the list.
	one bool
	// ofProject: the index also has projects in their order.
	ofProject bool
}

// indexed is a condition of one or more values of a column that an index begins with.
func indexed(where predicate.Dependency, values int) condition {
	return condition{where: where, by: where, one: values == 1}
}

// conditions are those of a filter, which may be nil. Errors: INVALID_ARGUMENT for what cannot be answered.
func conditions(ctx context.Context, db *ent.Client, fewNames int, f *supplychainv1.DependencyFilter) ([]condition, error) {
	if len(f.GetLicensePolicySettings()) > 0 {
		return nil, apierr.InvalidArgument("dependencyFilter.licensePolicySettings",
			"dependencyFilter.licensePolicySettings must be empty: there are no licence policies; dependencyFilter.license finds packages by licence")
	}
	all, err := ofPackages(ctx, db, fewNames, f)
	if err != nil {
		return nil, err
	}
	if version := f.GetVersion(); version != "" {
		all = append(all, indexed(dependency.Version(version), 1))
	}
	if lockfile := f.GetLockfilePath(); lockfile != "" {
		all = append(all, indexed(dependency.Lockfile(lockfile), 1))
	}
	if ids := f.GetRepositoryId(); len(ids) > 0 {
		in := func(q *entsql.Selector) { q.Where(store.InIDs(q.C(dependency.FieldProjectID), ids)) }
		// Where PostgreSQL walks through projects, it begins with the first of them. SQLite goes from one to the next.
		between := store.Unindexed(dependency.And(dependency.ProjectIDGTE(slices.Min(ids)), dependency.ProjectIDLTE(slices.Max(ids))))
		c := indexed(dependency.And(in, between), len(ids))
		c.ofProject = true
		all = append(all, c)
	}
	if words := f.GetEcosystem(); len(words) > 0 {
		all = append(all, indexed(dependency.EcosystemIn(words...), len(words)))
	}
	if words := f.GetTransitivity(); len(words) > 0 {
		var stored []string
		for word, shown := range transitivities {
			if slices.Contains(words, shown) {
				stored = append(stored, word)
			}
		}
		all = append(all, indexed(dependency.TransitivityIn(stored...), len(stored)))
	}
	return all, nil
}

// limits are how much is read in one way before another is tried.
type limits struct {
	// fewNames is how many packages are told apart by their names. What more packages have, many dependencies have.
	fewNames int
	// lookedUp is how many dependencies are looked up by id at once, or walked through for a page; for large pages twice as many.
	lookedUp int
	// ofRepository is how many dependencies the next repositories are taken to have.
	ofRepository int
	// spread is how many entries of an index are looked through for repositories at once, because they may lie far from each other.
	spread int
	// sortable is how many entries of an index are put into the order of a list of dependencies, or looked through for repositories
	// that the next ones are not among.
	sortable int
}

// theLimits were measured over a million dependencies (docs/decisions/0021).
var theLimits = limits{fewNames: 2500, lookedUp: 5000, ofRepository: 2000, spread: 20_000, sortable: 100_000}

// lookedUpFor is lookedUp for pages of a size.
func (l limits) lookedUpFor(size int) int { return min(max(l.lookedUp, 10*size), 2*l.lookedUp) }

// choice is how what a filter chooses is found.
type choice struct {
	// list are the conditions, and where is all of them, for no index but that of projects.
	list  []condition
	where predicate.Dependency
	// few is the condition whose dependencies are so few that all are looked up by id; -1 for none.
	few int
	// size is that of the page.
	size   int
	limits limits
}

// choose makes a choice of a filter, which may be nil, for a page of that size. Databases plan with averages: they take a condition that
// chooses nothing for one that chooses many, and one whose dependencies are all in the last projects for one that is met everywhere. So
// each condition is asked how much it chooses, in all projects. Errors: those of conditions.
func choose(ctx context.Context, db *ent.Client, l limits, f *supplychainv1.DependencyFilter, size int) (choice, error) {
	list, err := conditions(ctx, db, l.fewNames, f)
	if err != nil {
		return choice{}, err
	}
	c := choice{list: list, size: size, limits: l}
	c.few, err = c.atMost(ctx, db, l.lookedUpFor(size))
	var all []predicate.Dependency
	if !f.GetIncludeArchived() {
		deploymentID, _ := tenant.FromContext(ctx)
		all = append(all, notArchived(deploymentID))
	}
	for _, one := range list {
		if one.ofProject && c.few < 0 {
			all = append(all, one.where)
		} else {
			all = append(all, store.Unindexed(one.where))
		}
	}
	c.where = dependency.And(all...)
	return c, err
}

// atMost is the first condition that chooses at most so many dependencies, -1 for none.
func (c choice) atMost(ctx context.Context, db *ent.Client, most int) (int, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	for i, one := range c.list {
		if one.by == nil {
			continue
		}
		those := db.Dependency.Query().Where(dependency.DeploymentID(deploymentID), one.by).Offset(most).Limit(1)
		if one.one {
			those.Order(dependency.ByID()) // that of the index, which PostgreSQL reads then
		}
		more, err := those.IDs(tenant.System(ctx))
		if err != nil {
			return -1, err
		}
		if len(more) == 0 {
			return i, nil
		}
	}
	return -1, nil
}

// ofProjects reports whether projects are chosen.
func (c choice) ofProjects() bool {
	return slices.ContainsFunc(c.list, func(c condition) bool { return c.ofProject })
}

// ordered is the first condition that an index has in the order of the list; nil for none.
func (c choice) ordered() predicate.Dependency {
	for _, one := range c.list {
		if one.one {
			return one.by
		}
	}
	return nil
}

// dependencies reads the dependencies of a choice, in their order: those behind a cursor, at most so many. What no condition chooses few
// of is likely to be among the next ones.
func (c choice) dependencies(ctx context.Context, db *ent.Client, cursor int64, most int) ([]*ent.Dependency, error) {
	next, ordered := dependency.IDGT(cursor), c.ordered()
	if c.few >= 0 || ordered == nil && (len(c.list) == 0 || c.ofProjects()) {
		return c.behind(ctx, db, cursor, most)
	}
	if ordered != nil {
		next = dependency.And(ordered, next)
	}
	last, err := db.Dependency.Query().Where(next).Order(dependency.ByID()).Offset(c.limits.lookedUpFor(c.size)).Limit(1).IDs(ctx)
	if err != nil {
		return nil, err
	}
	if len(last) == 0 {
		return inOrder(ctx, db, most, next, c.where)
	}
	rows, err := inOrder(ctx, db, most, next, c.where, dependency.IDLTE(last[0]))
	if err != nil || len(rows) == most {
		return rows, err
	}
	more, err := c.behind(ctx, db, last[0], most-len(rows))
	return append(rows, more...), err
}

// behind reads the dependencies of a choice that are behind a cursor by the best index of its conditions.
func (c choice) behind(ctx context.Context, db *ent.Client, cursor int64, most int) ([]*ent.Dependency, error) {
	behind := dependency.IDGT(cursor)
	if c.few >= 0 {
		where, err := c.all(ctx, db)
		if err != nil {
			return nil, err
		}
		return inOrder(ctx, db, most, where, behind)
	}
	best, err := c.atMost(ctx, db, c.limits.sortable)
	if err != nil {
		return nil, err
	}
	if best >= 0 && !c.list[best].one {
		return c.sorted(ctx, db, c.list[best].by, cursor, most)
	}
	ordered := c.ordered()
	if best >= 0 {
		ordered = c.list[best].by
	}
	if ordered == nil {
		return inOrder(ctx, db, most, c.where, behind)
	}
	return inOrder(ctx, db, most, ordered, c.where, behind)
}

// sorted reads dependencies by the entries of an index that a lead has there, which it sorts and then looks up in windows.
func (c choice) sorted(ctx context.Context, db *ent.Client, lead predicate.Dependency, cursor int64, most int) (rows []*ent.Dependency, err error) {
	for window := c.limits.lookedUp/5 + 4*c.size; len(rows) < most; window = min(2*window, c.limits.sortable) {
		ids, err := db.Dependency.Query().Where(lead, dependency.IDGT(cursor)).Order(sortedByID).Limit(window).IDs(ctx)
		if err != nil {
			return nil, err
		}
		more, err := inOrder(ctx, db, most-len(rows), store.WithIDs[predicate.Dependency](ids), c.where)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
		if len(ids) < window {
			break
		}
		cursor = ids[len(ids)-1]
	}
	return rows, nil
}

// inOrder reads the first dependencies that conditions choose.
func inOrder(ctx context.Context, db *ent.Client, most int, where ...predicate.Dependency) ([]*ent.Dependency, error) {
	return db.Dependency.Query().Where(where...).Order(dependency.ByID()).Limit(most).Select(listed...).All(ctx)
}

// repository is a project with the number of its dependencies that were chosen, and of those whose paths are known.
type repository struct {
	ProjectID int64 `sql:"project_id"`
	Count     int   `sql:"number"`
	Paths     int   `sql:"paths"`
}

// repositories reads what has the dependencies of a choice, by id: behind a cursor, at most so many. Where a condition chooses many, they
// are likely to be in the next projects; else, entries of an index say where they are.
func (c choice) repositories(ctx context.Context, db *ent.Client, cursor int64, most int) ([]repository, error) {
	behind := dependency.ProjectIDGT(cursor)
	if c.few >= 0 || c.ofProjects() {
		where, err := c.all(ctx, db)
		if err != nil {
			return nil, err
		}
		return repositories(ctx, db, most, where, behind)
	}
	best, err := c.atMost(ctx, db, c.limits.spread)
	if err != nil {
		return nil, err
	}
	if best >= 0 {
		return c.repositoriesByEntries(ctx, db, c.list[best], cursor, nil, most)
	}
	var last []int64
	err = db.Dependency.Query().Where(behind).Order(dependency.ByProjectID(), dependency.ByID()).Offset(min(c.limits.ofRepository*most, c.limits.sortable)).Limit(1).
		Select(dependency.FieldProjectID).Scan(ctx, &last)
	if err != nil {
		return nil, err
	}
	if len(last) == 0 {
		return repositories(ctx, db, most, c.where, behind)
	}
	found, err := repositories(ctx, db, most, c.where, behind, dependency.ProjectIDLTE(last[0]))
	if err != nil || len(found) == most {
		return found, err
	}
	if best, err = c.atMost(ctx, db, c.limits.sortable); err != nil {
		return nil, err
	}
	if best >= 0 {
		return c.repositoriesByEntries(ctx, db, c.list[best], last[0], found, most)
	}
	more, err := repositories(ctx, db, most-len(found), c.where, dependency.ProjectIDGT(last[0]))
	return append(found, more...), err
}

// repositoriesByEntries adds to those that were found what has dependencies that a lead chooses, whose entries in an index say in
// which projects they are.
func (c choice) repositoriesByEntries(ctx context.Context, db *ent.Client, lead condition, cursor int64, found []repository, most int) ([]repository, error) {
	var projects []int64
	err := db.Dependency.Query().Where(lead.by, store.Unindexed(dependency.ProjectIDGT(cursor))).Unique(true).Aggregate(unorderedProject).Scan(ctx, &projects)
	if err != nil {
		return nil, err
	}
	slices.Sort(projects)
	for window := most; len(found) < most && len(projects) > 0; window *= 2 {
		next := projects[:min(window, len(projects))]
		projects = projects[len(next):]
		some, err := repositories(ctx, db, most-len(found), entriesOf(ctx, lead.where, next), c.where)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// repositories reads the first projects that have some of the dependencies that conditions choose.
func repositories(ctx context.Context, db *ent.Client, most int, where ...predicate.Dependency) (found []repository, err error) {
	err = db.Dependency.Query().Where(where...).Order(dependency.ByProjectID()).Limit(most).
		GroupBy(dependency.FieldProjectID).Aggregate(ent.As(ent.Count(), "number"), withPaths).Scan(ctx, &found)
	return found, err
}

// entriesOf chooses what a lead does in some projects, by its entries in the index first, and then by id. PostgreSQL would turn a
// subquery round.
func entriesOf(ctx context.Context, lead predicate.Dependency, projects []int64) predicate.Dependency {
	deploymentID, _ := tenant.FromContext(ctx)
	return func(s *entsql.Selector) {
		entry := entsql.Table(dependency.Table).As("entry")
		entries := entsql.Dialect(s.Dialect()).Select(entry.C(dependency.FieldID)).From(entry)
		of := func(q *entsql.Selector) { q.Where(store.InIDs(q.C(dependency.FieldProjectID), projects)) }
		dependency.And(dependency.DeploymentID(deploymentID), lead, store.Unindexed(predicate.Dependency(of)))(entries)
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(s.C(dependency.FieldID))
			if b.Dialect() == dialect.Postgres {
				b.WriteString(" = ANY(ARRAY(").Join(entries).WriteString("))")
				return
			}
			b.WriteString(" IN (").Join(entries).WriteString(")")
		}))
	}
}

// unorderedProject is the project of a dependency, for which no index has an order: SQLite would walk through all of one that has.
func unorderedProject(s *entsql.Selector) string {
	return entsql.As("+"+s.C(dependency.FieldProjectID), dependency.FieldProjectID)
}

// sortedByID is the order of ids, which the database is to make itself: it would walk through all of them instead, if it takes the lead
// for one that chooses many.
func sortedByID(s *entsql.Selector) { s.OrderExpr(entsql.Expr("+" + s.C(dependency.FieldID))) }

// all is the condition of a choice that is not read in parts: where it is few, by their ids.
func (c choice) all(ctx context.Context, db *ent.Client) (predicate.Dependency, error) {
	if c.few < 0 {
		return c.where, nil
	}
	ids, err := db.Dependency.Query().Where(c.list[c.few].by).IDs(ctx)
	return dependency.And(store.WithIDs[predicate.Dependency](ids), c.where), err
}

// listed is what lists show of a dependency.
var listed = []string{
	dependency.FieldID, dependency.FieldProjectID, dependency.FieldScanID, dependency.FieldLockfile, dependency.FieldEcosystem,
	dependency.FieldPackage, dependency.FieldVersion, dependency.FieldTransitivity, dependency.FieldContent, dependency.FieldSeenAt,
}

// notArchived leaves out archived projects. The wall between deployments does not cover subqueries.
func notArchived(deploymentID int64) predicate.Dependency {
	return func(s *entsql.Selector) {
		archived := entsql.Table(project.Table).As("archived")
		s.Where(entsql.NotIn(s.C(dependency.FieldProjectID), entsql.Dialect(s.Dialect()).Select(archived.C(project.FieldID)).From(archived).Where(entsql.And(
			entsql.EQ(archived.C(project.FieldDeploymentID), deploymentID), entsql.NotNull(archived.C(project.FieldArchivedAt)),
		))))
	}
}
