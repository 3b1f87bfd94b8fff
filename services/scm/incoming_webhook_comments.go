package scm

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/webhookreceipt"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/command"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/webhook"
)

// isCommand reports whether a comment is a command, valid or not.
func isCommand(text string) bool {
	_, ok, _ := command.Parse(text)
	return ok
}

// triageViaComment reads the toggle of contract operation 14.
func triageViaComment(ctx context.Context, db *ent.Client, deploymentID int64) (bool, error) {
	row, err := db.Deployment.Query().Where(deployment.ID(deploymentID)).Only(ctx)
	if err != nil {
		return false, err
	}
	return row.TriageViaComment, nil
}

// commented returns the effect of a command. A user without write access gets no reply: anyone may comment on a public
// repository.
func (w *eventActions) commented(ctx context.Context, args eventArgs) (step, error) {
	comment := args.Event.Comment
	wanted, ok, problem := command.Parse(comment.Body)
	if !ok {
		return nil, nil
	}
	projects, err := w.projects(ctx, w.store.Reader, args)
	if err != nil || len(projects) == 0 {
		return nil, err
	}
	h, err := w.openSender(ctx, args.ConfigID, args.AppID, args.Event.Installation.ID)
	if err != nil || h == nil {
		return nil, err
	}
	may, err := h.CanWrite(ctx, args.Event.Repository, comment.Author)
	if host.Is(err, host.NotFound) || err == nil && !may {
		w.log.InfoContext(ctx, "a comment's command was ignored: its author may not write to the repository", "repository", args.Event.Repository)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	thread, err := h.ReviewThread(ctx, args.Event.Repository, args.Event.Number, comment.Thread)
	if err != nil {
		return nil, err
	}
	if thread.Author == comment.Author && len(command.Findings(thread.Body)) > 0 {
		return nil, nil // the account that Palisade comments with
	}
	return func(ctx context.Context, tx *ent.Tx) error {
		return w.execute(ctx, tx, args, projects, thread, wanted, problem)
	}, nil
}

// execute triages and enqueues the reply, once per comment, even if several webhooks report it.
func (w *eventActions) execute(ctx context.Context, tx *ent.Tx, args eventArgs, projects []*ent.Project, thread host.ReviewComment, wanted command.Command, problem error) error {
	comment := args.Event.Comment
	once := strings.Join([]string{"comment", args.BaseURL, args.Event.Repository, comment.ID}, " ")
	known, err := tx.WebhookReceipt.Query().Where(webhookreceipt.WebhookKey(""), webhookreceipt.DeliveryID(once)).Exist(ctx)
	if err != nil || known {
		return err
	}
	err = tx.WebhookReceipt.Create().SetDeploymentID(args.DeploymentID).SetWebhookKey("").SetDeliveryID(once).SetReceivedAt(store.Now()).Exec(ctx)
	if err != nil {
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
	if projects, err = w.lockProjects(ctx, tx, projects); err != nil {
		return err
	}
	found, err := findingsOf(ctx, tx, projects, args, thread)
	if err != nil {
		return err
	}
	permissions, err := triage.DeveloperPermissions(ctx, tx.Client())
	if err != nil {
		return err
	}
	found, requested, refusal := permit(permissions, wanted, found)
	if refusal != "" {
		answer.Text = "Nothing was changed: " + refusal + "."
		return jobs.FromContext(ctx).Enqueue(ctx, answer, nil)
	}
	found, decided := splitDecided(found, args.Event.At)
	if err := w.decide(ctx, tx, args, wanted, found); err != nil {
		return err
	}
	if len(requested) > 0 {
		if answer.Text, err = w.requestExceptions(ctx, tx, args, wanted, requested, permissions.Approvers()); err != nil {
			return err
		}
	}
	if len(requested) == 0 || len(found)+len(decided) > 0 {
		answer.Text = strings.TrimSpace(answer.Text + " " + answerText(wanted, found, decided, comment.Author))
	}
	return jobs.FromContext(ctx).Enqueue(ctx, answer, nil)
}

// permit splits findings into the ones that developers may decide about like this, and the ones for which they request
// an exception. Otherwise refusal says why they may not. People who comment at the host are developers here, whatever
// their role there.
func permit(permissions triage.Permissions, wanted command.Command, found []*ent.Finding) (decided, requested []*ent.Finding, refusal string) {
	for _, row := range found {
		refused := permissions.Refusal(row.IssueType, wanted.State)
		switch {
		case refused == "":
			decided = append(decided, row)
		case permissions.MayRequest(row.IssueType):
			requested = append(requested, row)
		default:
			return nil, nil, refused
		}
	}
	return decided, requested, ""
}

// requestExceptions requests exceptions for findings, and describes the result.
func (w *eventActions) requestExceptions(
	ctx context.Context, tx *ent.Tx, args eventArgs, wanted command.Command, found []*ent.Finding, approvers string,
) (string, error) {
	author := args.Event.Comment.Author
	ids := make([]int64, len(found))
	for i, row := range found {
		ids[i] = row.ID
	}
	requested, err := decisionOf(ctx, args, wanted).RequestExceptions(ctx, w.store, tx, triage.Person{Kind: audit.KindHost, Login: author},
		triage.SourceComment, store.WithIDs[predicate.Finding](ids))
	if err != nil {
		return "", err
	}
	if requested == 0 {
		return names(found, "is", "are") + " ignored already, or an exception is requested already.", nil
	}
	return strings.TrimSpace(names(found, "needs", "need") + " approval: an exception was requested for " + author +
		". An administrator approves or rejects it. " + approvers), nil
}

// decisionOf is the decision of a command. It has the time of the comment, so that it takes precedence over commands
// that were written earlier and arrive later.
func decisionOf(ctx context.Context, args eventArgs, wanted command.Command) triage.Decision {
	decision := triage.New(args.DeploymentID, triage.KindComment, wanted.State, wanted.Reason, wanted.Comment)
	decision.ActorKind, decision.ActorName = audit.KindHost, args.Event.Comment.Author
	decision.Queue = jobs.FromContext(ctx)
	decision.DecidedAt = store.Micros(args.Event.At)
	return decision
}

// splitDecided separates the findings that a command may change from the ones that a person triaged after it was
// written, compared in seconds, the precision of hosts. Provisional decisions of automation do not count.
func splitDecided(found []*ent.Finding, at time.Time) (open, decided []*ent.Finding) {
	for _, row := range found {
		later := row.TriagedAt != nil && row.TriageState != lifecycle.ProvisionallyIgnored &&
			store.Time(*row.TriagedAt).Truncate(time.Second).After(at)
		if later {
			decided = append(decided, row)
		} else {
			open = append(open, row)
		}
	}
	return open, decided
}

// findingsOf finds the findings of a thread: the findings that our comment names, if the projects have them. Otherwise
// it is the findings that the pull request's latest scans reported in the thread's line.
func findingsOf(ctx context.Context, tx *ent.Tx, projects []*ent.Project, args eventArgs, thread host.ReviewComment) ([]*ent.Finding, error) {
	ids := make([]int64, len(projects))
	for i, row := range projects {
		ids[i] = row.ID
	}
	inProjects := store.OneOf(finding.FieldProjectID, ids)
	named, err := tx.Finding.Query().Where(inProjects, store.OneOf(finding.FieldID, command.Findings(thread.Body))).
		Select(finding.FieldID, finding.FieldIssueType, finding.FieldTriageState, finding.FieldTriagedAt).Order(ent.Asc(finding.FieldID)).All(ctx)
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
		Where(inProjects, store.OneOf(finding.FieldRef, webhook.Refs(args.Host, args.Event.Number)), reportedByLatestScan()).
		Select(finding.FieldID, finding.FieldIssueType, finding.FieldTriageState, finding.FieldTriagedAt, finding.FieldContent).
		Order(ent.Asc(finding.FieldID)).All(ctx)
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

// decide triages like the API.
func (w *eventActions) decide(ctx context.Context, tx *ent.Tx, args eventArgs, wanted command.Command, found []*ent.Finding) error {
	if len(found) == 0 {
		return nil
	}
	request := &findingsv1.BulkTriageRequest{NewTriageState: wanted.State, NewTriageReason: wanted.Reason, NewNote: wanted.Comment}
	for _, row := range found {
		request.IssueIds = append(request.IssueIds, row.ID)
	}
	if _, _, err := decisionOf(ctx, args, wanted).Apply(ctx, w.store, tx, request.GetIssueIds()); err != nil {
		return err
	}
	audit.Change(ctx, "review_comment", args.Event.Comment.ID, nil, request)
	return nil
}

// answerText describes the result. It must not begin like a command.
func answerText(wanted command.Command, found, decided []*ent.Finding, author string) string {
	if len(found)+len(decided) == 0 {
		return "Nothing was changed: no open finding belongs to this line of the pull request. A newer scan may have moved or fixed it."
	}
	later := ""
	if len(decided) > 0 {
		later = names(decided, "has", "have") + " been decided about after this comment was written, and that decision stands."
	}
	if len(found) == 0 {
		return "Nothing was changed: " + strings.ToLower(later[:1]) + later[1:]
	}
	what := map[string]string{
		"false_positive": "ignored as false positive", "acceptable_risk": "ignored as acceptable risk", lifecycle.NoTriageReason: "ignored",
	}[wanted.Reason]
	if wanted.State == lifecycle.Reopened {
		what = "reopened"
	}
	return strings.TrimSpace(names(found, "was", "were") + " " + what + " at the request of " + author + ". " + later)
}

// names lists findings, with the singular or plural verb.
func names(found []*ent.Finding, one, several string) string {
	ids := make([]string, len(found))
	for i, row := range found {
		ids[i] = fmt.Sprint(row.ID)
	}
	if len(ids) == 1 {
		return "Finding " + ids[0] + " " + one
	}
	return "Findings " + strings.Join(ids, ", ") + " " + several
}

// replyArgs is the job that replies in a review thread. It is a separate job, so that retrying it does not triage
// again.
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

// InsertOpts limits the attempts.
func (replyArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: webhookAttempts} }

type replyWorker struct {
	river.WorkerDefaults[replyArgs]
	*Connections
	log *slog.Logger
}

// Work sends the reply.
func (w *replyWorker) Work(ctx context.Context, job *river.Job[replyArgs]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	h, err := w.openSender(ctx, job.Args.ConfigID, job.Args.AppID, job.Args.InstallationID)
	if err == nil && h != nil {
		err = h.ReplyToReviewComment(ctx, job.Args.Repository, job.Args.Number, job.Args.Thread, job.Args.Text)
	}
	if err != nil && !connect.Temporary(err) {
		w.log.WarnContext(ctx, "a command in a review comment was executed, but its host refused the reply", "config_id", job.Args.ConfigID, "error", err)
	}
	return connect.Retry(err, job.CreatedAt)
}
