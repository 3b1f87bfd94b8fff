package workflows

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflow"
	"github.com/palisade/palisade/ent/workflowversion"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/definition"
)

// publication is a definition to be published as the current version.
type publication struct {
	definition *definition.Definition
	source     []byte
	by         string
}

// publish makes a definition the current version of its workflow and creates the workflow if needed. The workflow's row
// is created first and locked, so concurrent publications of one name get consecutive version numbers.
func publish(ctx context.Context, st *store.Store, tx *ent.Tx, p publication) (*workflowsv1.WorkflowCatalogEntry, *ent.WorkflowVersion, error) {
	name := p.definition.Entry.GetName()
	row, err := lockOrCreate(ctx, st, tx, name)
	if err != nil {
		return nil, nil, err
	}
	var before *workflowsv1.WorkflowCatalogEntry
	if row.VersionID != 0 {
		current, err := tx.WorkflowVersion.Get(ctx, row.VersionID)
		if err != nil {
			return nil, nil, err
		}
		if before, err = catalogEntry(row, current); err != nil || current.SourceHash == hashOf(p.source) {
			return before, current, err
		}
	}
	version, err := addVersion(ctx, tx, p)
	if err != nil {
		return nil, nil, err
	}
	if row, err = row.Update().SetVersionID(version.ID).SetUpdatedAt(version.PublishedAt).Save(ctx); err != nil {
		return nil, nil, err
	}
	after, err := catalogEntry(row, version)
	if err != nil {
		return nil, nil, err
	}
	if before == nil {
		audit.Change(ctx, auditWorkflow, row.ID, nil, after)
	} else {
		audit.Change(ctx, auditWorkflow, row.ID, before, after)
	}
	return proto.CloneOf(after), version, nil // the audit trail keeps after
}

func lockOrCreate(ctx context.Context, st *store.Store, tx *ent.Tx, name string) (*ent.Workflow, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	now := store.Now()
	err := tx.Workflow.Create().SetDeploymentID(deploymentID).SetName(name).SetCreatedAt(now).SetUpdatedAt(now).
		OnConflictColumns(workflow.FieldDeploymentID, workflow.FieldName).Ignore().Exec(ctx)
	if err != nil {
		return nil, err
	}
	query := tx.Workflow.Query()
	if st.Postgres() {
		query.ForUpdate()
	}
	row, err := findWorkflow(ctx, query, name)
	if err != nil || row.VersionID != 0 {
		return row, err
	}
	if n, err := tx.Workflow.Query().Count(ctx); err != nil {
		return nil, err
	} else if n > maxWorkflows {
		return nil, apierr.FailedPrecondition("the deployment has %d workflows, more are not allowed: delete one first", maxWorkflows)
	}
	return row, nil
}

// addVersion stores the next version. If a workflow of this name was deleted before, numbering continues, because runs
// of the deleted versions still exist.
func addVersion(ctx context.Context, tx *ent.Tx, p publication) (*ent.WorkflowVersion, error) {
	name := p.definition.Entry.GetName()
	query := tx.WorkflowVersion.Query().Where(workflowversion.Name(name)).Order(ent.Desc(workflowversion.FieldNumber)).Limit(1)
	query.Select(workflowversion.FieldID, workflowversion.FieldNumber)
	latest, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	number := int64(1)
	if len(latest) > 0 {
		number = latest[0].Number + 1
	}
	entry, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.definition.Entry)
	if err != nil {
		return nil, err
	}
	plan, err := proto.MarshalOptions{Deterministic: true}.Marshal(p.definition.Plan)
	if err != nil {
		return nil, err
	}
	return tx.WorkflowVersion.Create().SetName(name).SetNumber(number).SetCatalogEntry(entry).SetPlan(plan).
		SetSource(p.source).SetSourceHash(hashOf(p.source)).SetPublishedBy(p.by).SetPublishedAt(store.Now()).Save(ctx)
}
