package workflows

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflow"
	"github.com/palisade/palisade/ent/workflowversion"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/definition"
	"github.com/palisade/palisade/services/workflows/step"
)

const (
	// maxWorkflows limits the catalog of a deployment: the list has no pages (contract: operation 2).
	maxWorkflows = 200
	// maxShownVersions is the maximum number of versions listed for a workflow.
	maxShownVersions = 100
	// maxShownProblems keeps the error for an invalid definition below the size limit of gRPC trailers.
	maxShownProblems = 40
	auditWorkflow    = "workflow"
)

// Catalog is the part of the service group "agentic workflows" that manages workflow types.
type Catalog struct {
	workflowsv1.UnimplementedWorkflowCatalogServiceServer
	store   *store.Store
	kinds   step.Registry
	shipped *shippedWorkflows
}

// NewCatalog serves the catalog from the store. Steps can use the given kinds.
func NewCatalog(st *store.Store, kinds step.Registry) *Catalog {
	return &Catalog{store: st, kinds: kinds, shipped: newShipped(st, kinds)}
}

// Current returns the version that new runs of a workflow use. It returns NOT_FOUND if the workflow does not exist, and
// FAILED_PRECONDITION if it is disabled. It may publish the shipped workflows, so it must not be called in a
// transaction.
func (s *Catalog) Current(ctx context.Context, name string) (*ent.WorkflowVersion, error) {
	if err := s.shipped.ensure(ctx); err != nil {
		return nil, err
	}
	row, err := findWorkflow(ctx, s.store.Reader.Workflow.Query(), name)
	if err != nil {
		return nil, err
	}
	if !row.Enabled {
		return nil, disabled(name)
	}
	return s.store.Reader.WorkflowVersion.Get(ctx, row.VersionID)
}

func disabled(name string) error {
	return apierr.FailedPrecondition("workflow %s is disabled: an administrator can enable it", name)
}

// ListWorkflowTypes lists the catalog.
func (s *Catalog) ListWorkflowTypes(ctx context.Context, _ *workflowsv1.ListWorkflowTypesRequest) (*workflowsv1.ListWorkflowTypesResponse, error) {
	if err := s.shipped.ensure(ctx); err != nil {
		return nil, err
	}
	rows, err := s.store.Reader.Workflow.Query().Order(ent.Asc(workflow.FieldName)).Limit(maxWorkflows).All(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.VersionID
	}
	query := s.store.Reader.WorkflowVersion.Query().Where(store.OneOf(workflowversion.FieldID, ids))
	query.Select(workflowversion.FieldID, workflowversion.FieldNumber, workflowversion.FieldCatalogEntry, workflowversion.FieldPlan)
	versions, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*ent.WorkflowVersion, len(versions))
	for _, version := range versions {
		byID[version.ID] = version
	}
	response, ready := &workflowsv1.ListWorkflowTypesResponse{}, s.readiness()
	for _, row := range rows {
		version := byID[row.VersionID]
		if version == nil {
			continue // a newer version was published between the two reads: the next list includes it
		}
		entry, err := catalogEntry(row, version)
		if err != nil {
			return nil, err
		}
		if err := ready.show(ctx, entry, version); err != nil {
			return nil, err
		}
		response.Workflows = append(response.Workflows, entry)
	}
	return response, nil
}

// GetWorkflowType returns one workflow with its definition.
func (s *Catalog) GetWorkflowType(ctx context.Context, r *workflowsv1.GetWorkflowTypeRequest) (*workflowsv1.GetWorkflowTypeResponse, error) {
	if err := s.shipped.ensure(ctx); err != nil {
		return nil, err
	}
	row, err := findWorkflow(ctx, s.store.Reader.Workflow.Query(), r.GetName())
	if err != nil {
		return nil, err
	}
	current, err := s.store.Reader.WorkflowVersion.Get(ctx, row.VersionID)
	if err != nil {
		return nil, err
	}
	entry, err := catalogEntry(row, current)
	if err != nil {
		return nil, err
	}
	if err := s.readiness().show(ctx, entry, current); err != nil {
		return nil, err
	}
	query := s.store.Reader.WorkflowVersion.Query().Where(workflowversion.Name(row.Name), workflowversion.Published(true)).
		Order(ent.Desc(workflowversion.FieldNumber)).Limit(maxShownVersions)
	query.Select(workflowversion.FieldID, workflowversion.FieldNumber, workflowversion.FieldSourceHash,
		workflowversion.FieldPublishedBy, workflowversion.FieldPublishedAt)
	versions, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	response := &workflowsv1.GetWorkflowTypeResponse{Workflow: entry, Definition: string(current.Source)}
	for _, version := range versions {
		response.Versions = append(response.Versions, &workflowsv1.WorkflowTypeVersion{
			Version: strconv.FormatInt(version.Number, 10), PublishedAt: timestamppb.New(store.Time(version.PublishedAt)),
			PublishedBy: version.PublishedBy, Sha256: version.SourceHash, Current: version.ID == current.ID,
		})
	}
	return response, nil
}

// PublishWorkflowType publishes a definition.
func (s *Catalog) PublishWorkflowType(ctx context.Context, r *workflowsv1.PublishWorkflowTypeRequest) (*workflowsv1.PublishWorkflowTypeResponse, error) {
	source := []byte(r.GetDefinition())
	parsed, problems := definition.Parse(source, s.kinds)
	if len(problems) > 0 {
		return nil, lintError(problems)
	}
	if err := s.shipped.ensure(ctx); err != nil {
		return nil, err
	}
	by := ""
	if p, known := access.FromContext(ctx); known {
		by = p.Name
	}
	var entry *workflowsv1.WorkflowCatalogEntry
	var version *ent.WorkflowVersion
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		entry, version, err = publish(ctx, s.store, tx, publication{definition: parsed, source: source, by: by})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &workflowsv1.PublishWorkflowTypeResponse{Workflow: entry}, s.readiness().show(ctx, entry, version)
}

// UpdateWorkflowType enables or disables a workflow.
func (s *Catalog) UpdateWorkflowType(ctx context.Context, r *workflowsv1.UpdateWorkflowTypeRequest) (*workflowsv1.UpdateWorkflowTypeResponse, error) {
	if err := s.shipped.ensure(ctx); err != nil {
		return nil, err
	}
	var entry *workflowsv1.WorkflowCatalogEntry
	var version *ent.WorkflowVersion
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, current, before, err := s.lock(ctx, tx, r.GetName())
		if err != nil {
			return err
		}
		entry, version = proto.CloneOf(before), current
		if r.Enabled == nil || r.GetEnabled() == row.Enabled {
			return nil
		}
		if _, err := row.Update().SetEnabled(r.GetEnabled()).SetUpdatedAt(store.Now()).Save(ctx); err != nil {
			return err
		}
		entry.Enabled = r.GetEnabled()
		audit.Change(ctx, auditWorkflow, row.ID, before, proto.CloneOf(entry))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &workflowsv1.UpdateWorkflowTypeResponse{Workflow: entry}, s.readiness().show(ctx, entry, version)
}

// DeleteWorkflowType removes a workflow from the catalog. Its versions stay, because runs refer to them.
func (s *Catalog) DeleteWorkflowType(ctx context.Context, r *workflowsv1.DeleteWorkflowTypeRequest) (*workflowsv1.DeleteWorkflowTypeResponse, error) {
	if err := s.shipped.ensure(ctx); err != nil {
		return nil, err
	}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, _, before, err := s.lock(ctx, tx, r.GetName())
		if err != nil {
			return err
		}
		audit.Change(ctx, auditWorkflow, row.ID, before, nil)
		err = tx.WorkflowVersion.Update().Where(workflowversion.Name(row.Name), workflowversion.Published(true)).SetPublished(false).Exec(ctx)
		if err != nil {
			return err
		}
		return tx.Workflow.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &workflowsv1.DeleteWorkflowTypeResponse{}, nil
}

// LintWorkflowType returns the problems of a definition.
func (s *Catalog) LintWorkflowType(_ context.Context, r *workflowsv1.LintWorkflowTypeRequest) (*workflowsv1.LintWorkflowTypeResponse, error) {
	_, problems := definition.Parse([]byte(r.GetDefinition()), s.kinds)
	response := &workflowsv1.LintWorkflowTypeResponse{}
	for _, p := range problems {
		response.Problems = append(response.Problems, &workflowsv1.WorkflowProblem{Line: int32(p.Line), Step: p.Step, Text: p.Text})
	}
	return response, nil
}

// lock finds a workflow and locks it until the end of the transaction.
func (s *Catalog) lock(ctx context.Context, tx *ent.Tx, name string) (*ent.Workflow, *ent.WorkflowVersion, *workflowsv1.WorkflowCatalogEntry, error) {
	query := tx.Workflow.Query()
	if s.store.Postgres() {
		query.ForUpdate()
	}
	row, err := findWorkflow(ctx, query, name)
	if err != nil {
		return nil, nil, nil, err
	}
	version, err := tx.WorkflowVersion.Get(ctx, row.VersionID)
	if err != nil {
		return nil, nil, nil, err
	}
	entry, err := catalogEntry(row, version)
	return row, version, entry, err
}

func findWorkflow(ctx context.Context, query *ent.WorkflowQuery, name string) (*ent.Workflow, error) {
	row, err := query.Where(workflow.Name(name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("workflow %s not found", apierr.Quote(name))
	}
	return row, err
}

// lintError builds the error for all problems of a definition. The first one is in the text.
func lintError(problems []definition.Problem) error {
	details := &errdetails.BadRequest{}
	for _, p := range problems[:min(len(problems), maxShownProblems)] {
		details.FieldViolations = append(details.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: "definition", Description: p.String()})
	}
	text := "definition: " + problems[0].String()
	switch more := len(problems) - 1; {
	case more == 1:
		text += " (and one more problem)"
	case more > 1:
		text += fmt.Sprintf(" (and %d more problems)", more)
	}
	return apierr.New(codes.InvalidArgument, errorsv1.Reason_REASON_INVALID_ARGUMENT, text, details)
}

// catalogEntry converts a workflow to the API's form.
func catalogEntry(row *ent.Workflow, version *ent.WorkflowVersion) (*workflowsv1.WorkflowCatalogEntry, error) {
	entry, err := storedEntry(version)
	if err != nil {
		return nil, err
	}
	entry.Version, entry.Enabled = strconv.FormatInt(version.Number, 10), row.Enabled
	return entry, nil
}

// storedEntry decodes the catalog entry of a version.
func storedEntry(version *ent.WorkflowVersion) (*workflowsv1.WorkflowCatalogEntry, error) {
	entry := &workflowsv1.WorkflowCatalogEntry{}
	if err := proto.Unmarshal(version.CatalogEntry, entry); err != nil {
		return nil, fmt.Errorf("catalog entry of workflow version %d: %w", version.ID, err)
	}
	return entry, nil
}

func hashOf(source []byte) string {
	sum := sha256.Sum256(source)
	return hex.EncodeToString(sum[:])
}
