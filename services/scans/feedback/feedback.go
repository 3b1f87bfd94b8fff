// Package feedback asks for what is written about pull requests at their source-code hosts: commit statuses and a
// comment. The domain of scans writes it, in the background.
package feedback

import (
	"context"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/pullrequestfeedback"
	"github.com/palisade/palisade/services/internal/jobs"
)

// Queue is separate, because its jobs wait for hosts.
const Queue = "pull_requests"

// attempts apply to failures of hosts that may be temporary. They span two to three hours.
const attempts = 9

// Write is the job that writes the feedback about one pull request.
type Write struct {
	DeploymentID int64 `json:"deployment_id"`
	ProjectID    int64 `json:"project_id"`
	Number       int64 `json:"number"`
	// Late is set for the time at which a scan has taken too long. It keeps such jobs apart from jobs that run at once.
	Late bool `json:"late,omitempty"`
}

// Kind is the name in the queue.
func (Write) Kind() string { return "write_pull_request_feedback" }

// InsertOpts merges requests that wait.
func (Write) InsertOpts() river.InsertOpts { return once() }

// Refresh is the job that finds the pull requests that a triage change touches.
type Refresh struct {
	DeploymentID int64 `json:"deployment_id"`
	ChangeID     int64 `json:"change_id"`
}

// Kind is the name in the queue.
func (Refresh) Kind() string { return "refresh_pull_request_feedback" }

// InsertOpts chooses the queue.
func (Refresh) InsertOpts() river.InsertOpts { return once() }

func once() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue, opts.MaxAttempts = Queue, attempts
	return opts
}

// Scanned asks for feedback after a scan of the context's deployment; number is 0 if it is of no pull request.
func Scanned(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, of *ent.Project, number int64) error {
	if number == 0 || of.RepositoryURL == "" {
		return nil
	}
	wanted, err := tx.Deployment.Query().
		Where(deployment.ID(of.DeploymentID), deployment.Or(deployment.PullRequestStatuses(true), deployment.PullRequestComments(true), deployment.PullRequestLineCommentsGT(0))).Exist(ctx)
	if err != nil || !wanted {
		return err
	}
	return queue.Enqueue(ctx, Write{DeploymentID: of.DeploymentID, ProjectID: of.ID, Number: number}, nil)
}

// Triaged asks for feedback after a triage change: a decision may end what blocks a pull request. It costs one query if
// there is no open pull request with feedback.
func Triaged(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, deploymentID, changeID int64) error {
	open, err := tx.PullRequestFeedback.Query().Where(pullrequestfeedback.DeploymentID(deploymentID), pullrequestfeedback.Closed(false)).Exist(ctx)
	if err != nil || !open {
		return err
	}
	return queue.Enqueue(ctx, Refresh{DeploymentID: deploymentID, ChangeID: changeID}, nil)
}
