package workflows

import (
	"context"

	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/workflows/engine"
	"github.com/palisade/palisade/services/workflows/steps"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	kinds := steps.Registry(steps.Needs{
		Store: d.Store, Egress: d.Egress, LLM: d.Model, Dir: d.Config.Data,
		Repository: connect.New(d.Store, d.Keyring, d.Egress, d.Config.EntraURL).Repository,
	})
	runner := engine.New(d.Store, kinds, d.Config.WorkflowMaxTasks, d.Log)
	return server.Parts{
		Background: []jobs.Work{runner.Background(d.Config.WorkflowRetention)},
		Services: func(context.Context) ([]server.Service, error) {
			catalog := NewCatalog(d.Store, kinds)
			runs := NewRuns(d.Store, d.Jobs, runner, catalog.Current)
			server.Shared(d, outbox.StarterKey{}, func() *outbox.Starter { return &outbox.Starter{} }).Prepare = runs.prepareAutomatic
			return []server.Service{
				server.Group[workflowsv1.WorkflowCatalogServiceServer](workflowsv1.RegisterWorkflowCatalogServiceServer, catalog,
					workflowsv1.RegisterWorkflowCatalogServiceHandlerClient, workflowsv1.NewWorkflowCatalogServiceClient),
				server.Group[workflowsv1.AgenticIssuesServiceServer](workflowsv1.RegisterAgenticIssuesServiceServer, NewAgenticIssues(d.Store),
					workflowsv1.RegisterAgenticIssuesServiceHandlerClient, workflowsv1.NewAgenticIssuesServiceClient),
				server.Group[workflowsv1.WorkflowJobsServiceServer](workflowsv1.RegisterWorkflowJobsServiceServer, NewJobReads(d.Store),
					workflowsv1.RegisterWorkflowJobsServiceHandlerClient, workflowsv1.NewWorkflowJobsServiceClient),
				server.Group[workflowsv1.WorkflowRunsServiceServer](workflowsv1.RegisterWorkflowRunsServiceServer, runs,
					workflowsv1.RegisterWorkflowRunsServiceHandlerClient, workflowsv1.NewWorkflowRunsServiceClient),
				server.Group[workflowsv1.WorkflowTasksServiceServer](workflowsv1.RegisterWorkflowTasksServiceServer, NewTasks(d.Store, d.Jobs, runner, d.Log),
					workflowsv1.RegisterWorkflowTasksServiceHandlerClient, workflowsv1.NewWorkflowTasksServiceClient),
			}, nil
		},
	}
}
