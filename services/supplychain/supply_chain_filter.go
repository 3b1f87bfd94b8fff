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
	// lookup: an index of lists begins with its column. One value of it is there in the order of the list.
	lookup, one bool
	// ofProject: the index also has projects in their order.
	ofProject bool
}

// conditions are those of a filter, which may be nil. Errors: INVALID_ARGUMENT for what cannot be answered.
func conditions(ctx context.Context, db *ent.Client, f *supplychainv1.DependencyFilter) ([]condition, error) {
	if len(f.GetLicensePolicySettings()) > 0 {
		return nil, apierr.InvalidArgument("dependencyFilter.licensePolicySettings",
			"dependencyFilter.licensePolicySettings must be empty: there are no licence policies; dependencyFilter.license finds packages by licence")
	}
	all, err := ofPackages(ctx, db, f)
	if err != nil {
		return nil, err
	}
	if version := f.GetVersion(); version != "" {
		all = append(all, condition{where: dependency.Version(version), lookup: true, one: true})
	}
	if lockfile := f.GetLockfilePath(); lockfile != "" {
		all = append(all, condition{where: dependency.Lockfile(lockfile), lookup: true, one: true})
	}
	if ids := f.GetRepositoryId(); len(ids) > 0 {
		in := func(q *entsql.Selector) { q.Where(store.InIDs(q.C(dependency.FieldProjectID), ids)) }
		// Where PostgreSQL walks through projects, it begins with the first of them. SQLite goes from one to the next.
		between := store.Unindexed(dependency.And(dependency.ProjectIDGTE(slices.Min(ids)), dependency.ProjectIDLTE(slices.Max(ids))))
		all = append(all, condition{where: dependency.And(in, between), lookup: true, one: len(ids) == 1, ofProject: true})
	}
	if words := f.GetEcosystem(); len(words) > 0 {
		all = append(all, condition{where: dependency.EcosystemIn(words...), lookup: true, one: len(words) == 1})
	}
	if words := f.GetTransitivity(); len(words) > 0 {
		var stored []string
		for word, shown := range transitivities {
			if slices.Contains(words, shown) {
				stored = append(stored, word)
			}
		}
		all = append(all, condition{where: dependency.TransitivityIn(stored...), lookup: true, one: len(stored) == 1})
	}
	return all, nil
}

// sortable is how many entries of an index are put into the order of a list of dependencies, or looked through for repositories.
const sortable = 100_000

// lookedUp is how many dependencies are looked up by id at once.
func lookedUp(size int) int { return min(max(5000, 10*size), 10_000) }

// choice is how what a filter chooses is found.
type choice struct {
	where predicate.Dependency
	// lead is the condition whose dependencies are looked up by id, at first so many at once, or all (0); nil: the database finds
	// them.
	lead   predicate.Dependency
	window int
	// list are the conditions of which where is made.
	list []condition
}

// choose makes a choice of a filter, which may be nil, for a page of that size: of packages (byID), or of what has them. Databases
// plan with averages: they take a condition that chooses nothing for one that chooses many, and one whose dependencies are all in
// the last projects for one that is met everywhere. So each condition is asked how much it chooses, in all projects. Errors:
// those of conditions.
func choose(ctx context.Context, db *ent.Client, f *supplychainv1.DependencyFilter, size int, byID bool) (c choice, err error) {
	list, err := conditions(ctx, db, f)
	if err != nil {
		return choice{}, err
	}
	best, err := atMost(ctx, db, list, lookedUp(size))
	few := best >= 0
	sorted := false
	if best < 0 && byID && err == nil {
		best, err = atMost(ctx, db, list, sortable)
		sorted = best >= 0 && !list[best].one // else the index has them in the order of the list
	}
	if err != nil {
		return choice{}, err
	}
	if best < 0 && byID {
		best = slices.IndexFunc(list, func(c condition) bool { return c.lookup && c.one })
	}
	if c.list = list; sorted {
		c.window = 1000 + 2*size
	}
	var all []predicate.Dependency
	if !f.GetIncludeArchived() {
		deploymentID, _ := tenant.FromContext(ctx)
		all = append(all, notArchived(deploymentID))
	}
	for i, one := range list {
		switch {
		case i == best && (few || sorted):
			c.lead = one.where
			all = append(all, store.Unindexed(one.where))
		case i == best, one.ofProject && !few:
			all = append(all, one.where)
		default:
			all = append(all, store.Unindexed(one.where))
		}
	}
	c.where = dependency.And(all...)
	return c, nil
}

// atMost is the first condition that chooses at most so many dependencies, -1 for none.
func atMost(ctx context.Context, db *ent.Client, list []condition, most int) (int, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	for i, c := range list {
		if !c.lookup {
			continue
		}
		those := db.Dependency.Query().Where(dependency.DeploymentID(deploymentID), c.where).Offset(most).Limit(1)
		if c.one {
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

// dependencies reads the dependencies of a choice, in their order: those behind a cursor, at most so many.
func (c choice) dependencies(ctx context.Context, query func() *ent.DependencyQuery, cursor int64, most int) (rows []*ent.Dependency, err error) {
	if c.window == 0 {
		where, err := c.all(ctx, query)
		if err != nil {
			return nil, err
		}
		return query().Where(where, dependency.IDGT(cursor)).Order(dependency.ByID()).Limit(most).Select(listed...).All(ctx)
	}
	for window := c.window; len(rows) < most; window = min(2*window, sortable) {
		ids, err := query().Where(c.lead, dependency.IDGT(cursor)).Order(sortedByID).Limit(window).IDs(ctx)
		if err != nil {
			return nil, err
		}
		more, err := query().Where(store.WithIDs[predicate.Dependency](ids), c.where).Order(dependency.ByID()).Limit(most - len(rows)).Select(listed...).All(ctx)
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

// repository is a project with the number of its dependencies that were chosen, and of those whose paths are known.
type repository struct {
	ProjectID int64 `sql:"project_id"`
	Count     int   `sql:"number"`
	Paths     int   `sql:"paths"`
}

// repositories reads what has the dependencies of a choice, by id: behind a cursor, at most so many. What no condition chooses few of
// is likely to be in the next projects; else, entries of an index say where it is.
func (c choice) repositories(ctx context.Context, db *ent.Client, cursor int64, most int) ([]repository, error) {
	behind := dependency.ProjectIDGT(cursor)
	if c.lead != nil || slices.ContainsFunc(c.list, func(c condition) bool { return c.ofProject }) {
		where, err := c.all(ctx, db.Dependency.Query)
		if err != nil {
			return nil, err
		}
		return repositories(ctx, db, most, where, behind)
	}
	last, err := db.Project.Query().Where(project.IDGT(cursor)).Order(project.ByID()).Offset(2*most - 1).Limit(1).IDs(ctx)
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
	best, err := atMost(ctx, db, c.list, sortable)
	if err != nil {
		return nil, err
	}
	if best >= 0 {
		return c.repositoriesByEntries(ctx, db, c.list[best].where, last[0], found, most)
	}
	more, err := repositories(ctx, db, most-len(found), c.where, dependency.ProjectIDGT(last[0]))
	return append(found, more...), err
}

// repositoriesByEntries adds to those that were found what has dependencies that a lead chooses, whose entries in an index say in
// which projects they are.
func (c choice) repositoriesByEntries(ctx context.Context, db *ent.Client, lead predicate.Dependency, cursor int64, found []repository, most int) ([]repository, error) {
	var projects []int64
	err := db.Dependency.Query().Where(lead, store.Unindexed(dependency.ProjectIDGT(cursor))).Unique(true).Aggregate(unorderedProject).Scan(ctx, &projects)
	if err != nil {
		return nil, err
	}
	slices.Sort(projects)
	for window := most; len(found) < most && len(projects) > 0; window *= 2 {
		next := projects[:min(window, len(projects))]
		projects = projects[len(next):]
		some, err := repositories(ctx, db, most-len(found), entriesOf(ctx, lead, next), c.where)
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

// all is the condition of a choice without windows.
func (c choice) all(ctx context.Context, query func() *ent.DependencyQuery) (predicate.Dependency, error) {
	if c.lead == nil {
		return c.where, nil
	}
	ids, err := query().Where(c.lead).IDs(ctx)
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
