package services

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/deployments"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/scans"
)

// Domain is one service group: its handlers on the gRPC server, and its routes on the HTTP gateway.
type Domain struct {
	// RegisterGRPC registers the handlers.
	RegisterGRPC func(grpc.ServiceRegistrar)
	// RegisterHTTP adds the routes to mux; they call the handlers through conn, which has every interceptor. Nil for
	// service groups without routes.
	RegisterHTTP func(ctx context.Context, mux *runtime.ServeMux, conn grpc.ClientConnInterface) error
}

// deps is what service groups are made of.
type deps struct {
	config  Config
	log     *slog.Logger
	store   *store.Store
	jobs    *jobs.Jobs
	keyring *secret.Keyring
	tokens  *access.Tokens
	issuer  *access.Issuer
	metrics *telemetry.Metrics
	egress  *egress.Guard
}

// domains is the one list of what the server serves.
func domains(ctx context.Context, d deps) ([]Domain, error) {
	uploads, err := uploadOptions(ctx, d)
	if err != nil {
		return nil, err
	}
	return []Domain{
		group[platformv1.MiscellaneousServiceServer](platformv1.RegisterMiscellaneousServiceServer, platform.Miscellaneous{},
			platformv1.RegisterMiscellaneousServiceHandlerClient, platformv1.NewMiscellaneousServiceClient),
		group[deploymentsv1.DeploymentsServiceServer](deploymentsv1.RegisterDeploymentsServiceServer, deployments.NewDeployments(d.config.BaseURL()),
			deploymentsv1.RegisterDeploymentsServiceHandlerClient, deploymentsv1.NewDeploymentsServiceClient),
		group[projectsv1.ProjectsServiceServer](projectsv1.RegisterProjectsServiceServer, projects.NewProjects(d.store),
			projectsv1.RegisterProjectsServiceHandlerClient, projectsv1.NewProjectsServiceClient),
		group[scansv1.ScansServiceServer](scansv1.RegisterScansServiceServer, scans.NewScans(d.store),
			scansv1.RegisterScansServiceHandlerClient, scansv1.NewScansServiceClient),
		group[findingsv1.FindingsServiceServer](findingsv1.RegisterFindingsServiceServer, findings.NewFindings(d.store),
			findingsv1.RegisterFindingsServiceHandlerClient, findingsv1.NewFindingsServiceClient),
		group[findingsv1.SecretsServiceServer](findingsv1.RegisterSecretsServiceServer, findings.NewSecrets(d.store),
			findingsv1.RegisterSecretsServiceHandlerClient, findingsv1.NewSecretsServiceClient),
		group[findingsv1.TriageServiceServer](findingsv1.RegisterTriageServiceServer, findings.NewTriage(d.store),
			findingsv1.RegisterTriageServiceHandlerClient, findingsv1.NewTriageServiceClient),
		{RegisterGRPC: func(s grpc.ServiceRegistrar) {
			scansv1.RegisterReportUploadsServiceServer(s, scans.NewReportUploads(d.store, d.jobs, uploads))
		}},
	}, nil
}

// background is the one list of what domains do when nobody calls. There is no queue yet: a job finds its own with
// jobs.FromContext.
func background(d deps) []jobs.Work {
	return []jobs.Work{
		scans.Background(d.store, d.log),
	}
}

// group ties the handlers of a service group to the generated routes that lead to them.
func group[Server, Client any](
	registerGRPC func(grpc.ServiceRegistrar, Server), server Server,
	registerHTTP func(context.Context, *runtime.ServeMux, Client) error, client func(grpc.ClientConnInterface) Client,
) Domain {
	return Domain{
		RegisterGRPC: func(s grpc.ServiceRegistrar) { registerGRPC(s, server) },
		RegisterHTTP: func(ctx context.Context, mux *runtime.ServeMux, conn grpc.ClientConnInterface) error {
			return registerHTTP(ctx, mux, client(conn))
		},
	}
}

func uploadOptions(ctx context.Context, d deps) (scans.UploadOptions, error) {
	spool := filepath.Join(d.config.Data, "spool")
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return scans.UploadOptions{}, fmt.Errorf("make the spool directory: %w", err)
	}
	key, err := d.keyring.StoredKey(ctx, d.store, "redaction_key")
	if err != nil {
		return scans.UploadOptions{}, err
	}
	return scans.UploadOptions{
		SpoolDir:     spool,
		MaxBytes:     int64(d.config.MaxUpload),
		RedactionKey: key,
		Ingested: func(product, outcome string, n int) {
			d.metrics.FindingsIngested.WithLabelValues(product, outcome).Add(float64(n))
		},
	}, nil
}
