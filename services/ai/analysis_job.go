package ai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/ai/prompt"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host"
)

const (
	// analysisAttempts span about a quarter of an hour.
	analysisAttempts = 6
	// maxError is the maximum length of a stored error, in runes.
	maxError = 300
	// contextLines is the number of lines before and after a match in the prompt, if the code can be read.
	contextLines = 40
	// endTimeout applies to storing the final state.
	endTimeout = 30 * time.Second
)

// Background returns the background work of this package.
func (a *Assistant) Background(log *slog.Logger) jobs.Work {
	return jobs.Work{
		Register: func(to *river.Workers) {
			jobs.AddWorker(to, &analysisWorker{Assistant: a, log: log})
			jobs.AddWorker(to, &fixWorker{Assistant: a, log: log})
			jobs.AddWorker(to, &sweepWorker{Assistant: a})
			jobs.AddWorker(to, &patternWorker{Assistant: a, log: log})
		},
		Periodic: []*river.PeriodicJob{jobs.Every(sweepInterval, sweepArgs{})},
		Queues:   []jobs.Queue{{Name: queue, Workers: workers}, {Name: upkeepQueue, Workers: 1}, {Name: patternQueue, Workers: patternWorkers}},
	}
}

// analysisArgs is the job of one analysis.
type analysisArgs struct {
	DeploymentID int64 `json:"deployment_id"`
	AnalysisID   int64 `json:"analysis_id"`
	Verdict      bool  `json:"verdict,omitempty"`
	Guidance     bool  `json:"guidance,omitempty"`
	Tags         bool  `json:"tags,omitempty"`
	// Memory is the trial memory; MemoryID is 0 if it is not stored.
	Memory   string `json:"memory,omitempty"`
	MemoryID int64  `json:"memory_id,omitempty"`
	// Round identifies this job's turn at the analysis.
	Round int32 `json:"round,omitempty"`
}

func (a analysisArgs) deployment() int64 { return a.DeploymentID }

func (a analysisArgs) parts() prompt.Parts {
	return prompt.Parts{Verdict: a.Verdict, Guidance: a.Guidance, Tags: a.Tags}
}

// Kind is the name in the queue.
func (analysisArgs) Kind() string { return "ai_analysis" }

// InsertOpts sets the queue and the maximum number of attempts. Fixes have a higher priority, because a fix is in
// flight for a limited time only.
func (analysisArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: analysisAttempts, Priority: river.PriorityDefault + 1}
}

type analysisWorker struct {
	river.WorkerDefaults[analysisArgs]
	*Assistant
	log *slog.Logger
}

// Timeout applies to one run.
func (w *analysisWorker) Timeout(*river.Job[analysisArgs]) time.Duration { return jobTimeout }

// Work asks the model and stores the answer. It does nothing if the analysis has ended.
func (w *analysisWorker) Work(ctx context.Context, job *river.Job[analysisArgs]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	row, err := w.store.Reader.AiAnalysis.Get(ctx, job.Args.AnalysisID)
	if ent.IsNotFound(err) || err == nil && row.Status != pending {
		return nil
	}
	if err != nil {
		return err
	}
	kept, release, err := w.holdLease(ctx, func(ctx context.Context, tx *ent.Tx, until int64) (int, error) {
		return runningAnalysis(tx, row.ID, job.Args.Round).SetLeaseUntil(until).Save(ctx)
	})
	if errors.Is(err, errLost) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	if job.Args.Round >= maxRounds {
		return w.end(ctx, job, row, analysed{}, errDied)
	}
	begun := time.Now()
	found, err := w.analyse(kept, row, job.Args)
	found.took = time.Since(begun)
	if unstored := w.addCost(ctx, row, found.answer); err == nil {
		err = unstored
	}
	if err == nil {
		err = w.storeResult(ctx, job, row, found)
	}
	if errors.Is(context.Cause(kept), errLost) {
		return river.JobSnooze(leaseTime) // check later whether the other worker finished
	}
	return w.end(ctx, job, row, found, err)
}

// runningAnalysis updates an analysis only if it has not ended and this job's round is current.
func runningAnalysis(tx *ent.Tx, id int64, round int32) *ent.AiAnalysisUpdate {
	return tx.AiAnalysis.Update().Where(aianalysis.ID(id), aianalysis.Status(pending), aianalysis.Round(round))
}

// addCost adds the tokens and the cost of an attempt, whatever becomes of its answer.
func (w *analysisWorker) addCost(ctx context.Context, row *ent.AiAnalysis, answer llm.Answer) error {
	if answer.InputTokens == 0 && answer.OutputTokens == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout) // the job's own context may have timed out
	defer cancel()
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.AiAnalysis.Update().Where(aianalysis.ID(row.ID)).AddInputTokens(answer.InputTokens).
			AddOutputTokens(answer.OutputTokens).AddCostUsd(answer.CostUSD).Exec(ctx)
	})
}

// end handles an error: retry, or end the analysis. The error of an attempt is stored in both cases.
func (w *analysisWorker) end(ctx context.Context, job *river.Job[analysisArgs], row *ent.AiAnalysis, found analysed, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return river.JobSnooze(time.Second) // the server stops: does not count as an attempt
	}
	text, again := errorText(err, row.Error), !isFinal(err) && job.Attempt < job.MaxAttempts
	if !again {
		w.log.InfoContext(ctx, "an analysis has failed", "analysis_id", row.ID, "finding_id", row.FindingID, "reason", text, "error", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout) // the job's own context may have timed out
	defer cancel()
	stored := w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if again {
			return runningAnalysis(tx, row.ID, job.Args.Round).SetError(text).Exec(ctx)
		}
		return w.failAnalysis(ctx, tx, row, job.Args.Round, found, text)
	})
	if again {
		return errors.Join(err, stored)
	}
	return stored
}

// failAnalysis ends an analysis and shows the reason in its finding.
func (a *Assistant) failAnalysis(ctx context.Context, tx *ent.Tx, row *ent.AiAnalysis, round int32, found analysed, text string) error {
	n, err := found.ended(runningAnalysis(tx, row.ID, round)).SetStatus(failed).SetError(text).Save(ctx)
	if err != nil || n == 0 || row.Trial {
		return err
	}
	return ignoreNotFound(verdict.Amend(ctx, a.store, tx, row.FindingID, func(content *storev1.FindingContent, _ *ent.FindingUpdate) {
		if content.Assistant == nil {
			content.Assistant = &findingsv1.Assistant{}
		}
		content.Assistant.Failure = &findingsv1.AssistantFailure{CreatedAt: timestamppb.Now(), Reason: text}
	}))
}

// isFinal reports whether retrying is of no use.
func isFinal(err error) bool {
	var hosts *host.Error
	return llm.IsPermanent(err) || ent.IsNotFound(err) || errors.Is(err, prompt.ErrAnswer) || errors.Is(err, prompt.ErrNoFix) ||
		errors.Is(err, errDied) || errors.Is(err, errOff) || errors.As(err, &hosts) && !isTemporary(err)
}

// errorText is the stored text of an error. Only public texts are stored; they contain no code and no prompt. Other
// errors leave the text of an earlier attempt, if there is one.
func errorText(err error, earlier string) string {
	var hosts *host.Error
	switch {
	case ent.IsNotFound(err):
		return "the finding is gone"
	case errors.As(err, &hosts):
		return verdict.Text("the source-code host: "+hosts.Text, maxError)
	case llm.Text(err) != "":
		return oneLine(llm.Text(err))
	case errors.Is(err, prompt.ErrAnswer), errors.Is(err, prompt.ErrNoFix), errors.Is(err, errMoved), errors.Is(err, errNewer),
		errors.Is(err, errDied), errors.Is(err, errAbandoned), errors.Is(err, errOff):
		return oneLine(err.Error())
	case earlier != "":
		return earlier
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("it took longer than %v", jobTimeout)
	}
	return "an internal error: see the server's log"
}

func oneLine(text string) string {
	return verdict.Text(strings.Join(strings.Fields(text), " "), maxError)
}

// analysed is the result of an analysis.
type analysed struct {
	verdict string
	result  *storev1.AiResult
	answer  llm.Answer
	took    time.Duration
}

// analyse asks the model.
func (w *analysisWorker) analyse(ctx context.Context, row *ent.AiAnalysis, args analysisArgs) (found analysed, err error) {
	if err := w.checkAllowed(ctx, usesOf(args.parts())...); err != nil {
		return found, err
	}
	s, err := w.subject(ctx, row.FindingID)
	if err != nil {
		return found, err
	}
	about := s.promptFinding()
	if about.Code, about.Around, err = w.code(ctx, s); err != nil {
		return found, err
	}
	memories, err := w.memories(ctx, s, args.Guidance)
	if err != nil {
		return found, err
	}
	if args.Memory != "" {
		memories = withTrialMemory(memories, prompt.Memory{ID: args.MemoryID, Content: args.Memory})
	}
	parts := args.parts()
	q := prompt.Analysis(about, parts, memories)
	found.answer, err = w.models.Ask(ctx, llm.Question{System: q.System, Prompt: q.Prompt, Schema: q.Schema, SchemaName: q.Name})
	if err != nil {
		return found, err
	}
	found.verdict, found.result, err = prompt.ReadAnalysis(found.answer.JSON, about, parts, memories)
	return found, err
}

// withTrialMemory puts a trial memory first and removes the stored one with its id.
func withTrialMemory(memories []prompt.Memory, memory prompt.Memory) []prompt.Memory {
	out := []prompt.Memory{memory}
	for _, m := range memories {
		if m.ID != memory.ID {
			out = append(out, m)
		}
	}
	return out
}

// code returns the code for the prompt: the stored lines and, if a connection can read the file, the lines around them.
// Only a finding without stored lines needs the host.
func (a *Assistant) code(ctx context.Context, s *subject) (code, around string, err error) {
	code = s.content.GetSnippet()
	at := s.content.GetLocation()
	needed := needsHost(s.IssueType, s.content)
	if !aboutCode(s.IssueType) {
		return code, "", nil
	}
	configs, err := a.connections(ctx)
	if err != nil {
		return "", "", err
	}
	if why := a.whyUnreadable(configs, s.project, s.content); why.reason != aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_UNSPECIFIED {
		if needed {
			return "", "", &host.Error{Kind: host.Forbidden, Text: why.text}
		}
		return code, "", nil
	}
	config, repository, _ := a.connectionFor(configs, s.project)
	lines, err := a.file(ctx, config, repository, at.GetFilePath(), s.content.GetCommit())
	if err != nil {
		if needed {
			return "", "", err
		}
		return code, "", nil
	}
	first := max(int(at.GetLine()), 1)
	last := min(max(int(at.GetEndLine()), first), len(lines))
	if first > len(lines) {
		return code, "", nil
	}
	if needed {
		code = strings.Join(lines[first-1:last], "\n")
	}
	return code, prompt.Window(lines, first, last, contextLines), nil
}

// ended sets the end of an analysis. addCost has added its cost.
func (f analysed) ended(u *ent.AiAnalysisUpdate) *ent.AiAnalysisUpdate {
	return u.SetFinishedAt(store.Now()).ClearLeaseUntil().SetDurationMs(f.took.Milliseconds()).SetModel(verdict.Text(f.answer.Model, 200))
}

// storeResult stores an analysis and its effect on the finding. A second run of the job finds it ended and does
// nothing.
func (w *analysisWorker) storeResult(ctx context.Context, job *river.Job[analysisArgs], row *ent.AiAnalysis, f analysed) error {
	encoded, err := proto.Marshal(f.result)
	if err != nil {
		return err
	}
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := f.ended(runningAnalysis(tx, row.ID, job.Args.Round)).SetStatus(done).SetVerdict(f.verdict).SetResult(encoded).SetError("").Save(ctx)
		if err != nil || n == 0 {
			return err
		}
		if err := addUses(ctx, tx, row, f.result); err != nil || row.Trial {
			return err
		}
		applied, err := verdict.Apply(ctx, w.store, tx, verdict.Verdict{
			FindingID: row.FindingID, Value: f.verdict, Reason: f.result.GetReason(),
			GuidanceSummary: f.result.GetGuidanceSummary(), GuidanceText: f.result.GetGuidanceText(),
			FixCode: f.result.GetFixCode(), FixDiff: f.result.GetFixDiff(), FixExplanation: f.result.GetFixExplanation(),
			ComponentTag: f.result.GetComponentTag(), ComponentRisk: f.result.GetComponentRisk(),
			RuleSummary: f.result.GetRuleSummary(), RuleExplanation: f.result.GetRuleExplanation(),
			ActorKind: verdict.ActorJob, ActorID: job.ID, ContentHash: row.ContentHash,
		})
		if err != nil || !applied {
			return err
		}
		return tx.AiAnalysis.Update().Where(aianalysis.ID(row.ID)).SetApplied(true).Exec(ctx)
	})
}
