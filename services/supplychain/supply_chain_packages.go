package supplychain

import (
	"context"
	"encoding/json"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/dependencypackage"
	"github.com/palisade/palisade/ent/predicate"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/osv"
)

// fewNames is how many packages are told apart by their names. What more packages have, many dependencies have.
const fewNames = 2500

// ofPackages are the conditions on what all dependencies of a package share. The names of the packages that meet all of them are
// looked up first, because there are far fewer packages than dependencies.
func ofPackages(ctx context.Context, db *ent.Client, f *supplychainv1.DependencyFilter) (all []condition, err error) {
	var where []predicate.DependencyPackage
	var told []predicate.Dependency // what the index of packages tells of a dependency
	if name := strings.TrimSpace(f.GetName()); name != "" {
		where = append(where, dependencypackage.PackageContainsFold(name))
		all = append(all, condition{where: dependency.PackageContainsFold(name)})
	}
	if licenses := f.GetLicense(); len(licenses) > 0 {
		where = append(where, predicate.DependencyPackage(licensed(licenses)))
		all = append(all, condition{where: licensed(licenses)})
	}
	if packages := f.GetPackageFilters(); len(packages) > 0 {
		var named []predicate.DependencyPackage
		var options, versions []predicate.Dependency
		for _, p := range packages {
			name, of, version, err := ofPackage(ctx, db, p)
			if err != nil {
				return nil, err
			}
			if version != nil {
				of = dependency.And(of, version)
				versions = append(versions, version)
			}
			named, options = append(named, name), append(options, of)
		}
		where = append(where, dependencypackage.Or(named...))
		if len(packages) > 1 {
			told = append(told, dependency.Or(options...))
		} else { // the names are those of this filter
			told = append(told, versions...)
		}
		all = append(all, condition{where: dependency.Or(options...)})
		if exact := exactVersions(packages); len(exact) > 0 {
			all = append(all, indexed(dependency.VersionIn(exact...), len(exact)))
		}
	}
	if len(where) == 0 {
		return nil, nil
	}
	if words := f.GetEcosystem(); len(words) > 0 { // alone it has an index of its own
		where = append(where, dependencypackage.EcosystemIn(words...))
		told = append(told, dependency.EcosystemIn(words...))
	}
	names, few, err := packageNames(ctx, db, where...)
	if few {
		chosen := indexed(packageIn(names), len(names))
		if chosen.by = packageByIndex(names); len(told) > 0 {
			chosen.where, chosen.by = dependency.And(chosen.where, store.Unindexed(told...)), dependency.And(chosen.by, store.Unindexed(told...))
		}
		all = append([]condition{chosen}, all...)
	}
	return all, err
}

// exactVersions are those of the filters, if each has one.
func exactVersions(packages []*supplychainv1.PackageFilter) (versions []string) {
	for _, p := range packages {
		if p.GetExactVersion() == "" {
			return nil
		}
		versions = append(versions, p.GetExactVersion())
	}
	return versions
}

// packageNames are those of the packages that meet conditions; few is false when there are too many.
func packageNames(ctx context.Context, db *ent.Client, where ...predicate.DependencyPackage) (names []string, few bool, err error) {
	err = db.DependencyPackage.Query().Where(where...).Unique(true).Limit(fewNames+1).
		Select(dependencypackage.FieldPackage).Scan(ctx, &names)
	return names, len(names) <= fewNames, err
}

// packageIn is the condition that a dependency is of one of the packages, which are one parameter however many they are.
func packageIn(names []string) predicate.Dependency {
	if len(names) == 1 {
		return dependency.Package(names[0])
	}
	return func(s *entsql.Selector) { s.Where(inTexts(s.C(dependency.FieldPackage), names)) }
}

// packageByIndex is packageIn for the index of packages. PostgreSQL would compare each name with its statistics, which takes milliseconds
// for thousands, only to find out how many dependencies they have; it looks at the names when it has a plan. As the condition on
// many rows that another index finds this is slow: only names that the plan knows are hashed.
func packageByIndex(names []string) predicate.Dependency {
	return func(s *entsql.Selector) {
		if len(names) < 2 || s.Dialect() != dialect.Postgres {
			packageIn(names)(s)
			return
		}
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(s.C(dependency.FieldPackage) + " = ANY(ARRAY(SELECT unnest(CAST(").Arg(names).WriteString(" AS text[]))))")
		}))
	}
}

// inTexts is the condition that a text is one of many, which are one parameter.
func inTexts(text string, list []string) *entsql.Predicate {
	if len(list) == 0 {
		return entsql.False()
	}
	return entsql.P(func(b *entsql.Builder) {
		b.WriteString(text)
		if b.Dialect() == dialect.Postgres {
			b.WriteString(" = ANY(CAST(").Arg(list).WriteString(" AS text[]))")
			return
		}
		encoded, err := json.Marshal(list)
		if err != nil {
			b.AddError(err)
			return
		}
		b.WriteString(" IN (SELECT value FROM json_each(").Arg(string(encoded)).WriteString("))")
	})
}

// licensed is the condition that a package has one of the licences: most have one only, the others are joined by commas.
func licensed(licenses []string) predicate.Dependency {
	return func(s *entsql.Selector) {
		license := s.C(dependency.FieldLicense)
		options := []*entsql.Predicate{entsql.In(license, store.Parameters(licenses)...)}
		position := "instr"
		if s.Dialect() == dialect.Postgres {
			position = "strpos"
		}
		for _, l := range licenses {
			options = append(options, entsql.P(func(b *entsql.Builder) {
				b.WriteString(position + "(',' || ").WriteString(license).WriteString(" || ',', ").Arg("," + l + ",").WriteString(") > 0")
			}))
		}
		s.Where(entsql.Or(options...))
	}
}

// ofPackage is what one package filter says of the name of a package, of that of a dependency, and of its version (nil: nothing).
// Databases cannot order versions: where the filter has bounds, the versions that there are of such packages are read first, and
// those within remain.
func ofPackage(ctx context.Context, db *ent.Client, f *supplychainv1.PackageFilter) (name predicate.DependencyPackage, where, version predicate.Dependency, err error) {
	name, where = dependencypackage.PackageContainsFold(f.GetName()), dependency.PackageContainsFold(f.GetName())
	if f.GetExactNameMatch() {
		name, where = dependencypackage.Package(f.GetName()), dependency.Package(f.GetName())
	}
	bounded := f.GetVersionLowerBound() != "" || f.GetVersionUpperBound() != ""
	if bounded && !f.GetExactNameMatch() {
		names, few, err := packageNames(ctx, db, name)
		if err != nil {
			return nil, nil, nil, err
		}
		if few {
			name, where = predicate.DependencyPackage(packageIn(names)), packageIn(names)
		}
	}
	of := where
	if exact := f.GetExactVersion(); exact != "" {
		version = dependency.Version(exact)
		of = dependency.And(where, version)
	}
	if !bounded {
		return name, where, version, nil
	}
	within, err := versionsWithin(ctx, db, f, of)
	return name, where, func(s *entsql.Selector) {
		version := "(" + s.C(dependency.FieldEcosystem) + " || '/' || " + s.C(dependency.FieldVersion) + ")"
		s.Where(inTexts(version, within))
	}, err
}

// versionsWithin are the versions within the bounds of a filter, of the dependencies that it finds without them: each behind its
// ecosystem and a slash.
func versionsWithin(ctx context.Context, db *ent.Client, f *supplychainv1.PackageFilter, where predicate.Dependency) (within []string, err error) {
	var versions []struct {
		Ecosystem string `sql:"ecosystem"`
		Version   string `sql:"version"`
	}
	err = db.Dependency.Query().Where(where).GroupBy(dependency.FieldEcosystem, dependency.FieldVersion).Scan(ctx, &versions)
	bounds := boundsOf(f)
	for _, v := range versions {
		if osv.Affects(bounds, v.Ecosystem, v.Version) {
			within = append(within, v.Ecosystem+"/"+v.Version)
		}
	}
	return within, err
}

// boundsOf writes the bounds, which belong to the range themselves, as an advisory would.
func boundsOf(f *supplychainv1.PackageFilter) *storev1.AffectedVersions {
	bounds := &storev1.AffectedRange{Events: []*storev1.AffectedEvent{{Introduced: "0"}}}
	if lower := f.GetVersionLowerBound(); lower != "" {
		bounds.Events[0].Introduced = lower
	}
	if upper := f.GetVersionUpperBound(); upper != "" {
		bounds.Events = append(bounds.Events, &storev1.AffectedEvent{LastAffected: upper})
	}
	return &storev1.AffectedVersions{Ranges: []*storev1.AffectedRange{bounds}}
}
