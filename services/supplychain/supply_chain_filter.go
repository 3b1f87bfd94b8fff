package supplychain

import (
	"context"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

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
}

// conditions are those of a filter, which may be nil. Errors: INVALID_ARGUMENT for what cannot be answered.
func (s *SupplyChain) conditions(ctx context.Context, f *supplychainv1.DependencyFilter) ([]condition, error) {
	if len(f.GetLicensePolicySettings()) > 0 {
		return nil, apierr.InvalidArgument("dependencyFilter.licensePolicySettings",
			"dependencyFilter.licensePolicySettings must be empty: there are no licence policies; dependencyFilter.license finds packages by licence")
	}
	all, err := s.ofPackages(ctx, f)
	if err != nil {
		return nil, err
	}
	if version := f.GetVersion(); version != "" {
		all = append(all, condition{dependency.Version(version), true, true})
	}
	if lockfile := f.GetLockfilePath(); lockfile != "" {
		all = append(all, condition{dependency.Lockfile(lockfile), true, true})
	}
	if ids := f.GetRepositoryId(); len(ids) > 0 {
		in := func(q *entsql.Selector) { q.Where(store.InIDs(q.C(dependency.FieldProjectID), ids)) }
		all = append(all, condition{in, true, len(ids) == 1})
	}
	if words := f.GetEcosystem(); len(words) > 0 {
		all = append(all, condition{dependency.EcosystemIn(words...), true, len(words) == 1})
	}
	if words := f.GetTransitivity(); len(words) > 0 {
		var stored []string
		for word, shown := range transitivities {
			if slices.Contains(words, shown) {
				stored = append(stored, word)
			}
		}
		all = append(all, condition{dependency.TransitivityIn(stored...), true, len(stored) == 1})
	}
	return all, nil
}

// lookedUp is how many dependencies are looked up one by one for a page: of what has more, as many as it takes are found soon in
// the order of the list.
func lookedUp(size int) int { return min(max(5000, 10*size), 10_000) }

// where makes one condition of a filter, which may be nil, for a page of that size: of packages (byID), or of what has them.
// Errors: those of conditions.
func (s *SupplyChain) where(ctx context.Context, f *supplychainv1.DependencyFilter, size int, byID bool) (predicate.Dependency, error) {
	list, err := s.conditions(ctx, f)
	if err != nil {
		return nil, err
	}
	deploymentID, _ := tenant.FromContext(ctx)
	ids, few, err := s.fewest(tenant.System(ctx), deploymentID, list, lookedUp(size))
	if err != nil {
		return nil, err
	}
	var all []predicate.Dependency
	if few {
		all = append(all, func(q *entsql.Selector) { q.Where(store.InIDs(q.C(dependency.FieldID), ids)) })
	}
	if !f.GetIncludeArchived() {
		all = append(all, notArchived(deploymentID))
	}
	ordered := !few && byID
	for _, c := range list {
		if ordered && c.lookup && c.one {
			all, ordered = append(all, c.where), false
		} else {
			all = append(all, unindexed(c.where))
		}
	}
	return dependency.And(all...), nil
}

// fewest are the dependencies that the condition chooses which chooses the fewest, in all projects; few is false when each
// chooses more than most. Databases guess that from averages, and take a condition that chooses nothing for one that chooses
// many.
func (s *SupplyChain) fewest(ctx context.Context, deploymentID int64, list []condition, most int) (ids []int64, few bool, err error) {
	least := most + 1
	for _, c := range list {
		if !c.lookup || least == 0 {
			continue
		}
		those := s.store.Reader.Dependency.Query().Where(dependency.DeploymentID(deploymentID), c.where)
		more, err := those.Clone().Offset(least - 1).Exist(ctx)
		if err != nil {
			return nil, false, err
		}
		if more {
			continue
		}
		if ids, err = those.IDs(ctx); err != nil {
			return nil, false, err
		}
		least, few = len(ids), true
	}
	return ids, few, nil
}

// unindexed keeps SQLite from finding rows by an index of the condition: a plus in front of it is all that takes.
func unindexed(where predicate.Dependency) predicate.Dependency {
	return func(s *entsql.Selector) {
		part := entsql.Dialect(s.Dialect()).Select().From(s.Table())
		where(part)
		if s.Dialect() != dialect.SQLite {
			s.Where(part.P())
			return
		}
		s.Where(entsql.P(func(b *entsql.Builder) { b.WriteString("+(").Join(part.P()).WriteByte(')') }))
	}
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
