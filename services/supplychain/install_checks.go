package supplychain

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
	"github.com/palisade/palisade/ent/tenant"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/osv"
)

// MalwareFirewall is the service group "malware firewall".
type MalwareFirewall struct {
	supplychainv1.UnimplementedMalwareFirewallServiceServer
	store *store.Store
	jobs  *jobs.Jobs
}

// NewMalwareFirewall serves the malware firewall from the store.
func NewMalwareFirewall(st *store.Store, queue *jobs.Jobs) *MalwareFirewall {
	return &MalwareFirewall{store: st, jobs: queue}
}

// wanted is a package in a request, with normalised ecosystem and name.
type wanted struct{ ecosystem, name, version string }

// hit is an advisory about a package, for any version.
type hit struct {
	ID        int64
	OsvID     string `sql:"osv_id"`
	Title     string
	Malicious bool
	Withdrawn bool
	Ecosystem string
	Package   string
	Affected  []byte
}

// CheckPackageInstalls decides which packages may be installed and records the decisions, in one transaction, so that
// answer and record agree.
func (s *MalwareFirewall) CheckPackageInstalls(ctx context.Context, r *supplychainv1.CheckPackageInstallsRequest) (*supplychainv1.CheckPackageInstallsResponse, error) {
	packages := make([]wanted, len(r.GetPackages()))
	for i, p := range r.GetPackages() {
		var err error
		if packages[i], err = normalised(fmt.Sprintf("packages[%d].", i), p.GetEcosystem(), p.GetPackage(), p.GetVersion()); err != nil {
			return nil, err
		}
	}
	var response *supplychainv1.CheckPackageInstallsResponse
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		hits, err := s.hits(ctx, tx.Client(), packages)
		if err != nil {
			return err
		}
		response = &supplychainv1.CheckPackageInstallsResponse{Allowed: true}
		blocked := 0
		for i, p := range packages {
			given := r.GetPackages()[i]
			check := &supplychainv1.PackageInstallCheck{
				Ecosystem: given.GetEcosystem(), Package: given.GetPackage(), Version: given.GetVersion(),
				Verdict: supplychainv1.InstallVerdict_INSTALL_VERDICT_ALLOW,
			}
			found, err := hits.affecting(p)
			if err != nil {
				return err
			}
			if by := blocking(found); by != nil {
				blocked++
				response.Allowed = false
				check.Verdict = supplychainv1.InstallVerdict_INSTALL_VERDICT_BLOCK
				check.Advisory = &supplychainv1.InstallAdvisory{Id: by.OsvID, Title: by.Title}
			}
			response.Checks = append(response.Checks, check)
		}
		response.ScanId, err = record(ctx, tx, r, packages, response.GetChecks(), blocked)
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// ecosystemOf returns the contract's word for an ecosystem. field is the path of the message in the request.
func ecosystemOf(field, ecosystem string) (string, error) {
	word, ok := osv.Ecosystem(ecosystem)
	if !ok {
		return "", apierr.InvalidArgument(field+"ecosystem", "%secosystem must be one of %s, got %s", field,
			strings.Join(osv.Ecosystems, ", "), apierr.Quote(ecosystem))
	}
	return word, nil
}

// normalised normalises ecosystem and name. field is the path of the message in the request.
func normalised(field, ecosystem, name, version string) (wanted, error) {
	word, err := ecosystemOf(field, ecosystem)
	if err != nil {
		return wanted{}, err
	}
	spelling := osv.PackageName(word, name)
	if spelling == "" {
		return wanted{}, apierr.InvalidArgument(field+"package", "%spackage must be the name of a package of %s, got %s", field, word, apierr.Quote(name))
	}
	return wanted{word, spelling, version}, nil
}

// hits holds advisories by package.
type hits map[[2]string][]hit

// hits reads the advisories about any of the packages in one query, by their OSV id. The query itself does not sort:
// without statistics, SQLite would read all advisories of the deployment in the order of their index, to avoid sorting
// the few of the packages.
func (s *MalwareFirewall) hits(ctx context.Context, db *ent.Client, packages []wanted) (hits, error) {
	var ecosystems, names []string
	for _, p := range packages {
		ecosystems, names = append(ecosystems, p.ecosystem), append(names, p.name)
	}
	slices.Sort(ecosystems)
	slices.Sort(names)
	var rows []hit
	// The index is on ecosystem and name. The query also returns names of one ecosystem that were requested in another;
	// they are never looked up below.
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
	slices.SortFunc(rows, func(a, b hit) int { return strings.Compare(a.OsvID, b.OsvID) })
	found := hits{}
	for _, row := range rows {
		key := [2]string{row.Ecosystem, row.Package}
		found[key] = append(found[key], row)
	}
	return found, err
}

// affecting returns the advisories about a package's version, including non-blocking ones.
func (h hits) affecting(p wanted) (found []hit, err error) {
	for _, candidate := range h[[2]string{p.ecosystem, p.name}] {
		affected := &storev1.AffectedVersions{}
		if err := proto.Unmarshal(candidate.Affected, affected); err != nil {
			return nil, fmt.Errorf("versions of advisory %s: %w", candidate.OsvID, err)
		}
		if osv.Affects(affected, p.ecosystem, p.version) {
			found = append(found, candidate)
		}
	}
	return found, nil
}

// blocking returns the first blocking advisory; nil if there is none.
func blocking(found []hit) *hit {
	i := slices.IndexFunc(found, func(h hit) bool { return h.Malicious && !h.Withdrawn })
	if i < 0 {
		return nil
	}
	return &found[i]
}

// record stores the scan and its checks, and returns the scan's id.
func record(ctx context.Context, tx *ent.Tx, r *supplychainv1.CheckPackageInstallsRequest, packages []wanted, checks []*supplychainv1.PackageInstallCheck, blocked int) (int64, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	now := store.Now()
	scan, err := tx.InstallScan.Create().SetDeploymentID(deploymentID).SetUser(r.GetUser()).SetScanner(r.GetScanner()).
		SetPackages(int32(len(packages))).SetBlocked(int32(blocked)).SetAt(now).Save(ctx)
	if err != nil {
		return 0, err
	}
	rows := make([]*ent.InstallCheckCreate, len(packages))
	for i, p := range packages {
		rows[i] = tx.InstallCheck.Create().SetDeploymentID(deploymentID).SetScanID(scan.ID).SetAt(now).
			SetEcosystem(p.ecosystem).SetPackage(p.name).SetVersion(p.version)
		if by := checks[i].GetAdvisory(); by != nil {
			rows[i].SetAdvisory(by.GetId()).SetTitle(by.GetTitle())
		}
	}
	for part := range slices.Chunk(rows, store.RowsAtOnce) {
		if err := tx.InstallCheck.CreateBulk(part...).Exec(ctx); err != nil {
			return 0, err
		}
	}
	return scan.ID, nil
}
