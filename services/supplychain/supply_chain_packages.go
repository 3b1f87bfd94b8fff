package supplychain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/dependencypackage"
	"github.com/palisade/palisade/ent/predicate"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	namelist "github.com/palisade/palisade/services/internal/names"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/osv"
)

// ofPackages returns the conditions on package properties. It looks up the matching package names first, because there
// are far fewer packages than dependencies.
func (s *SupplyChain) ofPackages(ctx context.Context, db *ent.Client, f *supplychainv1.DependencyFilter) (all []condition, err error) {
	var where []predicate.DependencyPackage
	var named []condition             // conditions that package names decide
	var others []predicate.Dependency // other conditions in the index of packages
	if name := strings.TrimSpace(f.GetName()); name != "" {
		where = append(where, predicate.DependencyPackage(nameHas(name)))
		named = append(named, condition{where: nameHas(name)})
	}
	licenses, err := splitLicenses(ctx, db, f.GetLicense())
	if err != nil {
		return nil, err
	}
	if len(licenses) > 0 {
		where = append(where, predicate.DependencyPackage(licensed(licenses)))
		all = append(all, condition{where: licensed(licenses)})
	}
	var names []string
	few := false
	var chosen condition
	if packages := distinct(f.GetPackageFilters()); len(packages) > 0 {
		entries := s.limits.maxSortable
		if len(where) > 0 || len(f.GetEcosystem()) > 0 {
			entries = 0 // these entries do not cover all conditions
		}
		options, err := s.ofEachPackage(ctx, db, packages, entries)
		if err != nil {
			return nil, err
		}
		if names, few = options.names(s.limits.maxNames); few {
			if few = entries > 0; few {
				if chosen.entries, chosen.haveEntries, err = options.entries(ctx, db, s.selectivity, entries); err != nil {
					return nil, err
				}
			}
			where = append(where, predicate.DependencyPackage(packageIn(names)))
		} else {
			where = append(where, predicate.DependencyPackage(options.any(packageOption.named)))
		}
		if slices.ContainsFunc(options, func(o packageOption) bool { return o.version != nil }) {
			others = append(others, options.any(packageOption.chosen))
		}
		named = append(named, condition{where: options.any(packageOption.chosen)})
		if exact := exactVersions(packages); len(exact) > 0 {
			all = append(all, indexed(dependency.FieldVersion, exact, store.OneOf(dependency.FieldVersion, exact)))
		}
	}
	if len(where) == 0 {
		return nil, nil
	}
	if words := f.GetEcosystem(); len(words) > 0 { // on its own it has its own index
		where = append(where, store.OneOf(dependencypackage.FieldEcosystem, words))
		others = append(others, store.OneOf(dependency.FieldEcosystem, words))
	}
	if !few {
		if names, few, err = packageNames(ctx, db, s.limits.maxNames, where...); err != nil {
			return nil, err
		}
	}
	if !few {
		return append(named, all...), nil
	}
	chosen.where, chosen.index, chosen.singleValue = packageIn(names), packageByIndex(names), len(names) == 1
	chosen.key = canonical(&supplychainv1.DependencyFilter{
		Name: f.GetName(), License: licenses, PackageFilters: f.GetPackageFilters(), Ecosystem: f.GetEcosystem(),
	})
	if len(others) > 0 {
		chosen.where, chosen.index = dependency.And(chosen.where, store.Unindexed(others...)), dependency.And(chosen.index, store.Unindexed(others...))
	}
	return append([]condition{chosen}, all...), nil
}

// canonical returns a comparable form of a filter.
func canonical(filter proto.Message) string {
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(filter) // cannot fail: the texts were just parsed
	return fmt.Sprintf("%T/%s", filter, text)
}

// exactVersions returns the filters' exact versions, if each has one.
func exactVersions(packages []*supplychainv1.PackageFilter) (versions []string) {
	for _, p := range packages {
		if p.GetExactVersion() == "" {
			return nil
		}
		versions = append(versions, p.GetExactVersion())
	}
	return versions
}

// distinct removes duplicates.
func distinct(packages []*supplychainv1.PackageFilter) (once []*supplychainv1.PackageFilter) {
	for _, p := range packages {
		if !slices.ContainsFunc(once, func(other *supplychainv1.PackageFilter) bool { return proto.Equal(p, other) }) {
			once = append(once, p)
		}
	}
	return once
}

// nameHas is the condition that a package's name contains a text, case-insensitively. It uses SQLite's LIKE, because
// ent would call LOWER on each name, and PostgreSQL's ILIKE, with the text in ent's spelling. Neither SQLite nor
// PostgreSQL with the C locale folds case outside of ASCII.
func nameHas(part string) predicate.Dependency {
	plain := dependency.PackageContains(part)
	return func(s *entsql.Selector) {
		if s.Dialect() != dialect.Postgres {
			plain(s)
			return
		}
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(s.C(dependency.FieldPackage) + " ILIKE ").Arg("%" + likeEscapes.Replace(part) + "%")
		}))
	}
}

var likeEscapes = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`)

// packageNames returns the names of matching packages; few is false if there are too many.
func packageNames(ctx context.Context, db *ent.Client, fewNames int, where ...predicate.DependencyPackage) (names []string, few bool, err error) {
	err = db.DependencyPackage.Query().Where(where...).Unique(true).Limit(fewNames+1).
		Select(dependencypackage.FieldPackage).Scan(ctx, &names)
	return names, len(names) <= fewNames, err
}

// packageIn is the condition that a dependency's package is in a list, passed as one parameter of any length.
func packageIn(names []string) predicate.Dependency {
	if len(names) == 1 {
		return dependency.Package(names[0])
	}
	return func(s *entsql.Selector) { s.Where(store.InOneParameter(s.C(dependency.FieldPackage), names)) }
}

// packageByIndex is packageIn for the index of packages. It hides the names from PostgreSQL's planner, which would
// compare each with its statistics (milliseconds for thousands of names) to estimate the number of rows. As a filter on
// many rows from another index it is slow, because only names known to the planner are hashed.
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

// licensed is the condition that a package has one of the licences. Most packages have one; several are joined by
// commas.
func licensed(licenses []string) predicate.Dependency {
	return func(s *entsql.Selector) {
		license := s.C(dependency.FieldLicense)
		options := []*entsql.Predicate{store.In(license, licenses)}
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

// maxLicenses is the maximum number of licences of a filter, as in the protos.
const maxLicenses = 100

// splitLicenses splits the values at commas. A licence with commas, such as "Apache License, Version 2.0", stays whole
// if a package has it. The commas between two licences of a package have no space, so that "MIT,ISC" is a list.
func splitLicenses(ctx context.Context, db *ent.Client, values []string) ([]string, error) {
	return namelist.Split("license", values, maxLicenses, func(values []string) ([]string, error) {
		values = slices.DeleteFunc(values, func(v string) bool { return strings.Count(v, ",") != strings.Count(v, ", ") })
		if len(values) == 0 {
			return nil, nil
		}
		stored, err := db.DependencyPackage.Query().Where(predicate.DependencyPackage(licensed(values))).Unique(true).
			Select(dependencypackage.FieldLicense).Strings(ctx)
		all := "," + strings.Join(stored, ",") + ","
		return slices.DeleteFunc(values, func(v string) bool { return !strings.Contains(all, ","+v+",") }), err
	})
}

// packageOption holds the conditions of one package filter on a dependency: on its package name, and on its version
// (nil: any).
type packageOption struct {
	// names lists the packages; nil if there are too many, and then part is their common part.
	names   []string
	part    string
	version predicate.Dependency
	filter  proto.Message
	// haveEntries: entries holds the matching dependencies.
	haveEntries bool
	entries     []entry
}

func (o packageOption) named() predicate.Dependency {
	if o.names == nil {
		return nameHas(o.part)
	}
	return packageIn(o.names)
}

func (o packageOption) chosen() predicate.Dependency {
	if o.version == nil {
		return o.named()
	}
	return dependency.And(o.named(), o.version)
}

// packageOptions are alternative filters: a dependency must match one.
type packageOptions []packageOption

// any is the condition that a dependency matches one of them.
func (o packageOptions) any(of func(packageOption) predicate.Dependency) predicate.Dependency {
	if len(o) == 0 {
		return packageIn(nil)
	}
	var options []predicate.Dependency
	for _, one := range o {
		options = append(options, of(one))
	}
	return dependency.Or(options...)
}

// names returns the packages of all options; few is false if there are too many.
func (o packageOptions) names(fewNames int) (names []string, few bool) {
	for _, one := range o {
		if one.names == nil {
			return nil, false
		}
		names = append(names, one.names...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names, len(names) <= fewNames
}

// entries returns the entries of all options, if at least one has a range of versions that was read and the options
// match at most the given number of dependencies.
func (o packageOptions) entries(ctx context.Context, db *ent.Client, sizes *selectivity, most int) (all []entry, read bool, err error) {
	if !slices.ContainsFunc(o, func(one packageOption) bool { return one.haveEntries }) {
		return nil, false, nil
	}
	for _, one := range o {
		if !one.haveEntries {
			c := condition{index: packageByIndex(one.names), key: canonical(one.filter)}
			if one.version != nil {
				c.index = dependency.And(c.index, store.Unindexed(one.version))
			}
			if few, err := sizes.atMost(ctx, db, c, most); !few || err != nil {
				return nil, false, err
			}
			if one.entries, err = c.readEntries(ctx, db, packAll); err != nil {
				return nil, false, err
			}
		}
		if all = append(all, one.entries...); len(all) > most {
			return nil, false, nil
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.id, b.id) })
	return slices.Compact(all), true, nil
}

// ofEachPackage converts package filters to options, without options that match nothing. Databases cannot order
// versions, so for a filter with bounds it reads the existing versions of its packages and keeps the ones within. It
// also keeps the index entries of their dependencies, up to a maximum number.
func (s *SupplyChain) ofEachPackage(ctx context.Context, db *ent.Client, packages []*supplychainv1.PackageFilter, entries int) (options packageOptions, err error) {
	for _, f := range packages {
		o := packageOption{names: []string{f.GetName()}, part: f.GetName(), filter: f}
		if !f.GetExactNameMatch() { // a known name needs no lookup: the index of packages finds it
			names, few, err := packageNames(ctx, db, s.limits.maxNames, predicate.DependencyPackage(nameHas(o.part)))
			if err != nil {
				return nil, err
			}
			if o.names = names; !few {
				o.names = nil
			} else if len(names) == 0 {
				continue
			}
		}
		if exact := f.GetExactVersion(); exact != "" {
			o.version = dependency.Version(exact)
		}
		if f.GetVersionLowerBound() != "" || f.GetVersionUpperBound() != "" {
			if o.names != nil && entries > 0 {
				those := condition{index: packageByIndex(o.names), key: canonical(&supplychainv1.PackageFilter{Name: f.GetName(), ExactNameMatch: f.GetExactNameMatch()})}
				if o.haveEntries, err = s.selectivity.atMost(ctx, db, those, entries); err != nil {
					return nil, err
				}
			}
			within, found, err := versionsWithin(ctx, db, f, o)
			if err != nil {
				return nil, err
			}
			o.entries = found
			entries -= len(found)
			if len(within) == 0 {
				continue
			}
			o.version = func(s *entsql.Selector) {
				version := "(" + s.C(dependency.FieldEcosystem) + " || '/' || " + s.C(dependency.FieldVersion) + ")"
				s.Where(store.InOneParameter(version, within))
			}
		}
		options = append(options, o)
	}
	return options, nil
}

// versionsWithin returns the versions within a filter's bounds among the dependencies that match otherwise, each as
// ecosystem/version. entries holds the entries of their dependencies, if requested.
func versionsWithin(ctx context.Context, db *ent.Client, f *supplychainv1.PackageFilter, o packageOption) (within []string, entries []entry, err error) {
	var versions []struct {
		Ecosystem string `sql:"ecosystem"`
		Version   string `sql:"version"`
		IDs       []byte `sql:"ids"`
		Projects  []byte `sql:"projects"`
	}
	group := db.Dependency.Query().Where(o.chosen()).GroupBy(dependency.FieldEcosystem, dependency.FieldVersion)
	if o.haveEntries {
		group.Aggregate(packAll...)
	}
	if err := group.Scan(ctx, &versions); err != nil {
		return nil, nil, err
	}
	isWithin := osv.Within(f.GetVersionLowerBound(), f.GetVersionUpperBound())
	for _, v := range versions {
		if !isWithin(v.Ecosystem, v.Version) {
			continue
		}
		within = append(within, v.Ecosystem+"/"+v.Version)
		if entries, err = (packedEntries{v.IDs, v.Projects}).appendTo(entries); err != nil {
			return nil, nil, err
		}
	}
	return within, entries, nil
}
