package supplychain

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/dependencies"
	"github.com/palisade/palisade/services/supplychain/osv"
)

// transitivities are the contract's words for how a package comes in, by those of the table.
var transitivities = map[string]string{
	dependencies.Direct: "DIRECT", dependencies.Transitive: "TRANSITIVE", dependencies.Unknown: "UNKNOWN_TRANSITIVITY",
}

// where makes conditions of a filter, which may be nil. Errors: INVALID_ARGUMENT for what cannot be answered.
func (s *SupplyChain) where(ctx context.Context, f *supplychainv1.DependencyFilter) ([]predicate.Dependency, error) {
	if len(f.GetLicensePolicySettings()) > 0 {
		return nil, apierr.InvalidArgument("dependencyFilter.licensePolicySettings",
			"dependencyFilter.licensePolicySettings must be empty: there are no licence policies; dependencyFilter.license finds packages by licence")
	}
	var all []predicate.Dependency
	if !f.GetIncludeArchived() {
		deploymentID, _ := tenant.FromContext(ctx)
		all = append(all, notArchived(deploymentID))
	}
	if name := strings.TrimSpace(f.GetName()); name != "" {
		all = append(all, dependency.PackageContainsFold(name))
	}
	if version := f.GetVersion(); version != "" {
		all = append(all, dependency.Version(version))
	}
	if ids := f.GetRepositoryId(); len(ids) > 0 {
		all = append(all, func(q *entsql.Selector) { q.Where(store.InIDs(q.C(dependency.FieldProjectID), ids)) })
	}
	if words := f.GetTransitivity(); len(words) > 0 {
		var stored []string
		for word, shown := range transitivities {
			if slices.Contains(words, shown) {
				stored = append(stored, word)
			}
		}
		all = append(all, dependency.TransitivityIn(stored...))
	}
	if words := f.GetEcosystem(); len(words) > 0 {
		all = append(all, dependency.EcosystemIn(words...))
	}
	if lockfile := f.GetLockfilePath(); lockfile != "" {
		all = append(all, dependency.Lockfile(lockfile))
	}
	if licenses := f.GetLicense(); len(licenses) > 0 {
		all = append(all, dependency.LicenseNotNil(), licensed(licenses))
	}
	if packages := f.GetPackageFilters(); len(packages) > 0 {
		var options []predicate.Dependency
		for _, p := range packages {
			option, err := s.ofPackage(ctx, p)
			if err != nil {
				return nil, err
			}
			options = append(options, option)
		}
		all = append(all, dependency.Or(options...))
	}
	return all, nil
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

// licensed is the condition that a package has one of the licences: most have one only, the others are joined by commas.
func licensed(licenses []string) predicate.Dependency {
	return func(s *entsql.Selector) {
		options := []*entsql.Predicate{entsql.In(s.C(dependency.FieldLicense), store.Parameters(licenses)...)}
		position := "instr"
		if s.Dialect() == dialect.Postgres {
			position = "strpos"
		}
		for _, license := range licenses {
			options = append(options, entsql.P(func(b *entsql.Builder) {
				b.WriteString(position + "(',' || ").WriteString(s.C(dependency.FieldLicense)).WriteString(" || ',', ").Arg("," + license + ",").WriteString(") > 0")
			}))
		}
		s.Where(entsql.Or(options...))
	}
}

// ofPackage is the condition of one package filter. Databases cannot order versions: where the filter has bounds, the versions
// that there are of such packages are read first, and those within remain.
func (s *SupplyChain) ofPackage(ctx context.Context, f *supplychainv1.PackageFilter) (predicate.Dependency, error) {
	conditions := []predicate.Dependency{dependency.PackageContainsFold(f.GetName())}
	if f.GetExactNameMatch() {
		conditions[0] = dependency.Package(f.GetName())
	}
	if f.GetExactVersion() != "" {
		conditions = append(conditions, dependency.Version(f.GetExactVersion()))
	}
	if f.GetVersionLowerBound() == "" && f.GetVersionUpperBound() == "" {
		return dependency.And(conditions...), nil
	}
	var versions []struct {
		Ecosystem string `sql:"ecosystem"`
		Version   string `sql:"version"`
	}
	err := s.store.Reader.Dependency.Query().Where(conditions...).
		GroupBy(dependency.FieldEcosystem, dependency.FieldVersion).Scan(ctx, &versions)
	if err != nil {
		return nil, err
	}
	bounds := boundsOf(f)
	within := []string{}
	for _, v := range versions {
		if osv.Affects(bounds, v.Ecosystem, v.Version) {
			within = append(within, v.Ecosystem+"/"+v.Version)
		}
	}
	list, err := json.Marshal(within)
	if err != nil {
		return nil, err
	}
	return dependency.And(append(conditions, versionIn(string(list)))...), nil
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

// versionIn is the condition that ecosystem/version is in a JSON list, which is one parameter however long it is.
func versionIn(list string) predicate.Dependency {
	return func(s *entsql.Selector) {
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString("(").WriteString(s.C(dependency.FieldEcosystem)).WriteString(" || '/' || ").WriteString(s.C(dependency.FieldVersion)).WriteString(")")
			if s.Dialect() == dialect.Postgres {
				b.WriteString(" IN (SELECT jsonb_array_elements_text(CAST(").Arg(list).WriteString(" AS jsonb)))")
				return
			}
			b.WriteString(" IN (SELECT value FROM json_each(").Arg(list).WriteString("))")
		}))
	}
}
