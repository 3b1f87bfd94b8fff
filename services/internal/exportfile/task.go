package exportfile

import (
	"context"
	"errors"
	"strings"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/export"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/tasktoken"
)

// Starter starts the jobs that write files.
type Starter struct {
	Store  *store.Store
	Jobs   *jobs.Jobs
	Tokens *tasktoken.Tokens
}

// Start stores an export of the caller, enqueues its job, and returns the token of the task.
func (s Starter) Start(ctx context.Context, format string, request proto.Message, job func(deploymentID, exportID int64) river.JobArgs) (string, error) {
	message, err := proto.Marshal(request)
	if err != nil {
		return "", err
	}
	caller, ok := access.FromContext(ctx)
	if !ok {
		return "", errors.New("an export without a caller")
	}
	task := tasktoken.Task{JobIDs: make([]int64, 1)}
	task.DeploymentID, _ = tenant.FromContext(ctx)
	err = s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := Create(ctx, tx, Request{
			DeploymentID: task.DeploymentID, Format: format, Request: message, ActorKind: string(caller.Kind), ActorID: caller.ID,
		})
		if err != nil {
			return err
		}
		args := job(task.DeploymentID, row.ID)
		task.Kind, task.ObjectID = args.Kind(), row.ID
		task.JobIDs[0], err = s.Jobs.EnqueueTask(ctx, args, nil)
		return err
	})
	if err != nil {
		return "", err
	}
	return s.Tokens.Mint(ctx, task)
}

// End returns the error of a job from the error of its attempt to write a file. A refusal would be repeated: the export
// keeps its text, and the job is cancelled. ctx names the deployment.
func End(ctx context.Context, st *store.Store, exportID int64, err error) error {
	var refused *apierr.Error
	switch {
	case err == nil, errors.Is(err, ErrLost):
		return nil
	case !errors.As(err, &refused):
		return err
	}
	noted := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		text := strings.ReplaceAll(refused.GRPCStatus().Message(), "\n", " ")
		return tx.Export.Update().Where(export.ID(exportID)).SetError(text).Exec(ctx)
	})
	if noted != nil {
		return noted
	}
	return river.JobCancel(err)
}
