package scans

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/sarif"
)

// batchSize is how many results are compared and written at a time.
const batchSize = 500

// analysis is what one report replaces: the results of one tool and category on one ref of a project.
type analysis struct{ tool, category string }

// outcome is what became of a result or of a stored finding.
type outcome struct{ product, what string }

// ingest stores one report.
type ingest struct {
	store        *store.Store
	jobs         *jobs.Jobs
	deploymentID int64
	ref          string // full
	commit       string
	category     string // of the upload; empty: the report's own
	report       *sarif.Report

	tx      *ent.Tx
	now     int64
	project *ent.Project
	scan    *ent.Scan

	assigners map[analysis]*identity.Assigner
	rules     map[ruleKey]storedRule
	batch     []*incoming
	seen      map[int64]struct{} // findings of earlier scans that this one met
	counts    map[outcome]int
	skipped   []sarif.Skip // at most maxSkippedShown
	skippedOf []int        // by run
}

// run does all of it in one transaction: nothing of a report is visible before all of it is.
func (in *ingest) run(ctx context.Context, tx *ent.Tx, projectName string) error {
	in.tx, in.now = tx, store.Now()
	in.assigners, in.rules = map[analysis]*identity.Assigner{}, map[ruleKey]storedRule{}
	in.seen, in.counts, in.skippedOf = map[int64]struct{}{}, map[outcome]int{}, make([]int, len(in.report.Runs))
	if err := in.openProject(ctx, projectName); err != nil {
		return fmt.Errorf("open project: %w", err)
	}
	if err := in.openScan(ctx); err != nil {
		return fmt.Errorf("open scan: %w", err)
	}
	if err := in.report.Results(ctx, func(r *sarif.Result) error { return in.take(ctx, r) }, in.skip); err != nil {
		return err
	}
	if err := in.flush(ctx); err != nil {
		return err
	}
	if err := in.recordCreated(ctx); err != nil {
		return fmt.Errorf("record created findings: %w", err)
	}
	if err := in.closeMissing(ctx); err != nil {
		return fmt.Errorf("close findings: %w", err)
	}
	if err := in.closeScan(ctx); err != nil {
		return fmt.Errorf("close scan: %w", err)
	}
	return outbox.ScanFinished(ctx, tx, in.jobs, in.scan.ID)
}

// take adds a result to the batch.
func (in *ingest) take(ctx context.Context, r *sarif.Result) error {
	run := in.report.Runs[r.Run]
	group := in.analysis(run)
	assigner, ok := in.assigners[group]
	if !ok {
		assigner = identity.NewAssigner()
		in.assigners[group] = assigner
	}
	in.batch = append(in.batch, newIncoming(r, group, assigner.Assign(identity.Evidence{
		Tool: group.tool, Rule: r.RuleID, Path: r.Path, MatchBasedID: r.MatchBasedID,
		ToolFingerprint: r.ToolFingerprint, Snippet: r.Snippet, Message: r.Message,
	})))
	if len(in.batch) < batchSize {
		return nil
	}
	return in.flush(ctx)
}

func (in *ingest) skip(s sarif.Skip) error {
	in.skippedOf[s.Run]++
	in.counts[outcome{in.report.Runs[s.Run].Product, "skipped"}]++
	if len(in.skipped) < maxSkippedShown {
		in.skipped = append(in.skipped, s)
	}
	return nil
}

func (in *ingest) analysis(run *sarif.Run) analysis {
	if in.category != "" {
		return analysis{run.Tool.Slug, in.category}
	}
	return analysis{run.Tool.Slug, run.AutomationCategory}
}

func (in *ingest) total(what string) (n int) {
	for o, count := range in.counts {
		if o.what == what {
			n += count
		}
	}
	return n
}

// changed is how many findings the report added or changed.
func (in *ingest) changed() int {
	return in.total("created") + in.total("updated") + in.total("reopened") + in.total("fixed")
}

// openProject finds or creates the project, and holds it until the end: uploads to one project take turns.
func (in *ingest) openProject(ctx context.Context, name string) error {
	p, err := in.lockProject(ctx, name)
	if ent.IsNotFound(err) {
		err = in.tx.Project.Create().SetDeploymentID(in.deploymentID).SetName(name).SetNameKey(strings.ToLower(name)).SetCreatedAt(in.now).
			OnConflictColumns(project.FieldDeploymentID, project.FieldName).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
		p, err = in.lockProject(ctx, name)
	}
	if err != nil {
		return err
	}
	update := p.Update().SetLatestScanAt(in.now).ClearArchivedAt()
	if gitref.IsBranch(in.ref) && betterDefault(p.DefaultBranch, in.ref) {
		update.SetDefaultBranch(in.ref)
	}
	in.project, err = update.Save(ctx)
	return err
}

func (in *ingest) lockProject(ctx context.Context, name string) (*ent.Project, error) {
	query := in.tx.Project.Query().Where(project.Name(name))
	if in.store.Postgres() {
		query.ForUpdate()
	}
	return query.Only(ctx)
}

// betterDefault guesses the default branch of a project that no source-code host describes: the first branch that was
// scanned, or main or master as soon as one is.
func betterDefault(known, scanned string) bool {
	usual := func(ref string) bool { return ref == "refs/heads/main" || ref == "refs/heads/master" }
	return known == "" || usual(scanned) && !usual(known)
}

func (in *ingest) openScan(ctx context.Context) (err error) {
	meta, err := proto.Marshal(&scansv1.ScanMeta{
		Branch: in.ref, Commit: in.commit, Repository: in.project.Name, RepoUrl: in.project.URL, On: "upload",
	})
	if err != nil {
		return err
	}
	in.scan, err = in.tx.Scan.Create().SetDeploymentID(in.deploymentID).SetProjectID(in.project.ID).SetRef(in.ref).SetCommit(in.commit).
		SetStatus(scansv1.ScanStatus_SCAN_STATUS_RUNNING.String()).SetProducts(0).SetIsFullScan(true).
		SetMeta(meta).SetStats(map[string]any{}).SetStartedAt(in.now).Save(ctx)
	return err
}

// closeScan writes what the scan brought.
func (in *ingest) closeScan(ctx context.Context) error {
	products, accepted := int32(0), map[string]int{}
	for _, run := range in.report.Runs {
		if run.Rejected == "" {
			products |= productBit(run.Product)
		}
	}
	stats := map[string]any{}
	for o, n := range in.counts {
		total, _ := stats[o.what].(int)
		stats[o.what] = total + n
		if o.what != "skipped" && o.what != "fixed" {
			accepted[o.product] += n
			products |= productBit(o.product)
		}
	}
	total := accepted[sast] + accepted[sca] + accepted[secrets]
	return in.scan.Update().SetStatus(scansv1.ScanStatus_SCAN_STATUS_COMPLETED.String()).SetProducts(products).
		SetTotalCount(int32(total)).SetCodeCount(int32(accepted[sast])).SetSupplyChainCount(int32(accepted[sca])).
		SetSecretsCount(int32(accepted[secrets])).SetStats(stats).SetCompletedAt(max(store.Now(), in.now+1)).Exec(ctx)
}
