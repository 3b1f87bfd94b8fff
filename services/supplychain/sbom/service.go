package sbom

import (
	"context"
	"errors"
	"fmt"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/exportfile"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/projects/gitref"
)

// Sboms is the service group "SBOMs".
type Sboms struct {
	supplychainv1.UnimplementedSbomsServiceServer
	starter exportfile.Starter
	baseURL string
}

// New starts SBOMs and tells their states. baseURL is the public URL of the server.
func New(st *store.Store, queue *jobs.Jobs, tasks *tasktoken.Tokens, baseURL string) *Sboms {
	return &Sboms{starter: exportfile.Starter{Store: st, Jobs: queue, Tokens: tasks}, baseURL: baseURL}
}

// CreateSbomExport starts the SBOM of a project.
func (s *Sboms) CreateSbomExport(ctx context.Context, r *supplychainv1.CreateSbomExportRequest) (*supplychainv1.CreateSbomExportResponse, error) {
	token, err := s.start(ctx, &supplychainv1.GenerateSbomAsyncRequest{
		RepositoryId: r.GetRepositoryId(), Ref: r.GetRef(), FormatVersion: r.GetFormatVersion(), SbomOutputFormat: r.GetSbomOutputFormat(),
		MetadataComponentType: r.GetMetadataComponentType(), MetadataSupplier: r.GetMetadataSupplier(),
	})
	if err != nil {
		return nil, err
	}
	return &supplychainv1.CreateSbomExportResponse{TaskToken: token}, nil
}

// GenerateSbomAsync starts the SBOM of a project.
func (s *Sboms) GenerateSbomAsync(ctx context.Context, r *supplychainv1.GenerateSbomAsyncRequest) (*supplychainv1.GenerateSbomAsyncResponse, error) {
	token, err := s.start(ctx, r)
	if err != nil {
		return nil, err
	}
	return &supplychainv1.GenerateSbomAsyncResponse{TaskTokenJwt: token}, nil
}

// start enqueues the job, and returns the token of its task.
func (s *Sboms) start(ctx context.Context, r *supplychainv1.GenerateSbomAsyncRequest) (string, error) {
	if _, err := find(ctx, s.starter.Store.Reader, r); err != nil {
		return "", err
	}
	format := exportfile.SBOM
	if r.GetSbomOutputFormat() == supplychainv1.SbomOutputFormat_SBOM_OUTPUT_FORMAT_XML {
		format = exportfile.SBOMXML
	}
	return s.starter.Start(ctx, format, r, func(deploymentID, exportID int64) river.JobArgs {
		return args{DeploymentID: deploymentID, ExportID: exportID}
	})
}

// find returns the project of a request, and checks the ref.
func find(ctx context.Context, db *ent.Client, r *supplychainv1.GenerateSbomAsyncRequest) (*ent.Project, error) {
	row, err := db.Project.Query().Where(project.ID(r.GetRepositoryId())).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("repository %d not found", r.GetRepositoryId())
	}
	if err != nil {
		return nil, fmt.Errorf("read project %d: %w", r.GetRepositoryId(), err)
	}
	if asked, primary := gitref.Full(r.GetRef()), primaryRef(row); asked != "" && primary != "" && asked != primary {
		return nil, apierr.InvalidArgument("ref", "ref: only the primary branch %s has an SBOM, got %s", apierr.Quote(primary), apierr.Quote(r.GetRef()))
	}
	return row, nil
}

// primaryRef is the full ref of a project's primary branch; empty if it is unknown.
func primaryRef(p *ent.Project) string {
	if p.PrimaryBranch != "" {
		return gitref.Full(p.PrimaryBranch)
	}
	return gitref.Full(p.DefaultBranch)
}

// GetSbomExport tells the state of an SBOM. Tokens of other callers, and of other tasks, are not found.
func (s *Sboms) GetSbomExport(ctx context.Context, r *supplychainv1.GetSbomExportRequest) (*supplychainv1.GetSbomExportResponse, error) {
	missing := apierr.NotFound("SBOM not found: the task token is malformed or expired, or belongs to another caller")
	task, err := s.starter.Tokens.Read(ctx, r.GetTaskToken())
	if errors.Is(err, tasktoken.ErrInvalid) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	if deploymentID, _ := tenant.FromContext(ctx); task.DeploymentID != deploymentID || task.Kind != (args{}).Kind() {
		return nil, missing
	}
	// The state of the job first: a job that ends in between has also written the row.
	states, err := s.starter.Jobs.States(ctx, task.DeploymentID, task.JobIDs)
	if err != nil {
		return nil, err
	}
	row, err := exportfile.Own(ctx, s.starter.Store, task.ObjectID)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, missing
	}
	switch state := states[task.JobIDs[0]]; {
	case row.CompletedAt != nil:
		return &supplychainv1.GetSbomExportResponse{
			Status:      supplychainv1.SbomExportStatus_SBOM_EXPORT_STATUS_COMPLETED,
			DownloadUrl: exportfile.URL(s.baseURL, row.DeploymentID, row.ID),
		}, nil
	case state == rivertype.JobStateDiscarded || state == rivertype.JobStateCancelled:
		told := row.Error
		if told == "" {
			told = fmt.Sprintf("the task failed; the server's log has the reason of job %d", task.JobIDs[0])
		}
		return &supplychainv1.GetSbomExportResponse{Status: supplychainv1.SbomExportStatus_SBOM_EXPORT_STATUS_FAILED, ErrorMessage: told}, nil
	}
	return &supplychainv1.GetSbomExportResponse{Status: supplychainv1.SbomExportStatus_SBOM_EXPORT_STATUS_IN_PROGRESS}, nil
}
