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
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/osv"
)

// ofPackages are the conditions on what all dependencies of a package share. The names of the packages that meet all of
// them are looked up first, because there are far fewer packages than dependencies.
func (s *SupplyChain) ofPackages(ctx context.Context, db *ent.Client, f *supplychainv1.DependencyFilter) (all []condition, err error) {
	var where []predicate.DependencyPackage
	var named []condition           // what the names of packages tell
	var told []predicate.Dependency // what the index of packages tells of a dependency besides
	if name := strings.TrimSpace(f.GetName()); name != "" {
		where = append(where, predicate.DependencyPackage(nameHas(name)))
		named = append(named, condition{where: nameHas(name)})
	}
	if licenses := f.GetLicense(); len(licenses) > 0 {
		where = append(where, predicate.DependencyPackage(licensed(licenses)))
		all = append(all, condition{where: licensed(licenses)})
	}
	var names []string
	few := false
	var chosen condition
	if packages := distinct(f.GetPackageFilters()); len(packages) > 0 {
		entries := s.limits.sortable
		if len(where) > 0 || len(f.GetEcosystem()) > 0 {
			entries = 0 // they are not all that is asked
		}
		options, err := s.ofEachPackage(ctx, db, packages, entries)
		if err != nil {
			return nil, err
		}
		if names, few = options.names(s.limits.fewNames); few {
			if few = entries > 0; few {
				if chosen.entries, chosen.read, err = options.entries(ctx, db, s.sizes, entries); err != nil {
					return nil, err
				}
			}
			where = append(where, predicate.DependencyPackage(packageIn(names)))
		} else {
			where = append(where, predicate.DependencyPackage(options.any(packageOption.named)))
		}
		if slices.ContainsFunc(options, func(o packageOption) bool { return o.version != nil }) {
			told = append(told, options.any(packageOption.chosen))
		}
		named = append(named, condition{where: options.any(packageOption.chosen)})
		if exact := exactVersions(packages); len(exact) > 0 {
			all = append(all, indexed(dependency.FieldVersion, exact, store.OneOf(dependency.FieldVersion, exact)))
		}
	}
	if len(where) == 0 {
		return nil, nil
	}
	if words := f.GetEcosystem(); len(words) > 0 { // alone it has an index of its own
		where = append(where, store.OneOf(dependencypackage.FieldEcosystem, words))
		told = append(told, store.OneOf(dependency.FieldEcosystem, words))
	}
	if !few {
		if names, few, err = packageNames(ctx, db, s.limits.fewNames, where...); err != nil {
			return nil, err
		}
	}
	if !few {
		return append(named, all...), nil
	}
	chosen.where, chosen.by, chosen.one = packageIn(names), packageByIndex(names), len(names) == 1
	chosen.named = canonical(&supplychainv1.DependencyFilter{
		Name: f.GetName(), License: f.GetLicense(), PackageFilters: f.GetPackageFilters(), Ecosystem: f.GetEcosystem(),
	})
	if len(told) > 0 {
		chosen.where, chosen.by = dependency.And(chosen.where, store.Unindexed(told...)), dependency.And(chosen.by, store.Unindexed(told...))
	}
	return append([]condition{chosen}, all...), nil
}

// canonical tells filters apart.
func canonical(filter proto.Message) string {
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(filter) // of texts that were just read: it cannot fail
	return fmt.Sprintf("%T/%s", filter, text)
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

// distinct leaves out what is there twice.
func distinct(packages []*supplychainv1.PackageFilter) (once []*supplychainv1.PackageFilter) {
	for _, p := range packages {
		if !slices.ContainsFunc(once, func(other *supplychainv1.PackageFilter) bool { return proto.Equal(p, other) }) {
			once = append(once, p)
		}
	}
	return once
}

// nameHas is the condition that a part of a package's name is this text, without regard to case: of SQLite's LIKE,
// where ent would write each name in small letters first, and of PostgreSQL's ILIKE, for which ent writes the text so;
// neither SQLite nor PostgreSQL with the locale C knows small letters outside of ASCII.
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

// packageNames are those of the packages that meet conditions; few is false when there are too many.
func packageNames(ctx context.Context, db *ent.Client, fewNames int, where ...predicate.DependencyPackage) (names []string, few bool, err error) {
	err = db.DependencyPackage.Query().Where(where...).Unique(true).Limit(fewNames+1).
		Select(dependencypackage.FieldPackage).Scan(ctx, &names)
	return names, len(names) <= fewNames, err
}

// packageIn is the condition that a dependency is of one of the packages, which are one parameter however many they
// are.
func packageIn(names []string) predicate.Dependency {
	if len(names) == 1 {
		return dependency.Package(names[0])
	}
	return func(s *entsql.Selector) { s.Where(store.InOneParameter(s.C(dependency.FieldPackage), names)) }
}

// packageByIndex is packageIn for the index of packages. PostgreSQL would compare each name with its statistics, which
// takes milliseconds for thousands, only to find out how many dependencies they have; it looks at the names when it has
// a plan. As the condition on many rows that another index finds this is slow: only names that the plan knows are
// hashed.
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

// licensed is the condition that a package has one of the licences: most have one only, the others are joined by
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

// packageOption is what one package filter says of a dependency: of the name of its package, and of its version (nil:
// nothing).
type packageOption struct {
	// names are those of the packages; nil: there are too many, and part is what they have in common.
	names   []string
	part    string
	version predicate.Dependency
	filter  proto.Message
	// read: the dependencies that it chooses are those in entries.
	read    bool
	entries []entry
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

// packageOptions are those of several filters, of which a dependency is to meet one.
type packageOptions []packageOption

// any is the condition that a dependency meets one of them.
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

// names are those of the packages of all; few is false when there are too many.
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

// entries are those of all options, if a range of versions was read of one of them and all choose at most so many
// dependencies.
func (o packageOptions) entries(ctx context.Context, db *ent.Client, sizes *sizes, most int) (all []entry, read bool, err error) {
	if !slices.ContainsFunc(o, func(one packageOption) bool { return one.read }) {
		return nil, false, nil
	}
	for _, one := range o {
		if !one.read {
			c := condition{by: packageByIndex(one.names), named: canonical(one.filter)}
			if one.version != nil {
				c.by = dependency.And(c.by, store.Unindexed(one.version))
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

// ofEachPackage are the options of package filters, without those that no dependency meets. Databases cannot order
// versions: where a filter has bounds, the versions that there are of its packages are read first, and those within
// remain; with them the entries of the dependencies that have them, as long as there are no more than so many.
func (s *SupplyChain) ofEachPackage(ctx context.Context, db *ent.Client, packages []*supplychainv1.PackageFilter, entries int) (options packageOptions, err error) {
	for _, f := range packages {
		o := packageOption{names: []string{f.GetName()}, part: f.GetName(), filter: f}
		if !f.GetExactNameMatch() { // nobody needs to be asked for a name that is known: the index of packages will tell
			names, few, err := packageNames(ctx, db, s.limits.fewNames, predicate.DependencyPackage(nameHas(o.part)))
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
				those := condition{by: packageByIndex(o.names), named: canonical(&supplychainv1.PackageFilter{Name: f.GetName(), ExactNameMatch: f.GetExactNameMatch()})}
				if o.read, err = s.sizes.atMost(ctx, db, those, entries); err != nil {
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

// versionsWithin are the versions within the bounds of a filter, of the dependencies that it finds without them: each
// behind its ecosystem and a slash. entries are those of the dependencies that have them, if they are to be read.
func versionsWithin(ctx context.Context, db *ent.Client, f *supplychainv1.PackageFilter, o packageOption) (within []string, entries []entry, err error) {
	var versions []struct {
		Ecosystem string `sql:"ecosystem"`
		Version   string `sql:"version"`
		IDs       []byte `sql:"ids"`
		Projects  []byte `sql:"projects"`
	}
	group := db.Dependency.Query().Where(o.chosen()).GroupBy(dependency.FieldEcosystem, dependency.FieldVersion)
	if o.read {
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
