package projects

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmconfig"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/syncjob"
)

// RefreshProjectsAsync starts reading the repositories of all connections. Its token is about the first jobs, at most
// tasktoken.MaxJobs.
func (s *Changes) RefreshProjectsAsync(ctx context.Context, _ *projectsv1.RefreshProjectsAsyncRequest) (*projectsv1.RefreshProjectsAsyncResponse, error) {
	configs, err := s.store.Reader.ScmConfig.Query().Order(scmconfig.ByID()).All(ctx)
	if err != nil {
		return nil, err
	}
	task := tasktoken.Task{Kind: syncjob.Args{}.Kind()}
	err = s.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
		task.JobIDs = nil
		for _, config := range configs {
			if connect.Callable(config) != nil {
				continue
			}
			task.DeploymentID = config.DeploymentID
			id, err := s.jobs.EnqueueTask(ctx, syncjob.Args{DeploymentID: config.DeploymentID, ConfigID: config.ID}, nil)
			if err != nil {
				return err
			}
			if len(task.JobIDs) < tasktoken.MaxJobs {
				task.JobIDs = append(task.JobIDs, id)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(task.JobIDs) == 0 {
		return nil, apierr.FailedPrecondition("no source-code host can be read: connect one, with an access token or an application")
	}
	signed, err := s.tasks.Mint(ctx, task)
	return &projectsv1.RefreshProjectsAsyncResponse{TaskTokenJwt: signed}, err
}

// SyncRepo starts reading one repository.
func (s *Changes) SyncRepo(ctx context.Context, r *projectsv1.SyncRepoRequest) (*projectsv1.SyncRepoResponse, error) {
	row, err := findRepository(ctx, s.store.Reader, r.GetRepoId())
	if err != nil {
		return nil, err
	}
	configs, err := s.store.Reader.ScmConfig.Query().Order(scmconfig.ByID()).All(ctx)
	if err != nil {
		return nil, err
	}
	config, name, why := connect.Reached(configs, row)
	if config == nil {
		return nil, apierr.FailedPrecondition("%s", why)
	}
	if err := connect.Callable(config); err != nil {
		return nil, apierr.FailedPrecondition("%s", connect.ErrorText(err))
	}
	err = s.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
		return s.jobs.Enqueue(ctx, syncjob.Args{DeploymentID: config.DeploymentID, ConfigID: config.ID, Repository: name}, nil)
	})
	if err != nil {
		return nil, err
	}
	repo, err := s.repositories.describe(ctx, s.store.Reader, row)
	return &projectsv1.SyncRepoResponse{Repo: repo}, err
}
