package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scancoverage"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// maxCoverage is the limit of a decompressed coverage in bytes.
	maxCoverage = 256 << 20
	// coveragesBack is how many coverages are searched for one of a successful scan.
	coveragesBack = 5
)

// coverageCodec is created once, because its windows are large. Both halves are safe for concurrent use.
var coverageCodec = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxCoverage))
	if err != nil {
		panic(err)
	}
	return encoder, decoder
})

func encodeCoverage(c *storev1.ScanCoverage) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil {
		return nil, err
	}
	encoder, _ := coverageCodec()
	return encoder.EncodeAll(raw, nil), nil
}

func decodeCoverage(content []byte) (*storev1.ScanCoverage, error) {
	_, decoder := coverageCodec()
	raw, err := decoder.DecodeAll(content, nil)
	if err != nil {
		return nil, err
	}
	c := &storev1.ScanCoverage{}
	return c, proto.Unmarshal(raw, c)
}

// previousCoverage is the coverage of an earlier scan.
type previousCoverage struct {
	*storev1.ScanCoverage
	scanID int64
}

// products are the scanned products. Empty means all products of the analysis.
func (c *previousCoverage) products() []string {
	if c.GetProduct() == "" {
		return nil
	}
	return strings.Split(c.GetProduct(), ",")
}

// coverageBefore returns the latest suitable coverage of a full scan of an analysis and ref. oldest is the id of the
// last scan that was searched; 0 means there was none.
func (s *session) coverageBefore(ctx context.Context, a Analysis, ref string, suits func(*previousCoverage) bool) (c *previousCoverage, oldest int64, err error) {
	rows, err := s.tx.ScanCoverage.Query().
		Where(scancoverage.DeploymentID(s.deploymentID), scancoverage.ProjectID(s.project.ID), scancoverage.Ref(ref), scancoverage.Tool(a.Tool),
			scancoverage.AnalysisCategory(a.Category), scancoverage.IsFullScan(true), scancoverage.ScanIDNEQ(s.scan.ID)).
		Order(ent.Desc(scancoverage.FieldScanID)).Limit(coveragesBack).Select(scancoverage.FieldID, scancoverage.FieldScanID).All(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, row := range rows {
		row, err := s.tx.ScanCoverage.Get(ctx, row.ID)
		if err != nil {
			return nil, 0, err
		}
		content, err := decodeCoverage(row.Content)
		if err != nil {
			return nil, 0, fmt.Errorf("coverage of scan %d: %w", row.ScanID, err)
		}
		oldest, c = row.ScanID, &previousCoverage{content, row.ScanID}
		if suits(c) {
			return c, oldest, nil
		}
	}
	return nil, oldest, nil
}

// latestCoverage returns the coverage of the latest successful full scan of an analysis and ref that covered all
// products of this scan. It returns nil if there is none.
func (s *session) latestCoverage(ctx context.Context, g *group, ref string) (*previousCoverage, error) {
	c, _, err := s.coverageBefore(ctx, g.Analysis, ref, func(c *previousCoverage) bool {
		return c.GetFailure() == "" && coversAll(c.products(), g.coverage.Products)
	})
	return c, err
}

// readPrevious reads the coverage of the previous scan, if this scan declares its files.
func (s *session) readPrevious(ctx context.Context, g *matches) (err error) {
	if g.coverage.GetFilesKnown() || len(g.coverage.GetHashes()) > 0 {
		g.previous, err = s.latestCoverage(ctx, g.group, s.scan.Ref)
	}
	return err
}

// isRepeat reports whether this scan declares the same coverage as the previous one. If one report is uploaded twice, a
// file that it lacks is still missing from one report only. The previous scan may have covered more products.
func (c *closer) isRepeat(ctx context.Context, g *matches) (bool, error) {
	now := g.coverage.stored()
	now.Product = g.previous.GetProduct()
	if c.Total("created")+c.Total("updated")+c.Total("reopened") > 0 || !proto.Equal(g.previous.ScanCoverage, now) {
		return false, nil
	}
	return c.tx.Scan.Query().Where(scan.ID(g.previous.scanID), scan.Commit(c.scan.Commit)).Exist(ctx)
}

// lastFullScan returns the latest earlier full scan of an analysis on this ref that covered one of its products,
// successful or not; 0 if there is none. If the scans that were searched all covered other products, it returns the
// oldest of them. Then too few findings are closed, but never too many.
func (s *session) lastFullScan(ctx context.Context, g *group) (int64, error) {
	_, oldest, err := s.coverageBefore(ctx, g.Analysis, s.scan.Ref, func(c *previousCoverage) bool {
		return coversAny(c.products(), g.coverage.Products)
	})
	return oldest, err
}

// stored is the stored form of the coverage.
func (c *Coverage) stored() *storev1.ScanCoverage {
	return &storev1.ScanCoverage{
		RulesKnown: c.GetRulesKnown(), Rules: sorted(c.GetRules()), FilesKnown: c.GetFilesKnown(), Files: sorted(c.GetFiles()),
		Skipped: sorted(c.GetSkipped()), Renamed: sorted(c.GetRenamed()), Failure: c.GetFailure(), Hashes: c.GetHashes(),
		Product: strings.Join(sorted(c.Products), ","),
	}
}

// storeCoverages stores the coverage of each analysis.
func (s *session) storeCoverages(ctx context.Context, groups []*matches) error {
	var rows []*ent.ScanCoverageCreate
	for _, g := range groups {
		content, err := encodeCoverage(g.coverage.stored())
		if err != nil {
			return err
		}
		rows = append(rows, s.tx.ScanCoverage.Create().SetDeploymentID(s.deploymentID).SetScanID(s.scan.ID).SetProjectID(s.project.ID).
			SetRef(s.scan.Ref).SetTool(g.Tool).SetAnalysisCategory(g.Category).SetIsFullScan(s.scan.IsFullScan).SetContent(content).SetAt(s.now))
	}
	for part := range slices.Chunk(rows, store.RowsAtOnce) {
		if err := s.tx.ScanCoverage.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
