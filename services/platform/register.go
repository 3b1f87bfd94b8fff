package platform

import (
	"context"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/scm/connect"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	return server.Parts{
		Background: []jobs.Work{supportBackground(d.Config, d.Store, d.Egress, d.Log)},
		Services: func(ctx context.Context) ([]server.Service, error) {
			tokens := tasktoken.New(d.Store, d.Keyring, d.Config.BaseURL())
			if err := tokens.Prepare(ctx); err != nil {
				return nil, err
			}
			editor, err := NewEditor(d.Config)
			if err != nil {
				return nil, err
			}
			infrastructure, err := NewInfrastructure()
			if err != nil {
				return nil, err
			}
			return []server.Service{
				server.Group[platformv1.MiscellaneousServiceServer](platformv1.RegisterMiscellaneousServiceServer, NewMiscellaneous(d.State, d.Config.BaseURL(), infrastructure),
					platformv1.RegisterMiscellaneousServiceHandlerClient, platformv1.NewMiscellaneousServiceClient),
				server.Group[platformv1.InfrastructureConfigurationsServiceServer](platformv1.RegisterInfrastructureConfigurationsServiceServer, infrastructure,
					platformv1.RegisterInfrastructureConfigurationsServiceHandlerClient, platformv1.NewInfrastructureConfigurationsServiceClient),
				server.Group[platformv1.ScannerSupportServiceServer](platformv1.RegisterScannerSupportServiceServer, ScannerSupport{},
					platformv1.RegisterScannerSupportServiceHandlerClient, platformv1.NewScannerSupportServiceClient),
				server.Group[platformv1.AuditServiceServer](platformv1.RegisterAuditServiceServer, NewAudit(d.Store, d.Trail, d.Log),
					platformv1.RegisterAuditServiceHandlerClient, platformv1.NewAuditServiceClient),
				server.Group[platformv1.DoctorServiceServer](platformv1.RegisterDoctorServiceServer, NewDoctor(d.Store, d.Config),
					platformv1.RegisterDoctorServiceHandlerClient, platformv1.NewDoctorServiceClient),
				server.Group[platformv1.TasksServiceServer](platformv1.RegisterTasksServiceServer, NewTasks(d.Store, d.Jobs, tokens, d.Config.BaseURL()),
					platformv1.RegisterTasksServiceHandlerClient, platformv1.NewTasksServiceClient),
				server.Group[platformv1.CloudPostureCredentialsServiceServer](platformv1.RegisterCloudPostureCredentialsServiceServer,
					NewCloudPosture(d.Store, connect.Seals{Keyring: d.Keyring}, d.Egress),
					platformv1.RegisterCloudPostureCredentialsServiceHandlerClient, platformv1.NewCloudPostureCredentialsServiceClient),
				server.Group[platformv1.SupportServiceServer](platformv1.RegisterSupportServiceServer, NewSupport(d.Store, d.Jobs, supportReceivers(d.Config)),
					platformv1.RegisterSupportServiceHandlerClient, platformv1.NewSupportServiceClient),
				server.Group[platformv1.SurveysServiceServer](platformv1.RegisterSurveysServiceServer, NewSurveys(d.Store),
					platformv1.RegisterSurveysServiceHandlerClient, platformv1.NewSurveysServiceClient),
				server.Group[platformv1.EditorServiceServer](platformv1.RegisterEditorServiceServer, editor,
					platformv1.RegisterEditorServiceHandlerClient, platformv1.NewEditorServiceClient),
			}, nil
		},
	}
}
