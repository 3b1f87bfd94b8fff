package ai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/ai/prompt"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host"
)

// fixAttempts end before another fix of the same finding may be ordered.
const fixAttempts = 4

var (
	// errMoved: the finding cannot be fixed as the scan reported it.
	errMoved = errors.New("the code has changed since the scan, or the finding was closed: scan again")
	// errNewer: a later order replaces this one.
	errNewer = errors.New("another fix was ordered since")
)

// fixArgs is the job of one fix.
type fixArgs struct {
	DeploymentID int64 `json:"deployment_id"`
	FixID        int64 `json:"fix_id"`
	// Round identifies this job's turn at the fix.
	Round int32 `json:"round,omitempty"`
}

func (a fixArgs) deployment() int64 { return a.DeploymentID }

// Kind is the name in the queue.
func (fixArgs) Kind() string { return "ai_fix" }

// InsertOpts sets the queue and limits the attempts.
func (fixArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: fixAttempts}
}

type fixWorker struct {
	river.WorkerDefaults[fixArgs]
	*Assistant
	log *slog.Logger
}

// Timeout applies to one run.
func (w *fixWorker) Timeout(*river.Job[fixArgs]) time.Duration { return jobTimeout }

// Work asks the model for the fix and opens the pull request. A second run finds the first one's pull request.
func (w *fixWorker) Work(ctx context.Context, job *river.Job[fixArgs]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	row, err := w.store.Reader.AiFix.Get(ctx, job.Args.FixID)
	if ent.IsNotFound(err) || err == nil && row.Status != fixRequested {
		return nil
	}
	if err != nil {
		return err
	}
	kept, release, err := w.holdLease(ctx, func(ctx context.Context, tx *ent.Tx, until int64) (int, error) {
		return runningFix(tx, row.ID, job.Args.Round).SetLeaseUntil(until).Save(ctx)
	})
	if errors.Is(err, errLost) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	branch := fmt.Sprintf("palisade/fix-%d-%d", row.FindingID, row.ID)
	var pull host.PullRequest
	if err = errDied; job.Args.Round < maxRounds {
		pull, err = w.propose(kept, row, job.Args.Round, branch, job.Attempt > 1 || job.Args.Round > 0)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout) // the job's own context may have timed out
	defer cancel()
	switch {
	case err == nil:
		return w.opened(end, job, row, branch, pull)
	case errors.Is(err, errLost), errors.Is(context.Cause(kept), errLost):
		return river.JobSnooze(leaseTime) // check later whether the other worker finished
	case errors.Is(ctx.Err(), context.Canceled):
		return river.JobSnooze(time.Second)
	case !isFinal(err) && !errors.Is(err, errMoved) && !errors.Is(err, errNewer) && job.Attempt < job.MaxAttempts:
		return errors.Join(err, w.noteError(end, row, job.Args.Round, errorText(err, row.Error)))
	}
	text := errorText(err, row.Error)
	w.log.InfoContext(ctx, "a fix has failed", "fix_id", row.ID, "finding_id", row.FindingID, "reason", text, "error", err)
	return w.failFix(end, row, job.Args.Round, text)
}

// noteError stores why an attempt failed.
func (w *fixWorker) noteError(ctx context.Context, row *ent.AiFix, round int32, text string) error {
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return runningFix(tx, row.ID, round).SetError(text).Exec(ctx)
	})
}

// runningFix updates a fix only if it has not ended and this job's round is current.
func runningFix(tx *ent.Tx, id int64, round int32) *ent.AiFixUpdate {
	return tx.AiFix.Update().Where(aifix.ID(id), aifix.Status(fixRequested), aifix.Round(round))
}

// checkCurrent rejects a fix that a later order replaced, or that another worker has.
func (w *fixWorker) checkCurrent(ctx context.Context, row *ent.AiFix, round int32) error {
	latest, err := w.store.Reader.AiFix.Query().Where(aifix.FindingID(row.FindingID)).Order(ent.Desc(aifix.FieldID)).First(ctx)
	switch {
	case err != nil:
		return err
	case latest.ID != row.ID:
		return errNewer
	case latest.Status != fixRequested || latest.Round != round:
		return errLost
	}
	return nil
}

// propose reads the current file, asks for replacement lines, and opens a pull request.
func (w *fixWorker) propose(ctx context.Context, row *ent.AiFix, round int32, branch string, again bool) (host.PullRequest, error) {
	if err := errors.Join(w.checkCurrent(ctx, row, round), w.checkAllowed(ctx, fixing)); err != nil {
		return host.PullRequest{}, err
	}
	s, err := w.subject(ctx, row.FindingID)
	if err != nil {
		return host.PullRequest{}, err
	}
	if !lifecycle.Seen(s.State) || s.TriageState == lifecycle.Ignored {
		return host.PullRequest{}, errMoved
	}
	configs, err := w.connections(ctx)
	if err != nil {
		return host.PullRequest{}, err
	}
	config, repository, why := w.connectionFor(configs, s.project)
	if why.reason != aiv1.AnalysisFailureReason_ANALYSIS_FAILURE_REASON_UNSPECIFIED {
		return host.PullRequest{}, &host.Error{Kind: host.Forbidden, Text: why.text}
	}
	at, base := s.content.GetLocation(), strings.TrimPrefix(s.Ref, "refs/heads/")
	lines, err := w.file(ctx, config, repository, at.GetFilePath(), base)
	if err != nil {
		return host.PullRequest{}, err
	}
	content, explanation := "", ""
	if again {
		content = w.pushedContent(ctx, config, repository, at.GetFilePath(), branch, lines)
	}
	if content == "" {
		if content, explanation, err = w.rewrite(ctx, s, lines); err != nil {
			return host.PullRequest{}, err
		}
	}
	if err := w.checkCurrent(ctx, row, round); err != nil { // the model may have taken long
		return host.PullRequest{}, err
	}
	h, err := w.hosts.Open(ctx, config)
	if err != nil {
		return host.PullRequest{}, err
	}
	return h.Propose(ctx, repository, host.Change{
		Base: base, Branch: branch, Path: at.GetFilePath(), Content: []byte(content),
		Title: fixTitle(s), Text: fixText(s, explanation),
	})
}

// pushedContent returns the file on the branch, if an earlier run has changed it there. The job then neither
// asks the model nor commits again.
func (w *fixWorker) pushedContent(ctx context.Context, config *ent.ScmConfig, repository, path, branch string, base []string) string {
	lines, err := w.file(ctx, config, repository, path, branch)
	if err != nil || slices.Equal(lines, base) {
		return ""
	}
	return strings.Join(lines, "\n")
}

// rewrite asks the model for replacement lines and returns the whole file.
func (w *fixWorker) rewrite(ctx context.Context, s *subject, lines []string) (content, explanation string, err error) {
	ending := ""
	if slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, "\r") }) {
		ending = "\r"
	}
	plain := make([]string, len(lines))
	for i, l := range lines {
		plain[i] = strings.TrimSuffix(l, "\r")
	}
	at := s.content.GetLocation()
	first, last, ok := prompt.FindLines(plain, s.content.GetSnippet(), int(at.GetLine()), int(max(at.GetEndLine(), at.GetLine())))
	if !ok {
		return "", "", errMoved
	}
	q := prompt.Fix(s.promptFinding(), plain, first, last)
	answer, err := w.models.Ask(ctx, llm.Question{System: q.System, Prompt: q.Prompt, Schema: q.Schema, SchemaName: q.Name})
	if err != nil {
		return "", "", err
	}
	content, explanation, err = prompt.ReadFix(answer.JSON, plain, first, last)
	if ending != "" {
		content = strings.ReplaceAll(content, "\n", "\r\n")
	}
	return content, explanation, err
}

// fixTitle does not contain text of the model. Rule and file names come from reports, so they must not mention people
// at the host.
func fixTitle(s *subject) string {
	name := s.rule.GetName()
	return harmless(fmt.Sprintf("Fix %s in %s", name[strings.LastIndexByte(name, '.')+1:], path.Base(s.content.GetLocation().GetFilePath())), 100)
}

// fixText shows the model's explanation as plain text: no links, images or mentions.
func fixText(s *subject, explanation string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "This change was written by a language model to fix finding %d. Review it as any other change.\n\n", s.ID)
	for line := range strings.SplitSeq(explanation, "\n") {
		out.WriteString("    " + line + "\n")
	}
	return out.String()
}

func harmless(text string, limit int) string {
	return verdict.Text(strings.Map(func(r rune) rune {
		if strings.ContainsRune("@#!<>[]`", r) {
			return -1
		}
		return r
	}, strings.Join(strings.Fields(text), " ")), limit)
}

// opened records the pull request on the finding.
func (w *fixWorker) opened(ctx context.Context, job *river.Job[fixArgs], row *ent.AiFix, branch string, pull host.PullRequest) error {
	made := &findingsv1.ClickToFixPr{CreatedAt: timestamppb.Now(), Url: pull.URL}
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := runningFix(tx, row.ID, job.Args.Round).ClearLeaseUntil().SetStatus(fixOpened).SetError("").SetBranch(branch).
			SetPrURL(pull.URL).SetFinishedAt(store.Now()).Save(ctx)
		if err != nil || n == 0 {
			return err
		}
		audit.Change(ctx, "ai_fix", row.ID, nil, made)
		return ignoreNotFound(verdict.Amend(ctx, w.store, tx, row.FindingID, func(content *storev1.FindingContent, update *ent.FindingUpdate) {
			content.ClickToFixPrs = append(content.ClickToFixPrs, made)
			update.SetClickToFixState("open")
		}))
	})
}

// maxFailures is the number of stored failures of a finding, latest first.
const maxFailures = 20

// failFix ends a fix and records in its finding why there is no pull request.
func (a *Assistant) failFix(ctx context.Context, row *ent.AiFix, round int32, text string) error {
	return a.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := runningFix(tx, row.ID, round).ClearLeaseUntil().SetStatus(fixFailed).SetError(text).
			SetFinishedAt(store.Now()).Save(ctx)
		if err != nil || n == 0 {
			return err
		}
		return ignoreNotFound(verdict.Amend(ctx, a.store, tx, row.FindingID, func(content *storev1.FindingContent, _ *ent.FindingUpdate) {
			all := append(content.GetClickToFixFailures(), &findingsv1.ClickToFixFailure{CreatedAt: timestamppb.Now(), Reason: text})
			content.ClickToFixFailures = all[max(0, len(all)-maxFailures):]
		}))
	})
}

// ignoreNotFound ignores the error of a finding that was deleted concurrently.
func ignoreNotFound(err error) error {
	if ent.IsNotFound(err) {
		return nil
	}
	return err
}
