package ai

import (
	"context"

	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/scm/connect"
)

// Register adds the domain to a server.
func Register(d *server.Deps) server.Parts {
	assistant := NewAssistant(d.Store, d.Model, connect.New(d.Store, d.Keyring, d.Egress, d.Config.EntraURL), d.Config.AIMonthlyRuns)
	return server.Parts{
		Background: []jobs.Work{MemoriesBackground(d.Store), assistant.Background(d.Log)},
		Services: func(context.Context) ([]server.Service, error) {
			return []server.Service{
				server.Group[aiv1.AiTasksServiceServer](aiv1.RegisterAiTasksServiceServer, NewTasks(assistant, d.Jobs, tasktoken.New(d.Store, d.Keyring, d.Config.BaseURL()), d.Config.PatternFixDaily),
					aiv1.RegisterAiTasksServiceHandlerClient, aiv1.NewAiTasksServiceClient),
				server.Group[aiv1.AiFixJobsServiceServer](aiv1.RegisterAiFixJobsServiceServer, NewFixJobs(assistant, d.Jobs),
					aiv1.RegisterAiFixJobsServiceHandlerClient, aiv1.NewAiFixJobsServiceClient),
				server.Group[aiv1.AutofixServiceServer](aiv1.RegisterAutofixServiceServer, NewAutofix(assistant, d.Jobs),
					aiv1.RegisterAutofixServiceHandlerClient, aiv1.NewAutofixServiceClient),
				server.Group[aiv1.AutotriageFeedbackServiceServer](aiv1.RegisterAutotriageFeedbackServiceServer, NewFeedback(d.Store),
					aiv1.RegisterAutotriageFeedbackServiceHandlerClient, aiv1.NewAutotriageFeedbackServiceClient),
				server.Group[aiv1.MemoriesServiceServer](aiv1.RegisterMemoriesServiceServer, NewMemories(d.Store),
					aiv1.RegisterMemoriesServiceHandlerClient, aiv1.NewMemoriesServiceClient),
			}, nil
		},
	}
}
