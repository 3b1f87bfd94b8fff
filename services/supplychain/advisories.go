package supplychain

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/advisory"
	"github.com/palisade/palisade/ent/advisorypackage"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/supplychain/matching"
	"github.com/palisade/palisade/services/supplychain/osv"
)

const defaultAdvisories = 100

// ListAdvisories lists advisories, newest import first.
func (s *MalwareFirewall) ListAdvisories(ctx context.Context, r *supplychainv1.ListAdvisoriesRequest) (*supplychainv1.ListAdvisoriesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("advisories", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	limit := int(r.GetLimit())
	if limit == 0 {
		limit = defaultAdvisories
	}
	ids, err := s.listed(ctx, r, key.ID, continued, limit+1)
	if err != nil {
		return nil, err
	}
	response := &supplychainv1.ListAdvisoriesResponse{}
	if len(ids) > limit {
		ids = ids[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: ids[limit-1]})
	}
	if response.Advisories, err = readAdvisories(ctx, s.store.Reader, ids); err != nil {
		return nil, err
	}
	slices.Reverse(response.GetAdvisories())
	return response, nil
}

// listed returns the ids of a page of advisories, highest first.
func (s *MalwareFirewall) listed(ctx context.Context, r *supplychainv1.ListAdvisoriesRequest, before int64, continued bool, limit int) ([]int64, error) {
	if r.GetEcosystem() == "" {
		if r.GetPackage() != "" {
			return nil, apierr.InvalidArgument("ecosystem", "ecosystem is required with package: one of %s", strings.Join(osv.Ecosystems, ", "))
		}
		query := s.store.Reader.Advisory.Query()
		if continued {
			query.Where(advisory.IDLT(before))
		}
		return query.Order(ent.Desc(advisory.FieldID)).Limit(limit).IDs(ctx)
	}
	ecosystem, err := ecosystemOf("", r.GetEcosystem())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.AdvisoryPackage.Query().Where(advisorypackage.Ecosystem(ecosystem))
	if r.GetPackage() != "" {
		query.Where(advisorypackage.Package(osv.PackageName(ecosystem, r.GetPackage())))
	}
	if continued {
		query.Where(advisorypackage.AdvisoryIDLT(before))
	}
	var ids []int64
	err = query.Unique(true).Order(ent.Desc(advisorypackage.FieldAdvisoryID)).Limit(limit).Select(advisorypackage.FieldAdvisoryID).Scan(ctx, &ids)
	return ids, err
}

// LookUpPackage looks up one package without recording the request.
func (s *MalwareFirewall) LookUpPackage(ctx context.Context, r *supplychainv1.LookUpPackageRequest) (*supplychainv1.LookUpPackageResponse, error) {
	asked, err := normalised("", r.GetEcosystem(), r.GetPackage(), r.GetVersion())
	if err != nil {
		return nil, err
	}
	all, err := matching.Find(ctx, s.store.Reader, []matching.Package{asked})
	if err != nil {
		return nil, err
	}
	found, err := all.Affecting(asked)
	if err != nil {
		return nil, err
	}
	response := &supplychainv1.LookUpPackageResponse{Verdict: supplychainv1.InstallVerdict_INSTALL_VERDICT_ALLOW}
	if blocking(found) != nil {
		response.Verdict = supplychainv1.InstallVerdict_INSTALL_VERDICT_BLOCK
	}
	ids := make([]int64, len(found))
	for i, h := range found {
		ids[i] = h.ID
	}
	response.Advisories, err = readAdvisories(ctx, s.store.Reader, ids)
	slices.SortFunc(response.GetAdvisories(), func(a, b *supplychainv1.Advisory) int { return strings.Compare(a.GetId(), b.GetId()) })
	return response, err
}

// readAdvisories reads advisories with their packages by database id, in two queries.
func readAdvisories(ctx context.Context, db *ent.Client, ids []int64) ([]*supplychainv1.Advisory, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := db.Advisory.Query().Where(store.OneOf(advisory.FieldID, ids)).Order(ent.Asc(advisory.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	query := db.AdvisoryPackage.Query().Where(store.OneOf(advisorypackage.FieldAdvisoryID, ids)).
		Order(ent.Asc(advisorypackage.FieldAdvisoryID, advisorypackage.FieldEcosystem, advisorypackage.FieldPackage))
	query.Select(advisorypackage.FieldAdvisoryID, advisorypackage.FieldEcosystem, advisorypackage.FieldPackage)
	packages, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	of := map[int64][]*supplychainv1.AdvisoryPackage{}
	for _, p := range packages {
		of[p.AdvisoryID] = append(of[p.AdvisoryID], &supplychainv1.AdvisoryPackage{Ecosystem: p.Ecosystem, Package: p.Package})
	}
	out := make([]*supplychainv1.Advisory, len(rows))
	for i, row := range rows {
		out[i] = convertAdvisory(row)
		out[i].Packages = of[row.ID]
	}
	return out, nil
}

func convertAdvisory(row *ent.Advisory) *supplychainv1.Advisory {
	out := &supplychainv1.Advisory{
		Id: row.OsvID, Title: row.Title, Malicious: row.Malicious, ModifiedAt: timestamppb.New(store.Time(row.ModifiedAt)),
	}
	if row.WithdrawnAt != nil {
		out.WithdrawnAt = timestamppb.New(store.Time(*row.WithdrawnAt))
	}
	return out
}
