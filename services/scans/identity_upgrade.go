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

// A new version of the identity ladder makes other evidence. Findings keep their names and with them all that people
// decided; only their evidence is made anew, from what is stored of them: in the background after a start, and before
// an import that needs it earlier.

const (
	// upgradeWindow is how many findings are looked at to find those of old versions.
	upgradeWindow = 20_000
	// upgradeInterval is how often the job runs beside the start of a node; once all is done, it reads one row.
	upgradeInterval = 24 * time.Hour
	// upgradeTimeout lets the job go on for long; what it did stays done.
	upgradeTimeout = 6 * time.Hour
	// upgradeSetting keeps the version up to which everything is upgraded.
	upgradeSetting = "identity_version"
)

// upgradeArgs is the job that upgrades the identities of all findings.
type upgradeArgs struct{}

// Kind is the name in the queue.
func (upgradeArgs) Kind() string { return "upgrade_identities" }

// InsertOpts keep runs from piling up while no node works.
func (upgradeArgs) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type upgradeWorker struct {
	river.WorkerDefaults[upgradeArgs]
	store *store.Store
	log   *slog.Logger
}

// Timeout is how long a run may take.
func (*upgradeWorker) Timeout(*river.Job[upgradeArgs]) time.Duration { return upgradeTimeout }

// Work goes through all findings once, in short transactions. It may be stopped and run again at any time.
func (w *upgradeWorker) Work(ctx context.Context, _ *river.Job[upgradeArgs]) error {
	ctx = tenant.System(ctx)
	done, err := w.done(ctx)
	if err != nil || done {
		return err
	}
	empty, err := w.empty(ctx)
	if err != nil || empty {
		return err // there is nothing to remember of it
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

// outdatedFinding is one that has to be upgraded.
type outdatedFinding struct {
	ID           int64 `sql:"id"`
	DeploymentID int64 `sql:"deployment_id"`
	ProjectID    int64 `sql:"project_id"`
}

// window reads which of the next findings are outdated, and the last id that it looked at.
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

// byProject makes the portions that are upgraded together: some findings of one project.
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

// upgrade works one portion in a transaction of its own, while no import changes the project.
func (w *upgradeWorker) upgrade(ctx context.Context, part []outdatedFinding) (n int, err error) {
	ids := make([]int64, len(part))
	for i, row := range part {
		ids[i] = row.ID
	}
	deploymentID, projectID := part[0].DeploymentID, part[0].ProjectID
	err = w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		_, err := lockProject(ctx, w.store, tx, project.And(project.ID(projectID), project.DeploymentID(deploymentID)))
		if ent.IsNotFound(err) {
			return nil // deleted meanwhile
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
