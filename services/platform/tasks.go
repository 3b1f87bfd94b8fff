package platform

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/exportfile"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/tasktoken"
)

const (
	running    = platformv1.TaskStatus_TASK_STATUS_IN_PROGRESS
	completed  = platformv1.TaskStatus_TASK_STATUS_COMPLETED
	failed     = platformv1.TaskStatus_TASK_STATUS_FAILED
	terminated = platformv1.TaskStatus_TASK_STATUS_TERMINATED
)

// statuses are the states of jobs in the words of tasks; all others are in progress.
var statuses = map[rivertype.JobState]platformv1.TaskStatus{
	rivertype.JobStateCompleted: completed,
	rivertype.JobStateDiscarded: failed,
	rivertype.JobStateCancelled: terminated,
}

// Kinds of jobs that write files.
const (
	exportKind = "export_findings"
	sbomKind   = "write_sbom"
)

// Tasks is the service group "tasks".
type Tasks struct {
	platformv1.UnimplementedTasksServiceServer
	store   *store.Store
	jobs    *jobs.Jobs
	tokens  *tasktoken.Tokens
	baseURL string
}

// NewTasks reads the states of tasks from their jobs.
func NewTasks(st *store.Store, queue *jobs.Jobs, tokens *tasktoken.Tokens, baseURL string) *Tasks {
	return &Tasks{store: st, jobs: queue, tokens: tokens, baseURL: baseURL}
}

// errNoTask is the error of every token that says nothing to this caller. It does not tell why.
func errNoTask() error {
	return apierr.NotFound("task not found: the token is malformed or expired, or belongs to another caller")
}

// GetTaskResult returns the state of a task, and its result.
func (s *Tasks) GetTaskResult(ctx context.Context, r *platformv1.GetTaskResultRequest) (*platformv1.GetTaskResultResponse, error) {
	task, err := s.tokens.Read(ctx, r.GetTaskTokenJwt())
	if errors.Is(err, tasktoken.ErrInvalid) {
		return nil, errNoTask()
	}
	if err != nil {
		return nil, err
	}
	if task.Kind == tasktoken.PatternFix {
		return s.patternFix(ctx, task)
	}
	caller, ok := access.FromContext(ctx)
	if !ok || !slices.ContainsFunc(caller.Grants, func(g access.Grant) bool { return g.DeploymentID == task.DeploymentID }) {
		return nil, errNoTask()
	}
	ctx = tenant.NewContext(ctx, task.DeploymentID)
	states, err := s.jobs.States(ctx, task.DeploymentID, task.JobIDs)
	if err != nil {
		return nil, err
	}
	results := make([]*platformv1.TaskResult, len(task.JobIDs))
	for i, id := range task.JobIDs {
		state, known := states[id]
		if !known {
			return nil, errNoTask()
		}
		results[i] = &platformv1.TaskResult{Status: running}
		if ended, ok := statuses[state]; ok {
			results[i].Status = ended
		}
		if results[i].Status == failed {
			results[i].ResultString = fmt.Sprintf("the task failed; the server's log has the reason of job %d", id)
		}
	}
	if task.Kind == exportKind || task.Kind == sbomKind {
		if err := s.file(ctx, task.ObjectID, results[0]); err != nil {
			return nil, err
		}
	}
	if len(results) == 1 {
		return &platformv1.GetTaskResultResponse{TaskResult: results[0], Status: results[0].GetStatus()}, nil
	}
	group := groupOf(results)
	return &platformv1.GetTaskResultResponse{TaskGroupResult: group, Status: group.GetStatus()}, nil
}

// patternFix returns the result of a pattern fix. It belongs to no deployment, and has nothing that its token's holder
// did not send.
func (s *Tasks) patternFix(ctx context.Context, task *tasktoken.Task) (*platformv1.GetTaskResultResponse, error) {
	state, output, ok, err := s.jobs.Output(ctx, task.Kind, task.JobIDs[0])
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoTask()
	}
	result := &platformv1.TaskResult{Status: running}
	if ended, known := statuses[state]; known {
		result.Status = ended
	}
	var said tasktoken.PatternResult
	if result.GetStatus() == completed && len(output) > 0 {
		if err := json.Unmarshal(output, &said); err != nil {
			return nil, err
		}
	}
	switch {
	case result.GetStatus() == completed && said.Error == "":
		result.ResultString = said.Pattern
	case result.GetStatus() != running:
		result.Status, result.ResultString = failed, cmp.Or(said.Error, "the pattern was not corrected: try again")
	}
	return &platformv1.GetTaskResultResponse{TaskResult: result, Status: result.GetStatus()}, nil
}

// groupOf is the state of a group: in progress until all have ended, and then the worst.
func groupOf(results []*platformv1.TaskResult) *platformv1.TaskGroupResult {
	group := &platformv1.TaskGroupResult{Status: completed, TotalCount: int64(len(results)), TaskResults: results}
	for _, r := range results {
		if r.GetStatus() != running {
			group.CompletedCount++
		}
	}
	for _, worst := range []platformv1.TaskStatus{running, failed, terminated} {
		if slices.ContainsFunc(results, func(r *platformv1.TaskResult) bool { return r.GetStatus() == worst }) {
			group.Status = worst
			break
		}
	}
	return group
}

// file adds what the file of an export tells, or an SBOM itself. A job that gave up because the same would
// happen again was cancelled by nobody: it failed.
func (s *Tasks) file(ctx context.Context, id int64, result *platformv1.TaskResult) error {
	row, err := exportfile.Own(ctx, s.store, id)
	switch {
	case err != nil:
		return err
	case row == nil:
		return errNoTask()
	case row.CompletedAt == nil && row.Error != "" && result.GetStatus() != running:
		result.Status, result.ResultString = failed, row.Error
		return nil
	case result.GetStatus() == failed || result.GetStatus() == terminated:
		return nil
	case row.CompletedAt != nil:
		result.Status = completed // also before the queue notes it
	default:
		result.Status = running
	}
	if row.Format != exportfile.SBOM && row.Format != exportfile.SBOMXML {
		result.ResultString = string(s.describe(row).AppendJSON(nil))
		return nil
	}
	if row.CompletedAt == nil {
		return nil
	}
	var document strings.Builder
	err = exportfile.Read(ctx, s.store, row, 0, row.ByteCount, func(chunk []byte) error {
		_, err := document.Write(chunk)
		return err
	})
	result.ResultString = document.String()
	return err
}

// describe is the result of an export.
func (s *Tasks) describe(row *ent.Export) *findingsv1.ExportResult {
	result := &findingsv1.ExportResult{
		ExportId: row.ID, RowCount: row.RowCount, Size: row.ByteCount, ExpiresAt: store.Timestamp(&row.ExpiresAt),
	}
	if row.CompletedAt != nil {
		result.DownloadUrl, result.Sha256 = exportfile.URL(s.baseURL, row.DeploymentID, row.ID), hex.EncodeToString(row.Sha256)
	}
	return result
}
