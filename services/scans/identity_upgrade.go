package scans

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
)

// A new version of the identity ladder computes other evidence. Findings keep their identities and all decisions; only
// their evidence is recomputed from the stored content. A job does this in the background after a start, and an import
// does it for its project if it comes first.

const (
	// upgradeWindow is the number of findings that one query searches for old versions.
	upgradeWindow = 20_000
	// upgradeInterval is how often the job runs, in addition to the start of a node. When everything is upgraded, a
	// run reads one row.
	upgradeInterval = 24 * time.Hour
	// upgradeTimeout allows for large databases. An aborted run keeps its progress.
	upgradeTimeout = 6 * time.Hour
	// upgradeSetting has the version to which all findings have been upgraded.
	upgradeSetting = "identity_version"
)

// upgradeArgs is the job that upgrades the identities of all findings.
type upgradeArgs struct{}

// Kind implements river.JobArgs.
func (upgradeArgs) Kind() string { return "upgrade_identities" }

// InsertOpts prevents runs from piling up while no node works.
func (upgradeArgs) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type upgradeWorker struct {
	river.WorkerDefaults[upgradeArgs]
	store *store.Store
	log   *slog.Logger
}

// Timeout limits a run.
func (*upgradeWorker) Timeout(*river.Job[upgradeArgs]) time.Duration { return upgradeTimeout }

// Work upgrades all findings in short transactions. It may be aborted and run again at any time.
func (w *upgradeWorker) Work(ctx context.Context, _ *river.Job[upgradeArgs]) error {
	ctx = tenant.System(ctx)
	done, err := w.done(ctx)
	if err != nil || done {
		return err
	}
	empty, err := w.empty(ctx)
	if err != nil || empty {
		return err // nothing to record
	}
	total, logged := 0, time.Now()
	for after := int64(0); ; {
		rows, last, err := w.window(ctx, after)
		if err != nil {
			return err
		}
		for _, part := range byProject(rows) {
			n, err := w.upgrade(ctx, part)
			if err != nil {
				return err
			}
			if total += n; time.Since(logged) > 10*time.Second {
				logged = time.Now()
				w.log.InfoContext(ctx, "the identities of findings are being upgraded", "version", identity.Version, "findings", total, "up_to_id", part[len(part)-1].ID)
			}
		}
		if last == after {
			break
		}
		after = last
	}
	if total > 0 {
		w.log.InfoContext(ctx, "the identities of findings were upgraded", "version", identity.Version, "findings", total)
	}
	return w.setDone(ctx)
}

// outdatedFinding is a finding that has to be upgraded.
type outdatedFinding struct {
	ID           int64 `sql:"id"`
	DeploymentID int64 `sql:"deployment_id"`
	ProjectID    int64 `sql:"project_id"`
}

// window reads the outdated findings among the next ones, and the last id of the window.
func (w *upgradeWorker) window(ctx context.Context, after int64) (rows []outdatedFinding, last int64, err error) {
	ids, err := w.store.Reader.Finding.Query().Where(finding.IDGT(after)).Order(ent.Asc(finding.FieldID)).Offset(upgradeWindow - 1).Limit(1).IDs(ctx)
	if err != nil {
		return nil, 0, err
	}
	where := []predicate.Finding{finding.IDGT(after), ingest.Outdated}
	if len(ids) > 0 {
		last = ids[0]
		where = append(where, finding.IDLTE(last))
	}
	err = w.store.Reader.Finding.Query().Where(where...).Order(ent.Asc(finding.FieldID)).
		Select(finding.FieldID, finding.FieldDeploymentID, finding.FieldProjectID).Scan(ctx, &rows)
	if len(ids) == 0 {
		last = after
	}
	return rows, last, err
}

// byProject splits findings into batches of one project each.
func byProject(rows []outdatedFinding) (parts [][]outdatedFinding) {
	open := map[int64]int{}
	for _, row := range rows {
		at, known := open[row.ProjectID]
		if !known || len(parts[at]) == ingest.UpgradeBatch {
			at = len(parts)
			open[row.ProjectID] = at
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], row)
	}
	return parts
}

// upgrade upgrades one batch in its own transaction, with the lock of the project.
func (w *upgradeWorker) upgrade(ctx context.Context, part []outdatedFinding) (n int, err error) {
	ids := make([]int64, len(part))
	for i, row := range part {
		ids[i] = row.ID
	}
	deploymentID, projectID := part[0].DeploymentID, part[0].ProjectID
	err = w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		_, err := lockProject(ctx, w.store, tx, project.And(project.ID(projectID), project.DeploymentID(deploymentID)))
		if ent.IsNotFound(err) {
			return nil // deleted concurrently
		}
		if err != nil {
			return err
		}
		left, err := tx.Finding.Query().Where(finding.DeploymentID(deploymentID), ingest.Outdated).Modify(store.FoundByIDs(ids)).IDs(ctx)
		if err != nil {
			return err
		}
		n = len(left)
		return ingest.UpgradeFindings(ctx, w.store, tx, deploymentID, left)
	})
	return n, err
}

func (w *upgradeWorker) empty(ctx context.Context) (bool, error) {
	some, err := w.store.Reader.Finding.Query().Exist(ctx)
	return !some, err
}

// done reports whether all findings have been upgraded to this version.
func (w *upgradeWorker) done(ctx context.Context) (bool, error) {
	row, err := w.store.Reader.Setting.Query().Where(setting.Name(upgradeSetting)).Only(ctx)
	if ent.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	version, err := strconv.Atoi(string(row.Value))
	if err != nil {
		return false, errors.Join(errors.New("setting "+upgradeSetting), err)
	}
	return version >= identity.Version, nil
}

func (w *upgradeWorker) setDone(ctx context.Context) error {
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Setting.Create().SetName(upgradeSetting).SetValue([]byte(strconv.Itoa(identity.Version))).
			OnConflictColumns(setting.FieldName).UpdateNewValues().Exec(ctx)
	})
}
