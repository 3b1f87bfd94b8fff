// Package matching finds the imported advisories that affect packages.
package matching

import (
	"context"
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/advisory"
	"github.com/palisade/palisade/ent/advisorypackage"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/osv"
)

// packagesAtOnce is how many packages one query looks for.
const packagesAtOnce = 1000

// Package is one version of a package. Ecosystem is a word of the contract, and Name is normalised for it.
type Package struct{ Ecosystem, Name, Version string }

// Normal returns a package of any spelling of ecosystem and name. ok is false if the ecosystem is unknown, or if it has
// no package of such a name.
func Normal(ecosystem, name, version string) (p Package, ok bool) {
	word, ok := osv.Ecosystem(ecosystem)
	p = Package{word, osv.PackageName(word, name), version}
	return p, ok && p.Name != ""
}

// Hit is an advisory about a package.
type Hit struct {
	// ID is the database's, OsvID the publisher's.
	ID        int64
	OsvID     string `sql:"osv_id"`
	Title     string
	Malicious bool
	Withdrawn bool
	Ecosystem string
	Package   string
	Affected  []byte

	versions *storev1.AffectedVersions
}

// Fixed returns the versions in which the package no longer has the problem, in the order of the advisory.
func (h *Hit) Fixed() (versions []string) {
	for _, r := range h.versions.GetRanges() {
		for _, event := range r.GetEvents() {
			if event.GetFixed() != "" && !slices.Contains(versions, event.GetFixed()) {
				versions = append(versions, event.GetFixed())
			}
		}
	}
	return versions
}

// Hits holds advisories by ecosystem and name of the package, in the order of their OSV ids.
type Hits map[[2]string][]*Hit

// Find reads the advisories of the context's deployment about any version of some packages: one query for each
// thousand.
func Find(ctx context.Context, db *ent.Client, packages []Package) (Hits, error) {
	keys := make([][2]string, len(packages))
	for i, p := range packages {
		keys[i] = [2]string{p.Ecosystem, p.Name}
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	found := Hits{}
	for some := range slices.Chunk(slices.Compact(keys), packagesAtOnce) {
		if err := found.add(ctx, db, some); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// add reads the advisories of some packages. The query itself does not sort: without statistics, SQLite would read all
// advisories of the deployment in the order of their index, to avoid sorting the few of the packages.
func (h Hits) add(ctx context.Context, db *ent.Client, keys [][2]string) error {
	wanted := make(map[[2]string]bool, len(keys))
	var ecosystems, names []string
	for _, key := range keys {
		wanted[key] = true
		ecosystems, names = append(ecosystems, key[0]), append(names, key[1])
	}
	slices.Sort(names)
	var rows []*Hit
	// The index is on ecosystem and name. The query also returns names of one ecosystem that are wanted in another.
	err := db.AdvisoryPackage.Query().
		Where(store.OneOf(advisorypackage.FieldEcosystem, slices.Compact(ecosystems)), store.OneOf(advisorypackage.FieldPackage, slices.Compact(names))).
		Modify(func(p *entsql.Selector) {
			a := entsql.Table(advisory.Table)
			// The tenant policy covers only the packages: repeat the condition for the join.
			p.Join(a).OnP(entsql.And(
				entsql.ColumnsEQ(p.C(advisorypackage.FieldAdvisoryID), a.C(advisory.FieldID)),
				entsql.ColumnsEQ(p.C(advisorypackage.FieldDeploymentID), a.C(advisory.FieldDeploymentID)),
			))
			p.Select(a.C(advisory.FieldID), entsql.As(a.C(advisory.FieldOsvID), "osv_id"), a.C(advisory.FieldTitle), a.C(advisory.FieldMalicious),
				p.C(advisorypackage.FieldEcosystem), p.C(advisorypackage.FieldPackage), p.C(advisorypackage.FieldAffected)).
				AppendSelectExprAs(entsql.P(func(b *entsql.Builder) { b.Ident(a.C(advisory.FieldWithdrawnAt)).WriteString(" IS NOT NULL") }), "withdrawn")
		}).Scan(ctx, &rows)
	slices.SortFunc(rows, func(a, b *Hit) int { return strings.Compare(a.OsvID, b.OsvID) })
	for _, row := range rows {
		if key := [2]string{row.Ecosystem, row.Package}; wanted[key] {
			h[key] = append(h[key], row)
		}
	}
	return err
}

// Affecting returns the advisories about a package's version, including withdrawn ones.
func (h Hits) Affecting(p Package) (found []*Hit, err error) {
	for _, candidate := range h[[2]string{p.Ecosystem, p.Name}] {
		if candidate.versions == nil {
			candidate.versions = &storev1.AffectedVersions{}
			if err := proto.Unmarshal(candidate.Affected, candidate.versions); err != nil {
				return nil, fmt.Errorf("versions of advisory %s: %w", candidate.OsvID, err)
			}
		}
		if osv.Affects(candidate.versions, p.Ecosystem, p.Version) {
			found = append(found, candidate)
		}
	}
	return found, nil
}

// Details reads what some advisories say about their problems, by database id. Advisories that were imported by an
// earlier version have none.
func Details(ctx context.Context, db *ent.Client, ids []int64) (map[int64]*storev1.AdvisoryDetails, error) {
	out := make(map[int64]*storev1.AdvisoryDetails, len(ids))
	for some := range slices.Chunk(ids, packagesAtOnce) {
		rows, err := db.Advisory.Query().Where(store.OneOf(advisory.FieldID, some), advisory.DetailsNotNil()).
			Select(advisory.FieldID, advisory.FieldDetails).All(ctx)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			details := &storev1.AdvisoryDetails{}
			if err := proto.Unmarshal(row.Details, details); err != nil {
				return nil, fmt.Errorf("details of advisory %d: %w", row.ID, err)
			}
			out[row.ID] = details
		}
	}
	return out, nil
}
