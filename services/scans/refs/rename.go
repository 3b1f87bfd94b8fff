package refs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

// Earlier versions stored checkouts without a branch as a branch named HEAD, or all under one ref. This job renames
// what they stored. It runs again and again, because during an upgrade nodes of the earlier version still store such
// scans. When there is nothing to do, a run reads a few rows.

const (
	renameInterval = time.Hour
	// renameBatch is how many rows one transaction renames.
	renameBatch = 5000
)

// renameArgs is the job that renames refs.
type renameArgs struct{}

// Kind implements river.JobArgs.
func (renameArgs) Kind() string { return "rename_refs" }

// InsertOpts prevents runs from piling up while no node works.
func (renameArgs) InsertOpts() river.InsertOpts { return once() }

// Renamer renames the refs of all deployments.
type Renamer struct {
	river.WorkerDefaults[renameArgs]
	store *store.Store
	log   *slog.Logger
}

// NewRenamer renames refs in the store.
func NewRenamer(st *store.Store, log *slog.Logger) *Renamer { return &Renamer{store: st, log: log} }

// Timeout limits a run. An aborted run keeps its progress.
func (*Renamer) Timeout(*river.Job[renameArgs]) time.Duration { return tidyTimeout }

// Work implements river.Worker.
func (w *Renamer) Work(ctx context.Context, _ *river.Job[renameArgs]) error { return w.Rename(ctx) }

// Rename renames the refs of all deployments.
func (w *Renamer) Rename(ctx context.Context) error {
	deployments, err := w.store.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).IDs(tenant.System(ctx))
	if err != nil {
		return err
	}
	for _, id := range deployments {
		for _, ref := range gitref.Misnamed() {
			if err := w.rename(tenant.NewContext(ctx, id), ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// rename renames a ref in all projects of the context's deployment.
func (w *Renamer) rename(ctx context.Context, ref string) error {
	var named []int64
	err := w.store.Reader.Scan.Query().Where(scan.Ref(ref), movable(ref)).Unique(true).Select(scan.FieldProjectID).Scan(ctx, &named)
	if err != nil {
		return err
	}
	projects, err := w.store.Reader.Project.Query().
		Where(project.Or(store.OneOf(project.FieldID, named), project.DefaultBranch(ref), project.PrimaryBranch(ref))).Order(ent.Asc(project.FieldID)).All(ctx)
	for _, of := range projects {
		r := &renamer{store: w.store, project: of, ref: ref}
		if err := r.run(ctx); err != nil {
			return fmt.Errorf("rename the ref %s of project %d: %w", ref, of.ID, err)
		}
		w.log.InfoContext(ctx, "scans of checkouts without a branch were renamed", "project", of.Name, "ref", ref, "scans", r.scans, "findings", r.findings)
	}
	return err
}

// hasCommit is the SQL condition for a scan whose commit can name a ref, as in gitref.Scanned.
const hasCommit = `length("commit") BETWEEN 7 AND 64 AND ltrim(lower("commit"), '0123456789abcdef') = ''`

// movable selects the scans of a ref that get another one. A scan without a commit keeps the ref of an unknown
// commit.
func movable(ref string) predicate.Scan {
	return func(s *entsql.Selector) {
		if ref == gitref.UnknownCommit {
			s.Where(entsql.ExprP(hasCommit))
		}
	}
}

// renamer renames one ref of one project.
type renamer struct {
	store           *store.Store
	project         *ent.Project
	ref             string
	scans, findings int
}

// run moves the findings to the commit of the newest scan, because they show its state, and each scan to its own
// commit. Scans are last: the findings are moved as long as there are scans of the ref.
func (r *renamer) run(ctx context.Context) error {
	for _, step := range []func(context.Context, *ent.Tx) (int, error){r.correctBranches, r.moveFindings, r.moveScans} {
		for {
			n := 0
			err := r.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
				if err = lockProject(ctx, r.store, tx, r.project.ID); err == nil {
					n, err = step(ctx, tx)
				}
				return err
			})
			if ent.IsNotFound(err) {
				return nil // deleted concurrently
			}
			if err != nil {
				return err
			}
			if n < renameBatch {
				break
			}
		}
	}
	return nil
}
