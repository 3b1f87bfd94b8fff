package scans

import (
	"context"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

const (
	defaultLimit = 100
	// searchWindow is how far back a search goes (contract facts 2.5).
	searchWindow = 30 * 24 * time.Hour
)

// Scans is the service group "scans".
type Scans struct {
	scansv1.UnimplementedScansServiceServer
	store *store.Store
}

// NewScans serves scans from the store.
func NewScans(st *store.Store) *Scans { return &Scans{store: st} }

// GetScan returns one scan.
func (s *Scans) GetScan(ctx context.Context, r *scansv1.GetScanRequest) (*scansv1.GetScanResponse, error) {
	row, err := s.store.Reader.Scan.Query().Where(scan.ID(r.GetScanId())).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("scan %d not found", r.GetScanId())
	}
	if err != nil {
		return nil, err
	}
	meta := &scansv1.ScanMeta{}
	if err := proto.Unmarshal(row.Meta, meta); err != nil {
		return nil, err
	}
	stats, err := structpb.NewStruct(row.Stats)
	if err != nil {
		return nil, err
	}
	return &scansv1.GetScanResponse{
		Id: row.ID, DeploymentId: row.DeploymentID, RepositoryId: row.ProjectID, StartedAt: timestamp(row.StartedAt),
		CompletedAt: optionalTimestamp(row.CompletedAt), EnabledProducts: productWords(row.Products), ExitCode: row.ExitCode,
		Meta: meta, Stats: stats,
	}, nil
}

// SearchScans lists scans of the last 30 days, newest first.
func (s *Scans) SearchScans(ctx context.Context, r *scansv1.SearchScansRequest) (*scansv1.SearchScansResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("scans"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	where := searchPredicates(r, time.Now())
	if continued {
		where = append(where, func(sel *entsql.Selector) {
			sel.Where(entsql.CompositeLT([]string{sel.C(scan.FieldStartedAt), sel.C(scan.FieldID)}, key.Order, key.ID))
		})
	}
	limit := int(r.GetLimit())
	if limit == 0 {
		limit = defaultLimit
	}
	rows, err := s.store.Reader.Scan.Query().Where(where...).Order(ent.Desc(scan.FieldStartedAt, scan.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &scansv1.SearchScansResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		response.Cursor = page.Encode(digest, page.Key{Order: last.StartedAt, ID: last.ID})
	}
	for _, row := range rows {
		response.Scans = append(response.Scans, convertScan(row))
	}
	return response, nil
}

func searchPredicates(r *scansv1.SearchScansRequest, now time.Time) []predicate.Scan {
	since := now.Add(-searchWindow)
	if asked := r.GetSince().AsTime(); r.GetSince() != nil && asked.After(since) {
		since = asked
	}
	where := []predicate.Scan{scan.StartedAtGTE(store.Micros(since))}
	if r.GetBranch() != "" {
		where = append(where, scan.Ref(gitref.Full(r.GetBranch())))
	}
	if r.GetIsFullScan() {
		where = append(where, scan.IsFullScan(true))
	}
	if r.GetRepositoryId() != 0 {
		where = append(where, scan.ProjectID(r.GetRepositoryId()))
	}
	var statuses []string
	for _, status := range r.GetStatuses() {
		if status != scansv1.ScanStatus_SCAN_STATUS_UNSPECIFIED {
			statuses = append(statuses, status.String())
		}
	}
	if len(statuses) > 0 {
		where = append(where, store.OneOf(scan.FieldStatus, statuses))
	}
	bits := int32(0)
	for _, product := range r.GetProducts() {
		if product != scansv1.Product_PRODUCT_UNSPECIFIED {
			bits |= 1 << product
		}
	}
	if bits != 0 {
		where = append(where, func(sel *entsql.Selector) {
			sel.Where(entsql.P(func(b *entsql.Builder) {
				b.WriteString("(").WriteString(sel.C(scan.FieldProducts)).WriteString(" & ").Arg(bits).WriteString(") <> 0")
			}))
		})
	}
	return append(where, durationPredicates(r.GetTotalTime())...)
}

// durationPredicates limits the duration; 0 means no limit on that side.
func durationPredicates(r *scansv1.FloatRange) (where []predicate.Scan) {
	bound := func(operator string, seconds float64) predicate.Scan {
		return func(sel *entsql.Selector) {
			sel.Where(entsql.P(func(b *entsql.Builder) {
				b.WriteString("(").WriteString(sel.C(scan.FieldCompletedAt)).WriteString(" - ").WriteString(sel.C(scan.FieldStartedAt)).
					WriteString(") " + operator + " ").Arg(int64(seconds * 1e6))
			}))
		}
	}
	if r.GetMin() > 0 {
		where = append(where, bound(">=", r.GetMin()))
	}
	if r.GetMax() > 0 {
		where = append(where, bound("<=", r.GetMax()))
	}
	return where
}

func convertScan(row *ent.Scan) *scansv1.ScanPublic {
	out := &scansv1.ScanPublic{
		Id: row.ID, DeploymentId: row.DeploymentID, RepositoryId: row.ProjectID, Branch: row.Ref, Commit: row.Commit,
		StartedAt: timestamp(row.StartedAt), CompletedAt: optionalTimestamp(row.CompletedAt), EnabledProducts: productWords(row.Products),
		ExitCode: int64(row.ExitCode), IsFullScan: row.IsFullScan, Status: scansv1.ScanStatus(scansv1.ScanStatus_value[row.Status]),
		FindingsCounts: &scansv1.ScanFindingsCounts{
			Total: int64(row.TotalCount), Code: int64(row.CodeCount), SupplyChain: int64(row.SupplyChainCount), Secrets: int64(row.SecretsCount),
		},
	}
	if row.CompletedAt != nil {
		out.TotalTime = float64(*row.CompletedAt-row.StartedAt) / 1e6
	}
	return out
}

// productWords returns the products of a scan in the API's spelling.
func productWords(bits int32) []string {
	var words []string
	for _, p := range []struct {
		product scansv1.Product
		word    string
	}{
		{scansv1.Product_PRODUCT_SAST, vocabulary.SAST}, {scansv1.Product_PRODUCT_SCA, vocabulary.SCA},
		{scansv1.Product_PRODUCT_SECRETS, vocabulary.Secrets}, {scansv1.Product_PRODUCT_AI_SAST, "ai_sast"},
	} {
		if bits&(1<<p.product) != 0 {
			words = append(words, p.word)
		}
	}
	return words
}

func timestamp(micros int64) *timestamppb.Timestamp { return timestamppb.New(store.Time(micros)) }

func optionalTimestamp(micros *int64) *timestamppb.Timestamp {
	if micros == nil {
		return nil
	}
	return timestamp(*micros)
}
