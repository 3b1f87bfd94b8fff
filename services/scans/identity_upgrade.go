package scans

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rulealias"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// A new version of the identity ladder makes other evidence. Findings keep their names and with them all that people decided;
// only their evidence is made anew, from what is stored of them: in the background after a start, and before an import that needs
// it earlier.

const (
	// upgradeBatch is how many findings are upgraded in one transaction.
	upgradeBatch = 500
	// upgradeWindow is how many findings are looked at to find those of old versions.
	upgradeWindow = 20_000
	// upgradeInterval is how often the job runs beside the start of a node; once all is done, it reads one row.
	upgradeInterval = 24 * time.Hour
	// upgradeTimeout lets the job go on for long; what it did stays done.
	upgradeTimeout = 6 * time.Hour
	// upgradeSetting keeps the version up to which everything is upgraded.
	upgradeSetting = "identity_version"
)

// upgradeIdentities upgrades what is left of the scan's project, in the transaction of the scan: one look at an index
// tells.
func (in *ingest) upgradeIdentities(ctx context.Context) error {
	without, err := in.tx.Project.Query().Where(project.ID(in.project.ID), hasFindingsWithoutEvidence).Exist(ctx)
	if err != nil {
		return err
	}
	if !without {
		return nil
	}
	return upgradeProject(ctx, in.store, in.tx, in.deploymentID, in.project.ID)
}

// hasFindingsWithoutEvidence chooses projects. SQLite is told the index: where one project has most of all findings it would read the
// table for any other, with the one writer in its hand.
func hasFindingsWithoutEvidence(s *entsql.Selector) {
	s.Where(entsql.P(func(b *entsql.Builder) {
		b.WriteString("EXISTS (SELECT 1 FROM findings AS entry")
		if b.Dialect() == dialect.SQLite {
			b.WriteString(" INDEXED BY findings_by_evidence")
		}
		b.WriteString(" WHERE entry.deployment_id = " + s.C(project.FieldDeploymentID) + " AND entry.project_id = " + s.C(project.FieldID) +
			" AND entry.match_key IS NULL AND entry.merged_into IS NULL)")
	}))
}

// upgradeProject upgrades all findings of a project that the transaction holds.
func upgradeProject(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID, projectID int64) error {
	for {
		ids, err := tx.Finding.Query().Where(finding.DeploymentID(deploymentID), finding.ProjectID(projectID), outdated).
			Order(ent.Asc(finding.FieldID)).Limit(upgradeBatch).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := upgradeFindings(ctx, st, tx, deploymentID, ids); err != nil {
			return err
		}
	}
}

// outdated are findings without evidence, or with that of another version.
func outdated(s *entsql.Selector) {
	column := s.C(finding.FieldEvidence)
	s.Where(entsql.Or(entsql.IsNull(column), entsql.P(func(b *entsql.Builder) {
		b.WriteString("SUBSTR(").WriteString(column).WriteString(", 1, 1) <> ").Arg([]byte{identity.Version})
	})))
}

// upgradeFindings makes the evidence of findings of one deployment anew. The transaction holds their projects.
func upgradeFindings(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, ids []int64) error {
	rows, err := tx.Finding.Query().Where(finding.DeploymentID(deploymentID)).Modify(store.FoundByIDs(ids)).
		Select(finding.FieldID, finding.FieldTool, finding.FieldRuleID, finding.FieldContent).All(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	var rules []int64
	for _, row := range rows {
		rules = append(rules, row.RuleID)
	}
	slices.Sort(rules)
	names, err := ruleNamesOf(ctx, tx, slices.Compact(rules))
	if err != nil {
		return err
	}
	aliases, err := tx.RuleAlias.Query().Where(rulealias.DeploymentID(deploymentID)).All(ctx)
	if err != nil {
		return err
	}
	present := make(map[ruleKey]string, len(aliases))
	for _, alias := range aliases {
		present[ruleKey{alias.Tool, alias.Name}] = alias.Canonical
	}
	values := make([]string, 0, len(rows))
	var args []any
	for n, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
		name := names[row.RuleID]
		if now, renamed := present[ruleKey{row.Tool, name}]; renamed {
			name = now
		}
		evidence := identity.EvidenceOf(identityText(name, content))
		value := "(?, ?, ?)"
		if n == 0 && st.Postgres() {
			value = "(CAST(? AS bigint), CAST(? AS bytea), CAST(? AS bigint))"
		}
		values, args = append(values, value), append(args, row.ID, evidence.Encode(), evidence.Key())
	}
	return st.Exec(ctx, tx, "UPDATE findings SET evidence = fresh.column2, match_key = fresh.column3 FROM (VALUES "+
		strings.Join(values, ", ")+") AS fresh WHERE findings.id = fresh.column1 AND +findings.deployment_id = ?", append(args, deploymentID)...)
}

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
	where := []predicate.Finding{finding.IDGT(after), outdated}
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
		if !known || len(parts[at]) == upgradeBatch {
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
		left, err := tx.Finding.Query().Where(finding.DeploymentID(deploymentID), outdated).Modify(store.FoundByIDs(ids)).IDs(ctx)
		if err != nil {
			return err
		}
		n = len(left)
		return upgradeFindings(ctx, w.store, tx, deploymentID, left)
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
