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
	"github.com/palisade/palisade/ent/predicate"
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

// codec is created once, because its windows are large. Both halves are safe for concurrent use.
var codec = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
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

// Compress encodes a message for the store: zstd of its bytes.
func Compress(m proto.Message) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	encoder, _ := codec()
	return encoder.EncodeAll(raw, nil), nil
}

// Decompress decodes a message of Compress.
func Decompress(content []byte, m proto.Message) error {
	_, decoder := codec()
	raw, err := decoder.DecodeAll(content, nil)
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, m)
}

// previousCoverage is the coverage of an earlier scan.
type previousCoverage struct {
	*storev1.ScanCoverage
	scanID int64
}

// products are the scanned products. Empty means all products of the analysis.
func (c *previousCoverage) products() []string {
	return splitList(c.GetProduct())
}

// ofAnalysis selects the coverages of an analysis on a ref.
func (s *session) ofAnalysis(a Analysis, ref string) []predicate.ScanCoverage {
	return []predicate.ScanCoverage{
		scancoverage.DeploymentID(s.deploymentID), scancoverage.ProjectID(s.project.ID), scancoverage.Ref(ref), scancoverage.Tool(a.Tool),
		scancoverage.AnalysisCategory(a.Category),
	}
}

// StoredCoverage decodes a stored coverage.
func StoredCoverage(row *ent.ScanCoverage) (*storev1.ScanCoverage, error) {
	content := &storev1.ScanCoverage{}
	if err := Decompress(row.Content, content); err != nil {
		return nil, fmt.Errorf("coverage of scan %d: %w", row.ScanID, err)
	}
	return content, nil
}

// coverageBefore returns the latest suitable coverage of a full scan of an analysis and ref. oldest is the id of the
// last scan that was searched; 0 means there was none.
func (s *session) coverageBefore(ctx context.Context, a Analysis, ref string, suits func(*previousCoverage) bool) (c *previousCoverage, oldest int64, err error) {
	rows, err := s.tx.ScanCoverage.Query().
		Where(s.ofAnalysis(a, ref)...).Where(scancoverage.IsFullScan(true), scancoverage.ScanIDNEQ(s.scan.ID)).
		Order(ent.Desc(scancoverage.FieldScanID)).Limit(coveragesBack).Select(scancoverage.FieldID, scancoverage.FieldScanID).All(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, row := range rows {
		row, err := s.tx.ScanCoverage.Get(ctx, row.ID)
		if err != nil {
			return nil, 0, err
		}
		content, err := StoredCoverage(row)
		if err != nil {
			return nil, 0, err
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
	now.Product, now.ToolVersion = g.previous.GetProduct(), g.previous.GetToolVersion() // earlier versions stored no version
	now.Unsearched, now.Kept = g.previous.GetUnsearched(), g.previous.GetKept()
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
		Product: strings.Join(sorted(c.Products), ","), ToolVersion: c.GetToolVersion(),
		FailedRules: sorted(c.FailedRules), PlacelessRules: sorted(c.PlacelessRules), NamelessRule: c.NamelessRule,
		Unresolved: sorted(c.Unresolved), PartlyParsed: c.PartlyParsed,
	}
}

// overtakenRef is the ref of the coverages of older scans. Later scans continue the newest scan, so they do not see
// them. Only scans that are older still read what these decided. No ref has a space.
func overtakenRef(ref string) string { return "overtaken " + ref }

// storeCoverages stores the coverage of each analysis.
func (s *session) storeCoverages(ctx context.Context, groups []*matches) error {
	var rows []*ent.ScanCoverageCreate
	for _, g := range groups {
		about, ref := g.coverage.stored(), s.scan.Ref
		if g.newer != nil {
			ref = overtakenRef(ref)
		} else {
			g.stored = about
		}
		about.Unsearched, about.Kept = g.absences.unsearched, differences(slices.Sorted(slices.Values(g.kept)))
		content, err := Compress(about)
		if err != nil {
			return err
		}
		rows = append(rows, s.tx.ScanCoverage.Create().SetDeploymentID(s.deploymentID).SetScanID(s.scan.ID).SetProjectID(s.project.ID).
			SetRef(ref).SetTool(g.Tool).SetAnalysisCategory(g.Category).SetIsFullScan(s.scan.IsFullScan).SetProducts(g.reported).
			SetContent(content).SetAt(s.now).SetNillableCommitTime(s.scan.CommitTime).SetNillableRanAt(s.ranAt(g.coverage)))
	}
	for part := range slices.Chunk(rows, store.RowsAtOnce) {
		if err := s.tx.ScanCoverage.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
