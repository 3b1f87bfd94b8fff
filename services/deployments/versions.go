package deployments

import (
	"context"
	stdsql "database/sql"
	"strings"

	"entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// Versions is the service group "versions".
type Versions struct {
	deploymentsv1.UnimplementedVersionsServiceServer
	store *store.Store
}

// NewVersions serves scanner versions from the stored scans.
func NewVersions(st *store.Store) *Versions { return &Versions{store: st} }

// GetProjectVersionInfo lists the projects with a scan of the product.
func (s *Versions) GetProjectVersionInfo(ctx context.Context, r *deploymentsv1.GetProjectVersionInfoRequest) (*deploymentsv1.GetProjectVersionInfoResponse, error) {
	product, err := parseProduct(r.GetProduct())
	if err != nil {
		return nil, err
	}
	projects, err := s.latestScans(ctx, product)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(projects))
	for i, p := range projects {
		ids[i] = p.ScanID.Int64
	}
	rows, err := s.store.Reader.Scan.Query().Where(func(q *sql.Selector) { q.Where(store.InIDs(q.C(scan.FieldID), ids)) }).
		Select(scan.FieldID, scan.FieldMeta, scan.FieldScanner).All(ctx)
	if err != nil {
		return nil, err
	}
	environments, versions := make(map[int64]deploymentsv1.ScanEnvironment, len(rows)), make(map[int64]string, len(rows))
	for _, row := range rows {
		meta := &scansv1.ScanMeta{}
		if err := proto.Unmarshal(row.Meta, meta); err != nil {
			return nil, err
		}
		environments[row.ID] = details.Environment(meta.GetCiJobUrl())
		if row.Scanner == nil {
			continue // an uploaded report: the scanner's version is unknown
		}
		scanner := &storev1.ScannerScan{}
		if err := proto.Unmarshal(*row.Scanner, scanner); err != nil {
			return nil, err
		}
		versions[row.ID] = scanner.GetCliVersion()
	}
	response := &deploymentsv1.GetProjectVersionInfoResponse{}
	for _, p := range projects {
		response.ProjectInfo = append(response.ProjectInfo, &deploymentsv1.ProjectVersionInfo{
			RepositoryName: p.Name, RepositoryId: p.ID, ScanEnvironment: environments[p.ScanID.Int64],
			CliVersion: versions[p.ScanID.Int64],
		})
	}
	return response, nil
}

// scannedProject is a project with its latest scan of a product.
type scannedProject struct {
	ID     int64            `sql:"id"`
	Name   string           `sql:"name"`
	ScanID stdsql.NullInt64 `sql:"scan_id"`
}

// latestScans finds the latest scan of each project in one query, with one backward index scan per project.
func (s *Versions) latestScans(ctx context.Context, product scansv1.Product) ([]scannedProject, error) {
	var all []scannedProject
	err := s.store.Reader.Project.Query().Where(project.ArchivedAtIsNil()).Modify(func(p *sql.Selector) {
		c := sql.Table(scan.Table).As("latest")
		latest := sql.Dialect(p.Dialect()).Select(c.C(scan.FieldID)).From(c).
			Where(sql.And(
				sql.ColumnsEQ(c.C(scan.FieldDeploymentID), p.C(project.FieldDeploymentID)),
				sql.ColumnsEQ(c.C(scan.FieldProjectID), p.C(project.FieldID)),
				sql.P(func(b *sql.Builder) {
					b.WriteString("(").WriteString(c.C(scan.FieldProducts)).WriteString(" & ").Arg(int32(1) << product).WriteString(") <> 0")
				}),
			)).
			OrderBy(sql.Desc(c.C(scan.FieldStartedAt)), sql.Desc(c.C(scan.FieldID))).Limit(1)
		p.Select(p.C(project.FieldID), p.C(project.FieldName)).AppendSelectExprAs(latest, "scan_id")
		p.OrderBy(p.C(project.FieldName))
	}).Scan(ctx, &all)
	if err != nil {
		return nil, err
	}
	scanned := all[:0]
	for _, p := range all {
		if p.ScanID.Valid {
			scanned = append(scanned, p)
		}
	}
	return scanned, nil
}

func parseProduct(word string) (scansv1.Product, error) {
	name := strings.ToUpper(word)
	if !strings.HasPrefix(name, "PRODUCT_") {
		name = "PRODUCT_" + name
	}
	product := scansv1.Product(scansv1.Product_value[name])
	if product == scansv1.Product_PRODUCT_UNSPECIFIED {
		return product, apierr.InvalidArgument("product", "product must be one of sast, sca, secrets, ai_sast, got %s", apierr.Quote(word))
	}
	return product, nil
}
