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
	// maxCoverage is the size of a coverage after decompression, in bytes.
	maxCoverage = 256 << 20
	// coveragesBack is how many coverages are looked at to find one that came to a good end.
	coveragesBack = 5
)

// coverageCodec is made once: its windows are large. Both halves may be used at the same time.
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

// previousCoverage is what an earlier scan looked at.
type previousCoverage struct {
	*storev1.ScanCoverage
	scanID int64
}

// products are those that the scan looked at; none: all of the analysis.
func (c *previousCoverage) products() []string {
	if c.GetProduct() == "" {
		return nil
	}
	return strings.Split(c.GetProduct(), ",")
}

// coverageBefore is the latest coverage of a full scan of an analysis and ref that is suitable. oldest is the last scan that was looked
// at; 0: there was none.
func (in *ingest) coverageBefore(ctx context.Context, a Analysis, ref string, suits func(*previousCoverage) bool) (c *previousCoverage, oldest int64, err error) {
	rows, err := in.tx.ScanCoverage.Query().
		Where(scancoverage.DeploymentID(in.deploymentID), scancoverage.ProjectID(in.Project.ID), scancoverage.Ref(ref), scancoverage.Tool(a.Tool),
			scancoverage.AnalysisCategory(a.Category), scancoverage.IsFullScan(true), scancoverage.ScanIDNEQ(in.Scan.ID)).
		Order(ent.Desc(scancoverage.FieldScanID)).Limit(coveragesBack).Select(scancoverage.FieldID, scancoverage.FieldScanID).All(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, row := range rows {
		row, err := in.tx.ScanCoverage.Get(ctx, row.ID)
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

// latestCoverage is the coverage of the latest full scan of an analysis and ref that came to a good end, and looked at all products
// that this one looks at; nil if there is none.
func (in *ingest) latestCoverage(ctx context.Context, g *group, ref string) (*previousCoverage, error) {
	c, _, err := in.coverageBefore(ctx, g.Analysis, ref, func(c *previousCoverage) bool {
		return c.GetFailure() == "" && aboutAll(c.products(), g.coverage.Products)
	})
	return c, err
}

// readPrevious reads what the scan before looked at, where it counts: where this one says which files there are.
func (in *ingest) readPrevious(ctx context.Context, g *group) (err error) {
	if g.coverage.GetFilesKnown() || len(g.coverage.GetHashes()) > 0 {
		g.previous, err = in.latestCoverage(ctx, g, in.Scan.Ref)
	}
	return err
}

// isRepeat reports whether this scan says the same as the one before: a report that is sent twice is no second report that
// leaves a file out. The one before may have looked at more products.
func (in *ingest) isRepeat(ctx context.Context, g *group) (bool, error) {
	now := g.coverage.stored()
	now.Product = g.previous.GetProduct()
	if in.Total("created")+in.Total("updated")+in.Total("reopened") > 0 || !proto.Equal(g.previous.ScanCoverage, now) {
		return false, nil
	}
	return in.tx.Scan.Query().Where(scan.ID(g.previous.scanID), scan.Commit(in.Scan.Commit)).Exist(ctx)
}

// lastFullScan is the latest earlier full scan of an analysis on this ref that looked at one of its products, whether it came to a good
// end or not; 0: none. After many of other products it is the oldest of these: then too little is closed, and never too much.
func (in *ingest) lastFullScan(ctx context.Context, g *group) (int64, error) {
	_, oldest, err := in.coverageBefore(ctx, g.Analysis, in.Scan.Ref, func(c *previousCoverage) bool {
		return aboutSome(c.products(), g.coverage.Products)
	})
	return oldest, err
}

// stored is the coverage in the form in which it is kept.
func (c *Coverage) stored() *storev1.ScanCoverage {
	return &storev1.ScanCoverage{
		RulesKnown: c.GetRulesKnown(), Rules: sorted(c.GetRules()), FilesKnown: c.GetFilesKnown(), Files: sorted(c.GetFiles()),
		Skipped: sorted(c.GetSkipped()), Renamed: sorted(c.GetRenamed()), Failure: c.GetFailure(), Hashes: c.GetHashes(),
		Product: strings.Join(sorted(c.Products), ","),
	}
}

// storeCoverages keeps what each analysis looked at.
func (in *ingest) storeCoverages(ctx context.Context) error {
	var rows []*ent.ScanCoverageCreate
	for _, g := range in.inOrder() {
		content, err := encodeCoverage(g.coverage.stored())
		if err != nil {
			return err
		}
		rows = append(rows, in.tx.ScanCoverage.Create().SetDeploymentID(in.deploymentID).SetScanID(in.Scan.ID).SetProjectID(in.Project.ID).
			SetRef(in.Scan.Ref).SetTool(g.Tool).SetAnalysisCategory(g.Category).SetIsFullScan(in.Scan.IsFullScan).SetContent(content).SetAt(in.now))
	}
	for part := range slices.Chunk(rows, store.RowsAtOnce) {
		if err := in.tx.ScanCoverage.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
