package supplychain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/matching"
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

// CheckPackageInstalls decides which packages may be installed and records the decisions, in one transaction, so that
// answer and record agree.
func (s *MalwareFirewall) CheckPackageInstalls(ctx context.Context, r *supplychainv1.CheckPackageInstallsRequest) (*supplychainv1.CheckPackageInstallsResponse, error) {
	packages := make([]matching.Package, len(r.GetPackages()))
	for i, p := range r.GetPackages() {
		var err error
		if packages[i], err = normalised(fmt.Sprintf("packages[%d].", i), p.GetEcosystem(), p.GetPackage(), p.GetVersion()); err != nil {
			return nil, err
		}
	}
	var response *supplychainv1.CheckPackageInstallsResponse
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		hits, err := matching.Find(ctx, tx.Client(), packages)
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
			found, err := hits.Affecting(p)
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
func normalised(field, ecosystem, name, version string) (matching.Package, error) {
	word, err := ecosystemOf(field, ecosystem)
	if err != nil {
		return matching.Package{}, err
	}
	p, ok := matching.Normal(word, name, version)
	if !ok {
		return p, apierr.InvalidArgument(field+"package", "%spackage must be the name of a package of %s, got %s", field, word, apierr.Quote(name))
	}
	return p, nil
}

// blocking returns the first blocking advisory; nil if there is none.
func blocking(found []*matching.Hit) *matching.Hit {
	i := slices.IndexFunc(found, func(h *matching.Hit) bool { return h.Malicious && !h.Withdrawn })
	if i < 0 {
		return nil
	}
	return found[i]
}

// record stores the scan and its checks, and returns the scan's id.
func record(ctx context.Context, tx *ent.Tx, r *supplychainv1.CheckPackageInstallsRequest, packages []matching.Package, checks []*supplychainv1.PackageInstallCheck, blocked int) (int64, error) {
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
			SetEcosystem(p.Ecosystem).SetPackage(p.Name).SetVersion(p.Version)
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
