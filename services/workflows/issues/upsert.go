package issues

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/agenticissue"
	"github.com/palisade/palisade/ent/agenticissuecoverage"
	"github.com/palisade/palisade/ent/agenticissuelabel"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowfinding"
	"github.com/palisade/palisade/ent/workflowrun"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/issues/identity"
	"github.com/palisade/palisade/services/workflows/step"
)

// wholeProject is the covered path of a step that examined the whole project.
const wholeProject = ""

// Upsert stores the results of a step: it creates new issues and updates known ones. covered lists the paths that the
// step examined; nil means the whole project, an empty list means none. Upsert is idempotent for one run, so a step can
// be retried. It reopens an issue that was marked as fixed; an ignored issue stays ignored.
func Upsert(ctx context.Context, tx *ent.Tx, call step.Call, found []Found, covered []string) (Counts, error) {
	ctx = tenant.NewContext(ctx, call.DeploymentID)
	if err := running(ctx, tx, call); err != nil {
		return Counts{}, err
	}
	if err := lock(ctx, tx, call.DeploymentID, call.ProjectID); err != nil {
		return Counts{}, err
	}
	u := &upsert{call: call, tx: tx, now: store.Now(), entries: map[string]*entry{}}
	for _, f := range found {
		u.add(f)
	}
	for _, stage := range []func(context.Context) error{
		func(ctx context.Context) error { return storeCoverage(ctx, tx, call, covered) },
		u.read, u.writeIssues, u.writeLabels, u.writeActivities, u.writeFindings,
	} {
		if err := stage(ctx); err != nil {
			return Counts{}, fmt.Errorf("store what run %d found: %w", call.RunID, err)
		}
	}
	return u.counts(), nil
}

// forUpdate locks the rows of a query on PostgreSQL. On SQLite the writing transaction is the only one.
func forUpdate(s *entsql.Selector) {
	if s.Dialect() == dialect.Postgres {
		s.ForUpdate()
	}
}

// running rejects results of a run that has ended, and locks the run until the end of the transaction. Call it before
// lock: code that ends a run takes both locks in this order.
func running(ctx context.Context, tx *ent.Tx, call step.Call) error {
	going, err := tx.WorkflowRun.Query().Where(workflowrun.DeploymentID(call.DeploymentID), workflowrun.ID(call.RunID), workflowrun.FinishedAtIsNil(),
		func(s *entsql.Selector) {
			if s.Dialect() == dialect.Postgres {
				s.ForShare()
			}
		}).IDs(ctx)
	if err == nil && len(going) == 0 {
		err = step.Permanent("run %d has ended", call.RunID)
	}
	return err
}

// lock serializes runs over the same project until the end of the transaction.
func lock(ctx context.Context, tx *ent.Tx, deploymentID int64, projectID *int64) error {
	if projectID == nil {
		_, err := tx.Deployment.Query().Where(deployment.ID(deploymentID), forUpdate).IDs(ctx)
		return err
	}
	found, err := tx.Project.Query().Where(project.DeploymentID(deploymentID), project.ID(*projectID), forUpdate).IDs(ctx)
	if err == nil && len(found) == 0 {
		err = step.Permanent("project %d no longer exists", *projectID)
	}
	return err
}

// storeCoverage stores which paths the step examined.
func storeCoverage(ctx context.Context, tx *ent.Tx, call step.Call, covered []string) error {
	paths := map[string]bool{wholeProject: covered == nil}
	for _, path := range covered {
		if path = identity.File(path); path != "" {
			paths[path] = true
		}
	}
	if covered != nil {
		delete(paths, wholeProject)
	}
	var rows []*ent.AgenticIssueCoverageCreate
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		rows = append(rows, tx.AgenticIssueCoverage.Create().SetDeploymentID(call.DeploymentID).SetRunID(call.RunID).SetPath(path))
	}
	for part := range slices.Chunk(rows, rowsPerInsert) {
		err := tx.AgenticIssueCoverage.CreateBulk(part...).
			OnConflictColumns(agenticissuecoverage.FieldDeploymentID, agenticissuecoverage.FieldRunID, agenticissuecoverage.FieldPath).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// upsert is the state of one call of Upsert.
type upsert struct {
	call step.Call
	tx   *ent.Tx
	now  int64
	// entries holds the results by their key in the run; order has the keys in order of arrival.
	entries map[string]*entry
	order   []string
}

// entry is one result and its issue.
type entry struct {
	Found
	key      string
	identity string
	// reported is true if this run reported the issue before.
	reported bool
	// before is the stored issue; nil for a new one. after is the new state; nil if the result makes no issue.
	before, after *ent.AgenticIssue
	labels        []label
}

type label struct{ kind, value string }

// isIssue reports whether a result makes an issue. Other results can only update a known issue.
func (e *entry) isIssue() bool {
	return (e.Vulnerable == nil || *e.Vulnerable) && e.Verified != VerifiedAbsent
}

// add adds a result. Two equal results become the first one, with the lists of both.
func (u *upsert) add(f Found) {
	var projectID int64
	if u.call.ProjectID != nil {
		projectID = *u.call.ProjectID
	}
	evidence := f.Evidence
	if identity.Evidence(evidence) == "" {
		evidence = f.Title
	}
	f.File = clip(identity.File(f.File), maxValue)
	e := &entry{Found: f, identity: identity.Of(projectID, f.File, f.Class, evidence)}
	e.key = e.identity
	if !e.isIssue() {
		e.key = "none:" + e.identity
	}
	if known := u.entries[e.key]; known != nil {
		known.merge(f)
		return
	}
	u.entries[e.key] = e
	u.order = append(u.order, e.key)
}

func (e *entry) merge(f Found) {
	for _, pair := range []struct {
		to   *[]string
		from []string
	}{
		{&e.CWEs, f.CWEs},
		{&e.OWASPs, f.OWASPs},
		{&e.Actions, f.Actions},
		{&e.Identities, f.Identities},
		{&e.DependencyPaths, f.DependencyPaths},
		{&e.DirectDependencies, f.DirectDependencies},
		{&e.Domains, f.Domains},
	} {
		*pair.to = union(*pair.to, pair.from...)
	}
	if f.Verified != "" {
		e.Verified = f.Verified
	}
}

// read loads the stored issues of the results and decides their new state.
func (u *upsert) read(ctx context.Context) error {
	known, err := u.issues(ctx)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(u.order, rowsPerInsert) {
		keys, err := u.tx.WorkflowFinding.Query().Where(workflowfinding.DeploymentID(u.call.DeploymentID), workflowfinding.RunID(u.call.RunID),
			workflowfinding.KeyIn(part...)).Select(workflowfinding.FieldKey).Strings(ctx)
		if err != nil {
			return err
		}
		for _, key := range keys {
			u.entries[key].reported = true
		}
	}
	for _, e := range u.entries {
		e.before = known[e.identity]
		if e.key != e.identity && u.entries[e.identity] != nil {
			continue // if two results contradict each other, the detection counts
		}
		if err := e.decide(u.call, u.now); err != nil {
			return err
		}
	}
	return nil
}

// issues reads the issues of the results by identity and locks them.
func (u *upsert) issues(ctx context.Context) (map[string]*ent.AgenticIssue, error) {
	known := map[string]*ent.AgenticIssue{}
	for part := range slices.Chunk(u.order, rowsPerInsert) {
		identities := make([]string, len(part))
		for i, key := range part {
			identities[i] = u.entries[key].identity
		}
		rows, err := u.tx.AgenticIssue.Query().Where(agenticissue.DeploymentID(u.call.DeploymentID), agenticissue.IdentityIn(identities...), forUpdate).
			Order(ent.Asc(agenticissue.FieldID)).All(ctx)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			known[row.Identity] = row
		}
	}
	return known, nil
}

// writeIssues writes all issues, one statement per batch, and sets the ids of new issues.
func (u *upsert) writeIssues(ctx context.Context) error {
	var rows []*ent.AgenticIssueCreate
	for _, key := range u.order {
		if after := u.entries[key].after; after != nil {
			rows = append(rows, u.tx.AgenticIssue.Create().SetDeploymentID(u.call.DeploymentID).SetNillableProjectID(u.call.ProjectID).
				SetIdentity(after.Identity).SetClass(after.Class).SetTitle(after.Title).SetDescription(after.Description).
				SetReasoning(after.Reasoning).SetFilePath(after.FilePath).SetSeverity(after.Severity).SetDetectionState(after.DetectionState).
				SetTriageState(after.TriageState).SetTriageReason(after.TriageReason).SetDetails(after.Details).SetCreatedAt(after.CreatedAt).
				SetLastDetectedAt(after.LastDetectedAt).SetNillableTriagedAt(after.TriagedAt))
		}
	}
	for part := range slices.Chunk(rows, rowsPerInsert) {
		err := u.tx.AgenticIssue.CreateBulk(part...).OnConflictColumns(agenticissue.FieldDeploymentID, agenticissue.FieldIdentity).
			UpdateNewValues().Exec(ctx)
		if err != nil {
			return err
		}
	}
	stored, err := u.issues(ctx)
	if err != nil {
		return err
	}
	for _, e := range u.entries {
		if e.after != nil {
			e.after.ID = stored[e.identity].ID
		}
	}
	return nil
}

func (u *upsert) writeLabels(ctx context.Context) error {
	var rows []*ent.AgenticIssueLabelCreate
	for _, key := range u.order {
		e := u.entries[key]
		for _, l := range e.labels {
			rows = append(rows, u.tx.AgenticIssueLabel.Create().SetDeploymentID(u.call.DeploymentID).SetIssueID(e.after.ID).SetKind(l.kind).SetValue(l.value))
		}
	}
	for part := range slices.Chunk(rows, rowsPerInsert) {
		err := u.tx.AgenticIssueLabel.CreateBulk(part...).OnConflictColumns(agenticissuelabel.FieldDeploymentID, agenticissuelabel.FieldKind,
			agenticissuelabel.FieldValue, agenticissuelabel.FieldIssueID).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

// writeActivities writes the changes. Most results change only the times of an issue, so few rows are written, one for
// each change.
func (u *upsert) writeActivities(ctx context.Context) error {
	var rows []*ent.AgenticIssueEventCreate
	for _, key := range u.order {
		e := u.entries[key]
		if e.after == nil {
			continue
		}
		activity := Activity(e.before, e.after)
		if activity == nil {
			continue
		}
		stored, err := proto.Marshal(byRun(activity, u.call.RunID, e.reason(), u.call.Workflow))
		if err != nil {
			return err
		}
		rows = append(rows, u.tx.AgenticIssueEvent.Create().SetDeploymentID(u.call.DeploymentID).SetIssueID(e.after.ID).SetActivity(stored).SetAt(u.now))
	}
	for part := range slices.Chunk(rows, rowsPerInsert) {
		if err := u.tx.AgenticIssueEvent.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// writeFindings writes the results for the run's report.
func (u *upsert) writeFindings(ctx context.Context) error {
	var rows []*ent.WorkflowFindingCreate
	for _, key := range u.order {
		e := u.entries[key]
		if e.reported {
			continue
		}
		row := u.tx.WorkflowFinding.Create().SetDeploymentID(u.call.DeploymentID).SetRunID(u.call.RunID).SetKey(e.key).SetFile(e.File).
			SetStartLine(max(e.StartLine, 0)).SetEndLine(max(e.EndLine, 0)).SetVulnerable(e.isIssue()).SetReasoning(clip(e.Reasoning, maxText)).
			SetSeverity(Severities[severityOf(e.Severity)-1])
		if e.after != nil {
			row.SetIssueID(e.after.ID)
		}
		rows = append(rows, row)
	}
	for part := range slices.Chunk(rows, rowsPerInsert) {
		err := u.tx.WorkflowFinding.CreateBulk(part...).
			OnConflictColumns(workflowfinding.FieldDeploymentID, workflowfinding.FieldRunID, workflowfinding.FieldKey).Ignore().Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *upsert) counts() (c Counts) {
	for _, e := range u.entries {
		switch {
		case e.after == nil:
			continue
		case e.before == nil:
			c.Created++
		default:
			c.Updated++
		}
		c.Total++
	}
	return c
}
