package notifications

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/chatinstallation"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/slackapp"
)

// chatAttempts is how often the effect of a choice is tried: about half an hour.
const chatAttempts = 7

// chatTriage is the job that decides about a finding for a person who chose that in a message.
type chatTriage struct {
	DeploymentID   int64  `json:"deployment_id"`
	InstallationID int64  `json:"installation_id"`
	UserID         string `json:"user_id"`
	Channel        string `json:"channel"`
	Message        string `json:"message"`
	FindingID      int64  `json:"finding_id"`
	State          string `json:"state"`
	Reason         string `json:"reason,omitempty"`
}

// Kind is the name in the queue.
func (chatTriage) Kind() string { return "chat_triage" }

// InsertOpts limits the attempts.
func (chatTriage) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: chatAttempts} }

// chatReply is the job that says in the thread of the message what became of a choice. It is a separate job, so that
// retrying it decides nothing again.
type chatReply struct {
	DeploymentID   int64  `json:"deployment_id"`
	InstallationID int64  `json:"installation_id"`
	Channel        string `json:"channel"`
	Message        string `json:"message"`
	Text           string `json:"text"`
	// UserID is the only person who sees the text; empty means the whole channel.
	UserID string `json:"user_id,omitempty"`
}

// Kind is the name in the queue.
func (chatReply) Kind() string { return "chat_reply" }

// InsertOpts limits the attempts.
func (chatReply) InsertOpts() river.InsertOpts { return river.InsertOpts{MaxAttempts: chatAttempts} }

type chatWorkers struct {
	store   *store.Store
	senders *Senders
	decider *triage.Decider
	log     *slog.Logger
}

// ChatBackground runs what people choose in messages of the chat app.
func ChatBackground(senders *Senders, decider *triage.Decider, log *slog.Logger) jobs.Work {
	of := &chatWorkers{store: senders.store, senders: senders, decider: decider, log: log}
	return jobs.Work{Register: func(workers *river.Workers) {
		jobs.AddWorker(workers, &chatTriageWorker{chatWorkers: of})
		jobs.AddWorker(workers, &chatReplyWorker{chatWorkers: of})
	}}
}

// token is the token of an installation; empty if it ended.
func (w *chatWorkers) token(ctx context.Context, id int64) (token string, in *ent.ChatInstallation, err error) {
	in, err = w.store.Reader.ChatInstallation.Query().Where(chatinstallation.ID(id), chatinstallation.Archived(false)).Only(ctx)
	if err != nil {
		return "", nil, ignoreNotFound(err)
	}
	token, err = w.senders.chatToken(in)
	return token, in, err
}

// retry decides whether a failed request to Slack is tried again, and when.
func (w *chatWorkers) retry(ctx context.Context, in *ent.ChatInstallation, failed error) error {
	if slackapp.Lost(failed) {
		return w.senders.archive(ctx, in)
	}
	if wait, limited := slackapp.Wait(failed); limited {
		return river.JobSnooze(min(wait, time.Hour))
	}
	if text, said := slackapp.Describe(failed); said {
		w.log.WarnContext(ctx, "Slack refused a request of the chat app", "deployment_id", in.DeploymentID, "answer", text)
		return nil
	}
	return failed
}

type chatTriageWorker struct {
	river.WorkerDefaults[chatTriage]
	*chatWorkers
}

// Work decides as the member whose e-mail address Slack confirms.
func (w *chatTriageWorker) Work(ctx context.Context, job *river.Job[chatTriage]) error {
	args := job.Args
	ctx = tenant.NewContext(ctx, args.DeploymentID)
	token, in, err := w.token(ctx, args.InstallationID)
	if err != nil || in == nil {
		return err
	}
	email, problem, err := w.senders.slack.Email(ctx, token, in.TeamID, args.UserID)
	if err != nil {
		return w.retry(ctx, in, err)
	}
	reply := chatReply{
		DeploymentID: args.DeploymentID, InstallationID: in.ID, Channel: args.Channel, Message: args.Message, UserID: args.UserID,
		Text: "Nothing was changed: " + problem + ".",
	}
	if problem == "" {
		var told bool
		if reply.Text, told, err = w.decide(ctx, args, email); err != nil {
			return err
		}
		if told {
			reply.UserID = ""
		}
	}
	return w.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error { return jobs.FromContext(ctx).Enqueue(ctx, reply, nil) })
}

// decide decides, and says what became of it. told is true if the channel is to see that.
func (w *chatTriageWorker) decide(ctx context.Context, args chatTriage, email string) (text string, told bool, err error) {
	as, err := access.AsTriager(ctx, w.store, args.DeploymentID, email)
	var outcome triage.Outcome
	if err == nil {
		caller, _ := access.FromContext(as)
		as = audit.Begin(as, audit.Actor{Kind: string(caller.Kind), ID: caller.ID, Name: caller.Name}, "chat-app/triage")
		outcome, err = w.decider.Decide(as, args.FindingID, args.State, args.Reason, "")
	}
	switch refusal := status.Convert(err); {
	case err != nil && refusal.Code() == codes.PermissionDenied:
		return "Nothing was changed: " + refusal.Message() + ".", false, nil
	case err != nil:
		return "", false, err
	case !outcome.Found:
		return fmt.Sprintf("Nothing was changed: there is no finding %d that you may triage.", args.FindingID), false, nil
	case outcome.Requested:
		return fmt.Sprintf("Finding %d needs approval: <@%s> requested an exception. An administrator approves or rejects it.", args.FindingID, args.UserID), true, nil
	case !outcome.Changed:
		return fmt.Sprintf("Nothing was changed: finding %d is %s already, or an exception is requested.", args.FindingID, wordsOf(args)), false, nil
	}
	return fmt.Sprintf("Finding %d is %s now: <@%s> decided that.", args.FindingID, wordsOf(args), args.UserID), true, nil
}

// wordsOf says what was chosen.
func wordsOf(args chatTriage) string {
	switch args.State {
	case "reopened":
		return "open"
	case "ignored":
		return map[string]string{"false_positive": "ignored as a false positive", "acceptable_risk": "ignored as an acceptable risk"}[args.Reason]
	case "reviewing":
		return "under review"
	}
	return "being fixed"
}

type chatReplyWorker struct {
	river.WorkerDefaults[chatReply]
	*chatWorkers
}

// Work sends the reply.
func (w *chatReplyWorker) Work(ctx context.Context, job *river.Job[chatReply]) error {
	args := job.Args
	ctx = tenant.NewContext(ctx, args.DeploymentID)
	token, in, err := w.token(ctx, args.InstallationID)
	if err != nil || in == nil {
		return err
	}
	if args.UserID == "" {
		err = w.senders.slack.Reply(ctx, token, args.Channel, args.Message, args.Text)
	} else {
		err = w.senders.slack.Whisper(ctx, token, args.Channel, args.Message, args.UserID, args.Text)
	}
	if err != nil {
		return w.retry(ctx, in, err)
	}
	return nil
}
