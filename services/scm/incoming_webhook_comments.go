package scm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/command"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/webhook"
)

// isCommand reports whether a comment is one that wants something.
func isCommand(text string) bool {
	_, ok, _ := command.Parse(text)
	return ok
}

// triageViaComment reads the toggle of contract operation 14.
func triageViaComment(ctx context.Context, tx *ent.Tx, deploymentID int64) (bool, error) {
	row, err := tx.Deployment.Query().Where(deployment.ID(deploymentID)).Only(ctx)
	if err != nil {
		return false, err
	}
	return row.TriageViaComment, nil
}

// commented carries out a command. Who may not write to the repository is not answered: anybody may comment on a public
// one.
func (w *eventWorker) commented(ctx context.Context, args eventArgs) error {
	comment := args.Event.Comment
	wanted, ok, problem := command.Parse(comment.Body)
	if !ok {
		return nil
	}
	project, err := w.project(ctx, w.store.Reader, args)
	if err != nil || project == nil {
		return err
	}
	h, err := w.openSender(ctx, args.ConfigID, args.AppID, args.Event.Installation.ID)
	if err != nil || h == nil {
		return err
	}
	may, err := h.CanWrite(ctx, args.Event.Repository, comment.Author)
	if host.Is(err, host.NotFound) || err == nil && !may {
		w.log.InfoContext(ctx, "a comment's command was ignored: its author may not write to the repository", "project", project.Name)
		return nil
	}
	if err != nil {
		return err
	}
	thread, err := h.ReviewThread(ctx, args.Event.Repository, args.Event.Number, comment.Thread)
	if err != nil {
		return err
	}
	if thread.Author == comment.Author && len(command.Findings(thread.Body)) > 0 {
		return nil // the account that we comment with ourselves
	}
	return w.obey(ctx, args, project, thread, wanted, problem)
}

// obey triages and has the answer sent, in one transaction, once for each comment: whichever of several webhooks tells of
// it, and however often this job runs.
func (w *eventWorker) obey(ctx context.Context, args eventArgs, project *ent.Project, thread host.ReviewComment, wanted command.Command, problem error) error {
	comment := args.Event.Comment
	once := strings.Join([]string{"comment", args.BaseURL, args.Event.Repository, comment.ID}, " ")
	err := w.store.Write(asHost(ctx, args, comment.Author), func(ctx context.Context, tx *ent.Tx) error {
		if err := addReceipt(ctx, tx, args.DeploymentID, "", once); err != nil {
			return err
		}
		answer := replyArgs{
			DeploymentID: args.DeploymentID, ConfigID: args.ConfigID, AppID: args.AppID, InstallationID: args.Event.Installation.ID,
			Repository: args.Event.Repository, Number: args.Event.Number, Thread: comment.Thread,
		}
		if problem != nil {
			answer.Text = "This was not understood: " + problem.Error() + "."
			return jobs.FromContext(ctx).Enqueue(ctx, answer, nil)
		}
		if err := w.lockProject(ctx, tx, project.ID); err != nil {
			return err
		}
		found, err := findingsOf(ctx, tx, project.ID, args, thread)
		if err != nil {
			return err
		}
		if err := w.decide(ctx, tx, args, wanted, found); err != nil {
			return err
		}
		answer.Text = answerText(wanted, found, comment.Author)
		return jobs.FromContext(ctx).Enqueue(ctx, answer, nil)
	})
	if errors.Is(err, errReceived) {
		return nil
	}
	return ignoreMissing(err)
}

// findingsOf finds what a thread is about: the findings that our comment names, if the project has them, else those that
// the latest scan of the pull request saw in the thread's line.
func findingsOf(ctx context.Context, tx *ent.Tx, projectID int64, args eventArgs, thread host.ReviewComment) ([]*ent.Finding, error) {
	named, err := tx.Finding.Query().Where(finding.ProjectID(projectID), store.OneOf(finding.FieldID, command.Findings(thread.Body))).
		Select(finding.FieldID, finding.FieldIssueType).Order(ent.Asc(finding.FieldID)).All(ctx)
	if err != nil || len(named) > 0 {
		return named, err
	}
	path, line := thread.Path, thread.Line
	if path == "" || line == 0 {
		path, line = args.Event.Comment.Path, args.Event.Comment.Line
	}
	if path == "" || line == 0 {
		return nil, nil
	}
	rows, err := tx.Finding.Query().
		Where(finding.ProjectID(projectID), store.OneOf(finding.FieldRef, webhook.Refs(args.Host, args.Event.Number)), seen()).
		Select(finding.FieldID, finding.FieldIssueType, finding.FieldContent).Order(ent.Asc(finding.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(rows, func(row *ent.Finding) bool { return !covers(row, path, line) }), nil
}

// covers reports whether a finding is in a line of a file.
func covers(row *ent.Finding, path string, line int64) bool {
	content, err := blob.Decode(row.Content)
	if err != nil {
		return false
	}
	at := content.GetLocation()
	first, last := int64(at.GetLine()), int64(at.GetEndLine())
	return at.GetFilePath() == path && first <= line && line <= max(first, last)
}

// decide triages as the API does.
func (w *eventWorker) decide(ctx context.Context, tx *ent.Tx, args eventArgs, wanted command.Command, found []*ent.Finding) error {
	byType := map[string][]int64{}
	request := &findingsv1.BulkTriageRequest{NewTriageState: wanted.State, NewTriageReason: wanted.Reason, NewNote: wanted.Comment}
	for _, row := range found {
		byType[row.IssueType] = append(byType[row.IssueType], row.ID)
		request.IssueIds = append(request.IssueIds, row.ID)
	}
	decision := triage.New(args.DeploymentID, wanted.State, wanted.Reason, wanted.Comment)
	decision.ActorKind, decision.ActorName = audit.KindHost, args.Event.Comment.Author
	for issueType, ids := range byType {
		if _, err := decision.Apply(ctx, w.store, tx, issueType, ids); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		audit.Change(ctx, "review_comment", args.Event.Comment.ID, nil, request)
	}
	return nil
}

// answerText says what was done. It must not begin as a command does.
func answerText(wanted command.Command, found []*ent.Finding, author string) string {
	if len(found) == 0 {
		return "Nothing was changed: no open finding belongs to this line of the pull request. A newer scan may have moved or fixed it."
	}
	ids := make([]string, len(found))
	for i, row := range found {
		ids[i] = fmt.Sprint(row.ID)
	}
	which := "Finding " + ids[0] + " was "
	if len(ids) > 1 {
		which = "Findings " + strings.Join(ids, ", ") + " were "
	}
	what := map[string]string{
		"false_positive": "ignored as false positive", "acceptable_risk": "ignored as acceptable risk", lifecycle.NoTriageReason: "ignored",
	}[wanted.Reason]
	if wanted.State == lifecycle.Reopened {
		what = "reopened"
	}
	return which + what + " at the request of " + author + "."
}

// replyArgs is an answer in a review thread. It is a job of its own, so that sending it again does not triage again.
type replyArgs struct {
	DeploymentID   int64  `json:"deployment_id"`
	ConfigID       int64  `json:"config_id,omitempty"`
	AppID          int64  `json:"app_id,omitempty"`
	InstallationID int64  `json:"installation_id,omitempty"`
	Repository     string `json:"repository"`
	Number         int64  `json:"number"`
	Thread         string `json:"thread"`
	Text           string `json:"text"`
}

// Kind is the name in the queue.
func (replyArgs) Kind() string { return "scm_reply" }

// InsertOpts bound the tries.
func (replyArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: webhookAttempts} }

type replyWorker struct {
	river.WorkerDefaults[replyArgs]
	*Connections
	log *slog.Logger
}

// Work sends the answer.
func (w *replyWorker) Work(ctx context.Context, job *river.Job[replyArgs]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	h, err := w.openSender(ctx, job.Args.ConfigID, job.Args.AppID, job.Args.InstallationID)
	if err == nil && h != nil {
		err = h.ReplyToReviewComment(ctx, job.Args.Repository, job.Args.Number, job.Args.Thread, job.Args.Text)
	}
	if err != nil && !passing(err) {
		w.log.WarnContext(ctx, "a command in a review comment was carried out, but its host does not let us say so", "config_id", job.Args.ConfigID, "error", err)
	}
	return retry(err, job.CreatedAt)
}
