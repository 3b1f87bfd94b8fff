package ai

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	"github.com/palisade/palisade/services/ai/prompt"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/tasktoken"
)

// Tasks is the service group "AI tasks".
type Tasks struct {
	aiv1.UnimplementedAiTasksServiceServer
	*Assistant
	jobs     *jobs.Jobs
	patterns patternFixes
}

// NewTasks serves AI tasks; queue holds their jobs. dailyPatterns patterns are corrected in 24 hours for callers
// without a credential, who get their results by tokens.
func NewTasks(a *Assistant, queue *jobs.Jobs, tokens *tasktoken.Tokens, dailyPatterns int) *Tasks {
	return &Tasks{Assistant: a, jobs: queue, patterns: newPatternFixes(dailyPatterns, tokens)}
}

const (
	// insertBatch is the number of analyses per insert: SQLite allows 32,766 variables.
	insertBatch = 500
	// staleAfter is the age at which an unfinished analysis no longer blocks another.
	staleAfter = 24 * time.Hour
)

// States of an analysis.
const (
	pending = "pending"
	done    = "done"
	failed  = "failed"
)

// CreateCombinedTask orders analyses. It rejects invalid requests before storing anything.
func (s *Tasks) CreateCombinedTask(ctx context.Context, r *aiv1.CreateCombinedTaskRequest) (*aiv1.CreateCombinedTaskResponse, error) {
	if !s.models.Configured() {
		return nil, llm.ErrNotConfigured
	}
	if of := r.GetTask().GetDeploymentId(); of != 0 && of != r.GetDeploymentId() {
		return nil, apierr.InvalidArgument("task.deploymentId", "task.deploymentId must be that of the path, %d, or left out; got %d", r.GetDeploymentId(), of)
	}
	o, err := s.order(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := s.checkAllowed(ctx, usesOf(o.parts)...); errors.Is(err, errOff) {
		return nil, apierr.FailedPrecondition("%v", err)
	} else if err != nil {
		return nil, err
	}
	chosen, failures, err := s.choose(ctx, r)
	if err != nil {
		return nil, err
	}
	response := &aiv1.CreateCombinedTaskResponse{}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		response.Failures = slices.Clone(failures)
		return s.storeTask(ctx, tx, o, chosen, response)
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(response.Failures, func(a, b *aiv1.AnalysisFailure) int { return int(a.GetIssueParentId() - b.GetIssueParentId()) })
	return response, nil
}

// order is a parsed request.
type order struct {
	deploymentID int64
	chains       []string
	parts        prompt.Parts
	regenerate   bool
	// trial: memory is a trial memory.
	trial  bool
	memory prompt.Memory
}

// partsOf returns the parts of chains.
func partsOf(chains []aiv1.Chain) (parts prompt.Parts, words []string) {
	for _, chain := range chains {
		switch chain {
		case aiv1.Chain_CHAIN_AUTOTRIAGE:
			parts.Verdict = true
		case aiv1.Chain_CHAIN_AUTOTRIAGE_WITH_GUIDANCE_AND_AUTOFIX:
			parts.Verdict, parts.Guidance = true, true
		case aiv1.Chain_CHAIN_ISSUE_TAGS:
			parts.Tags = true
		default:
			continue
		}
		if !slices.Contains(words, chain.String()) {
			words = append(words, chain.String())
		}
	}
	if len(words) == 0 {
		return partsOf([]aiv1.Chain{aiv1.Chain_CHAIN_AUTOTRIAGE_WITH_GUIDANCE_AND_AUTOFIX})
	}
	return parts, words
}

// storeTask stores the task and enqueues its jobs.
func (s *Tasks) storeTask(ctx context.Context, tx *ent.Tx, o order, chosen []choice, response *aiv1.CreateCombinedTaskResponse) error {
	if err := s.lockQuota(ctx, tx, o.deploymentID); err != nil {
		return err
	}
	todo, err := s.withoutAnalysed(ctx, tx, o, chosen, response)
	if err != nil {
		return err
	}
	used, err := s.usage(ctx, tx.Client(), o.deploymentID)
	if err != nil {
		return err
	}
	response.UsageInfo = &aiv1.UsageInfo{Used: used.month, MaxAllowed: s.monthly}
	if len(todo) == 0 {
		return nil
	}
	if err := used.check(int64(len(todo)), s.monthly); err != nil {
		return err
	}
	create := tx.AiTaskGroup.Create().SetChains(o.chains).SetRegenerate(o.regenerate).SetIssues(int32(len(todo))).
		SetMemoryID(o.memory.ID).SetActorKind("").SetActorID(0).SetCreatedAt(store.Now())
	if p, ok := access.FromContext(ctx); ok {
		create.SetActorKind(string(p.Kind)).SetActorID(p.ID)
	}
	group, err := create.Save(ctx)
	if err != nil {
		return err
	}
	if err := s.enqueue(ctx, tx, o, group.ID, todo); err != nil {
		return err
	}
	response.GroupId, response.NumAnalyzed = group.ID, int64(len(todo))
	response.UsageInfo.Used += int64(len(todo))
	audit.Change(ctx, "ai_task_group", group.ID, nil, response)
	return nil
}

// enqueue inserts the analyses in batches, and a job for each.
func (s *Tasks) enqueue(ctx context.Context, tx *ent.Tx, o order, groupID int64, todo []choice) error {
	for part := range slices.Chunk(todo, insertBatch) {
		rows := make([]*ent.AiAnalysisCreate, len(part))
		for i, c := range part {
			rows[i] = tx.AiAnalysis.Create().SetDeploymentID(o.deploymentID).SetFindingID(c.id).SetGroupID(groupID).SetStatus(pending).
				SetTrial(o.trial).SetContentHash(c.contentHash).SetCreatedAt(store.Now())
		}
		saved, err := tx.AiAnalysis.CreateBulk(rows...).Save(ctx)
		if err != nil {
			return err
		}
		for _, row := range saved {
			args := analysisArgs{DeploymentID: o.deploymentID, AnalysisID: row.ID, Verdict: o.parts.Verdict, Guidance: o.parts.Guidance, Tags: o.parts.Tags}
			if o.trial {
				args.MemoryID, args.Memory = o.memory.ID, o.memory.Content
			}
			if err := s.jobs.Enqueue(ctx, args, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// GetTaskInfo estimates the wait from the deployment's own queued jobs and the duration of its latest analyses. Jobs of
// other deployments do not count, because they do not delay these.
func (s *Tasks) GetTaskInfo(ctx context.Context, _ *aiv1.GetTaskInfoRequest) (*aiv1.GetTaskInfoResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	waiting, err := s.jobs.Waiting(ctx, queue, deploymentID)
	if err != nil {
		return nil, err
	}
	took, err := s.recentDuration(ctx, deploymentID)
	if err != nil {
		return nil, err
	}
	used, err := s.usage(ctx, s.store.Reader, deploymentID)
	if err != nil {
		return nil, err
	}
	disabled, err := s.whyDisabled(ctx)
	if err != nil {
		return nil, err
	}
	remaining := max(0, s.monthly-used.month)
	if disabled != "" {
		remaining = 0
	}
	wait := (time.Duration(waiting)*took/(workers/2) + time.Second - 1).Truncate(time.Second)
	return &aiv1.GetTaskInfoResponse{
		WaitTime:      strconv.FormatInt(int64(wait/time.Second), 10) + "s",
		RunsRemaining: remaining,
	}, nil
}

const (
	// recent is the number of analyses used to estimate the duration.
	recent = 50
	// usualDuration is the estimate before any analysis has ended.
	usualDuration = 10 * time.Second
)

func (s *Tasks) recentDuration(ctx context.Context, deploymentID int64) (time.Duration, error) {
	var rows []struct {
		Duration int64 `sql:"duration_ms"`
	}
	err := s.store.Reader.AiAnalysis.Query().Where(aianalysis.DeploymentID(deploymentID), aianalysis.Status(done)).
		Order(ent.Desc(aianalysis.FieldID)).Limit(recent).Select(aianalysis.FieldDurationMs).Scan(tenant.System(ctx), &rows)
	if err != nil || len(rows) == 0 {
		return usualDuration, err
	}
	var sum int64
	for _, row := range rows {
		sum += row.Duration
	}
	return time.Duration(sum/int64(len(rows))) * time.Millisecond, nil
}
