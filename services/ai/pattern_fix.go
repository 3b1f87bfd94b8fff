package ai

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	"github.com/palisade/palisade/services/ai/prompt"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/buckets"
	"github.com/palisade/palisade/services/internal/chain"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/tasktoken"
	"github.com/palisade/palisade/services/rules/document"
)

const (
	patternQueue    = "pattern_fix"
	patternWorkers  = 2
	patternAttempts = 3
	// patternTimeout covers the model's two calls for an answer.
	patternTimeout = 10 * time.Minute
	// maxPatternTokens limits an answer.
	maxPatternTokens = 6000
	// maxPatternsWaiting is how many patterns wait at a time, on all nodes together.
	maxPatternsWaiting = 100
	// patternsAtOnce patterns of one address (IPv6: of a /64) are accepted at once, and then one in each patternPace.
	patternsAtOnce = 10
	patternPace    = 30 * time.Second
	// maxPatternAddresses is how many addresses are counted.
	maxPatternAddresses = 50_000
)

// patternFixes limits the pattern fixes of callers without a credential.
type patternFixes struct {
	daily     int
	addresses *buckets.Buckets[string]
	tokens    *tasktoken.Tokens
}

func newPatternFixes(daily int, tokens *tasktoken.Tokens) patternFixes {
	return patternFixes{
		daily: daily, tokens: tokens,
		addresses: buckets.New[string](maxPatternAddresses, 1/patternPace.Seconds(), patternsAtOnce),
	}
}

// CreatePatternFixTask orders the correction of a pattern.
func (s *Tasks) CreatePatternFixTask(ctx context.Context, r *aiv1.CreatePatternFixTaskRequest) (*aiv1.CreatePatternFixTaskResponse, error) {
	if s.patterns.daily == 0 || !s.models.Configured() {
		return nil, apierr.FailedPrecondition("this server corrects no patterns: its operator has to set pattern-fix-daily, ai-url and ai-model")
	}
	args := patternArgs{Pattern: r.GetPattern()}
	if !document.IsFile(args.Pattern) {
		language, ok := document.Language(r.GetLanguage())
		if !ok {
			return nil, apierr.InvalidArgument("language", "language is %s; allowed are %s", apierr.Quote(r.GetLanguage()), strings.Join(document.Languages(), ", "))
		}
		args.Language = language
	}
	if !s.patterns.addresses.Of(buckets.Network(chain.Remote(ctx))).Allow() {
		return nil, apierr.RateLimited(patternPace)
	}
	var job int64
	err := s.store.Write(tenant.System(ctx), func(ctx context.Context, _ *ent.Tx) error {
		waiting, err := s.jobs.Waiting(ctx, patternQueue, args.DeploymentID)
		if err != nil {
			return err
		}
		recent, err := s.jobs.Since(ctx, args.Kind(), time.Now().Add(-24*time.Hour), s.patterns.daily)
		switch {
		case err != nil:
			return err
		case recent >= s.patterns.daily:
			return apierr.RateLimited(time.Hour)
		case waiting >= maxPatternsWaiting:
			return apierr.RateLimited(time.Minute)
		}
		job, err = s.jobs.EnqueueTask(ctx, args, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	token, err := s.patterns.tokens.Mint(ctx, tasktoken.Task{Kind: args.Kind(), JobIDs: []int64{job}})
	return &aiv1.CreatePatternFixTaskResponse{TaskTokenJwt: token}, err
}

// patternArgs is the job of one pattern.
type patternArgs struct {
	// DeploymentID is 0: the caller is nobody's.
	DeploymentID int64  `json:"deployment_id"`
	Pattern      string `json:"pattern"`
	Language     string `json:"language"`
}

// Kind is the name in the queue, and in the token.
func (patternArgs) Kind() string { return tasktoken.PatternFix }

// InsertOpts sets the queue and limits the attempts.
func (patternArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: patternQueue, MaxAttempts: patternAttempts}
}

type patternWorker struct {
	river.WorkerDefaults[patternArgs]
	*Assistant
	log *slog.Logger
}

// Timeout applies to one run.
func (w *patternWorker) Timeout(*river.Job[patternArgs]) time.Duration { return patternTimeout }

// Work asks the model. The queue keeps the result with the job; nothing else is stored.
func (w *patternWorker) Work(ctx context.Context, job *river.Job[patternArgs]) error {
	q := prompt.Pattern(job.Args.Pattern, job.Args.Language)
	answer, err := w.models.Ask(ctx, llm.Question{System: q.System, Prompt: q.Prompt, Schema: q.Schema, SchemaName: q.Name, MaxTokens: maxPatternTokens})
	result := tasktoken.PatternResult{}
	if err == nil {
		result.Pattern, err = prompt.ReadPattern(answer.JSON, job.Args.Pattern, job.Args.Language)
	}
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.Canceled):
		return river.JobSnooze(time.Second)
	case !llm.IsPermanent(err) && job.Attempt < job.MaxAttempts:
		return err
	case errors.Is(err, prompt.ErrNoPattern):
		result.Error = err.Error()
	default:
		w.log.WarnContext(ctx, "a pattern could not be corrected", "error", err)
		result.Error = "the language model gave no answer: its operator finds the reason in the server's log"
	}
	return river.RecordOutput(ctx, result)
}
