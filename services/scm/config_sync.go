package scm

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/syncjob"
)

// syncBatch is the number of repositories stored in one transaction.
const syncBatch = 100

// SyncScmConfig starts reading the repositories in the background.
func (s *Configurations) SyncScmConfig(ctx context.Context, r *scmv1.SyncScmConfigRequest) (*scmv1.SyncScmConfigResponse, error) {
	row, err := named(ctx, s.store.Reader, r.GetConfigId())
	if err != nil {
		return nil, err
	}
	if err := connect.Callable(row); err != nil {
		return nil, hostError(err)
	}
	args := syncjob.Args{DeploymentID: row.DeploymentID, ConfigID: row.ID, Debug: r.GetDebug()}
	task := tasktoken.Task{DeploymentID: row.DeploymentID, Kind: args.Kind(), ObjectID: row.ID, JobIDs: make([]int64, 1)}
	err = s.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) (err error) {
		task.JobIDs[0], err = s.jobs.EnqueueTask(ctx, args, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	token, err := s.tasks.Mint(ctx, task)
	return &scmv1.SyncScmConfigResponse{TaskTokenJwt: token}, err
}

type syncWorker struct {
	river.WorkerDefaults[syncjob.Args]
	connections *Connections
	log         *slog.Logger
}

// Timeout is the maximum duration of a job.
func (*syncWorker) Timeout(*river.Job[syncjob.Args]) time.Duration { return syncTimeout }

// Work reads the repositories. If it ends early, stored repositories stay, and the next job starts again.
func (w *syncWorker) Work(ctx context.Context, job *river.Job[syncjob.Args]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	row, err := w.connections.store.Reader.ScmConfig.Get(ctx, job.Args.ConfigID)
	if ent.IsNotFound(err) {
		return nil // deleted since
	}
	if err != nil {
		return err
	}
	if err := w.connections.refreshApp(ctx, row); err != nil {
		return err
	}
	s := repositorySync{Connections: w.connections, config: row, log: w.log, debug: job.Args.Debug}
	if job.Args.Repository != "" { // what happens to one repository says nothing about the connection
		return connect.Retry(s.one(ctx, job.Args.Repository), job.CreatedAt)
	}
	if err = s.run(ctx); err == nil {
		return s.done(ctx)
	}
	if connect.ErrorText(err) != "" {
		if stored := s.failed(ctx, err); stored != nil {
			return stored
		}
	}
	return connect.Retry(err, job.CreatedAt)
}

// repositorySync is one synchronization.
type repositorySync struct {
	*Connections
	config *ent.ScmConfig
	log    *slog.Logger
	debug  bool
	// onlyKnown leaves out repositories that no project is bound to.
	onlyKnown bool
	// spelled are the URLs that projects without an id are bound to, by their usual form. Administrators write them in any
	// letter case.
	spelled map[string][]string
}

func (s *repositorySync) run(ctx context.Context) error {
	h, err := s.Open(ctx, s.config)
	if err != nil {
		return err
	}
	if err := s.readSpelled(ctx); err != nil {
		return err
	}
	batch, all := make([]host.Repository, 0, syncBatch), listing{}
	for repository, err := range h.Repositories(ctx, s.config.Namespace) {
		if err != nil {
			return errors.Join(err, s.save(ctx, batch))
		}
		all.add(repository)
		if batch = append(batch, repository); len(batch) == syncBatch {
			if err := s.save(ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if err := s.save(ctx, batch); err != nil {
		return err
	}
	return s.markLeft(ctx, all)
}

// one reads one repository.
func (s *repositorySync) one(ctx context.Context, name string) error {
	h, err := s.Open(ctx, s.config)
	if err != nil {
		return err
	}
	repository, err := h.Repository(ctx, name)
	if host.Is(err, host.NotFound) {
		err = errors.Join(err, s.leftAt(ctx, name))
	}
	if err != nil {
		s.log.InfoContext(ctx, "a repository could not be read", "config_id", s.config.ID, "repository", name, "error", errors.Join(err, errors.Unwrap(err)))
		return err
	}
	if err := s.readSpelled(ctx); err != nil {
		return err
	}
	return s.save(ctx, []host.Repository{repository})
}

// done records the success.
func (s *repositorySync) done(ctx context.Context) error {
	return s.note(ctx, func(update *ent.ScmConfigUpdateOne) { update.SetLastSuccessfulSyncAt(store.Now()) })
}

// failed records the host's error in the configuration's status.
func (s *repositorySync) failed(ctx context.Context, err error) error {
	s.log.InfoContext(ctx, "repositories could not be read", "config_id", s.config.ID, "error", errors.Join(err, errors.Unwrap(err)))
	return s.note(ctx, func(update *ent.ScmConfigUpdateOne) {
		update.SetCheckedAt(store.Now()).SetCheckOk(false).SetCheckError("sync: " + connect.ErrorText(err))
	})
}

func (s *repositorySync) note(ctx context.Context, fields func(*ent.ScmConfigUpdateOne)) error {
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		before, err := tx.ScmConfig.Get(ctx, s.config.ID)
		if ent.IsNotFound(err) || err == nil && !sameConnection(before, s.config) {
			return nil
		}
		if err != nil {
			return err
		}
		update := before.Update()
		fields(update)
		after, err := update.Save(ctx)
		if err != nil {
			return err
		}
		return s.Audited(ctx, tx, before, after)
	})
}

// webURL accepts only http and https links: the host's value becomes a link in pages.
func webURL(raw string) string {
	if strings.HasPrefix(raw, "https://") || strings.HasPrefix(raw, "http://") {
		return raw
	}
	return ""
}
