package scans

import (
	"cmp"
	"context"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
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
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/scanstats"
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
	jobs  *jobs.Jobs
}

// NewScans serves scans from the store. Jobs run managed scans.
func NewScans(st *store.Store, queue *jobs.Jobs) *Scans { return &Scans{store: st, jobs: queue} }

// GetScan returns one scan.
func (s *Scans) GetScan(ctx context.Context, r *scansv1.GetScanRequest) (*scansv1.GetScanResponse, error) {
	row, err := findScan(ctx, s.store.Reader, r.GetScanId())
	if err != nil {
		return nil, err
	}
	meta, err := metaOf(row)
	if err != nil {
		return nil, err
	}
	stats, err := structpb.NewStruct(scanstats.Shown(row.Stats))
	if err != nil {
		return nil, err
	}
	logged, err := isManaged(ctx, s.store.Reader, row)
	if err != nil {
		return nil, err
	}
	return &scansv1.GetScanResponse{
		HasLogs: logged,
		Id:      row.ID, DeploymentId: row.DeploymentID, RepositoryId: row.ProjectID, StartedAt: timestamp(row.StartedAt),
		CompletedAt: store.Timestamp(row.CompletedAt), EnabledProducts: productWords(row.Products), ExitCode: row.ExitCode,
		Meta: meta, Stats: stats,
	}, nil
}

// metaOf decodes the metadata of a scan's CI run.
func metaOf(row *ent.Scan) (*scansv1.ScanMeta, error) {
	meta := &scansv1.ScanMeta{}
	return meta, proto.Unmarshal(row.Meta, meta)
}

// findScan reads a scan. The error is NOT_FOUND if there is none.
func findScan(ctx context.Context, db *ent.Client, id int64) (*ent.Scan, error) {
	row, err := db.Scan.Query().Where(scan.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, errNoScan(id)
	}
	return row, err
}

func errNoScan(id int64) error { return apierr.NotFound("scan %d not found", id) }

// SearchScans lists scans of the last 30 days, newest first.
func (s *Scans) SearchScans(ctx context.Context, r *scansv1.SearchScansRequest) (*scansv1.SearchScansResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("scans"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	rows, next, err := scanPage(ctx, s.store.Reader, searchPredicates(r, time.Now()), digest, r.GetCursor(), r.GetLimit())
	if err != nil {
		return nil, err
	}
	response := &scansv1.SearchScansResponse{Cursor: next}
	integers, err := preferredIntegers(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		one := convertScan(row)
		one.Integers, one.FindingsCounts.Integers = integers, integers
		response.Scans = append(response.Scans, one)
	}
	return response, nil
}

// scanPage reads a page of scans, newest first, and returns the cursor of the next one. A limit of 0 is the default.
func scanPage(
	ctx context.Context, db *ent.Client, where []predicate.Scan, digest page.Digest, cursor string, limit int32,
) (rows []*ent.Scan, next string, err error) {
	key, continued, err := page.Decode(digest, cursor)
	if err != nil {
		return nil, "", err
	}
	if continued {
		where = append(where, func(sel *entsql.Selector) {
			sel.Where(entsql.CompositeLT([]string{sel.C(scan.FieldStartedAt), sel.C(scan.FieldID)}, key.Order, key.ID))
		})
	}
	most := int(cmp.Or(limit, defaultLimit))
	rows, err = db.Scan.Query().Where(where...).Order(ent.Desc(scan.FieldStartedAt, scan.FieldID)).Limit(most + 1).All(ctx)
	if len(rows) > most {
		rows = rows[:most]
		last := rows[most-1]
		next = page.Encode(digest, page.Key{Order: last.StartedAt, ID: last.ID})
	}
	return rows, next, err
}

// numbers is the preference (RFC 7240) for JSON numbers instead of strings, and the value of ScanPublic.integers for
// it. Two kinds of public clients exclude each other: some decode only strings, others only numbers.
const numbers = "numbers"

// preferredIntegers returns the form of integers that the caller prefers, and tells the caller that it was applied.
func preferredIntegers(ctx context.Context) (string, error) {
	for _, header := range metadata.ValueFromIncomingContext(ctx, "prefer") {
		for preference := range strings.SplitSeq(header, ",") {
			if strings.EqualFold(strings.TrimSpace(preference), numbers) {
				return numbers, grpc.SetHeader(ctx, metadata.Pairs("preference-applied", numbers))
			}
		}
	}
	return "", nil
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

// durationPredicates limits the duration in seconds, see seconds; 0 means no limit on that side.
func durationPredicates(r *scansv1.FloatRange) (where []predicate.Scan) {
	bound := func(operator string, limit float64) predicate.Scan {
		return func(sel *entsql.Selector) {
			at := "(CAST(" + sel.C(scan.FieldStats) + " AS TEXT), '$.scanner.total_time')"
			told := "CASE WHEN json_type" + at + " IN ('integer', 'real') THEN json_extract" + at + " END"
			if sel.Dialect() == dialect.Postgres {
				at = sel.C(scan.FieldStats) + " #> '{scanner,total_time}'"
				told = "CASE jsonb_typeof(" + at + ") WHEN 'number' THEN (" + at + ")::double precision END"
			}
			sel.Where(entsql.P(func(b *entsql.Builder) {
				b.WriteString("CASE WHEN " + told + " BETWEEN 0 AND ").Arg(float64(scanstats.MaxSeconds)).WriteString(" THEN " + told + " ELSE (" + sel.C(scan.FieldCompletedAt) + " - " +
					sel.C(scan.FieldStartedAt) + ") / 1000000.0 END " + operator + " ").Arg(limit)
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
		StartedAt: timestamp(row.StartedAt), CompletedAt: store.Timestamp(row.CompletedAt), EnabledProducts: productWords(row.Products),
		ExitCode: int64(row.ExitCode), IsFullScan: row.IsFullScan, Status: scanStatus(row),
		FindingsCounts: &scansv1.ScanFindingsCounts{
			Total: int64(row.TotalCount), Code: int64(row.CodeCount), SupplyChain: int64(row.SupplyChainCount), Secrets: int64(row.SecretsCount),
		},
		TotalTime: seconds(row),
	}
	return out
}

func scanStatus(row *ent.Scan) scansv1.ScanStatus {
	return scansv1.ScanStatus(scansv1.ScanStatus_value[row.Status])
}

// seconds returns the duration of a scan: the scanner's, or else the time until its results were stored; 0 until then.
func seconds(row *ent.Scan) float64 {
	if told, ok := scanstats.Seconds(row.Stats); ok {
		return told
	}
	if row.CompletedAt == nil {
		return 0
	}
	return float64(*row.CompletedAt-row.StartedAt) / 1e6
}

// productWords returns the products of a scan in the API's spelling.
func productWords(bits int32) []string {
	var words []string
	for _, p := range []struct {
		product scansv1.Product
		word    string
	}{
		{scansv1.Product_PRODUCT_SAST, vocabulary.SAST}, {scansv1.Product_PRODUCT_SCA, vocabulary.SCA},
		{scansv1.Product_PRODUCT_SECRETS, vocabulary.Secrets}, {scansv1.Product_PRODUCT_AI_SAST, vocabulary.AISAST},
	} {
		if bits&(1<<p.product) != 0 {
			words = append(words, p.word)
		}
	}
	return words
}

func timestamp(micros int64) *timestamppb.Timestamp { return timestamppb.New(store.Time(micros)) }
