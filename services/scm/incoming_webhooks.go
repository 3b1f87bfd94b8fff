package scm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/webhook"
)

const (
	// maxWebhookBody is in bytes. What is acted on has some KiB; hosts would send up to 25 MiB.
	maxWebhookBody = 5 << 20
	// webhookTimeout is how long a host may take to send the body. Hosts give up after ten seconds themselves.
	webhookTimeout = 20 * time.Second
	// webhooksPerSecond and webhookBurst bound the webhooks of one key on one node: a host sends one for each change.
	webhooksPerSecond = 50
	webhookBurst      = 500
	// webhookKeys bounds the memory of the limiters, 2 MB: keys need not exist to be sent.
	webhookKeys = 10_000
	// receiptLife is how long a webhook is remembered. What happened longer ago than that, less a day, is not acted on.
	receiptLife = 30 * 24 * time.Hour
)

// The words of ReceiveWebhookResponse.status.
const (
	statusAccepted  = "accepted"
	statusDuplicate = "duplicate"
	statusIgnored   = "ignored"
)

// IncomingWebhooks is the service group "incoming webhooks".
type IncomingWebhooks struct {
	scmv1.UnimplementedIncomingWebhooksServiceServer
	*Connections
	jobs   *jobs.Jobs
	log    *slog.Logger
	limits *lru.Cache[string, *rate.Limiter]
}

// NewIncomingWebhooks takes what hosts send; the jobs of IncomingBackground act on it.
func NewIncomingWebhooks(c *Connections, j *jobs.Jobs, log *slog.Logger) (*IncomingWebhooks, error) {
	limits, err := lru.New[string, *rate.Limiter](webhookKeys)
	if err != nil {
		return nil, err
	}
	return &IncomingWebhooks{Connections: c, jobs: j, log: log, limits: limits}, nil
}

// ReceiveWebhook verifies a webhook, and stores that it came together with the job that acts on it. Keys are limited
// before they are looked up, so that the limit does not tell which ones exist either.
func (s *IncomingWebhooks) ReceiveWebhook(stream grpc.ClientStreamingServer[scmv1.ReceiveWebhookRequest, scmv1.ReceiveWebhookResponse]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return apierr.InvalidArgument("webhookKey", "webhookKey is required in the first message; got no message")
	}
	if err != nil {
		return err
	}
	if wait := s.limit(first.GetWebhookKey()); wait > 0 {
		return apierr.RateLimited(wait)
	}
	body, err := readBody(stream, first.GetChunk())
	if err != nil {
		return err
	}
	from, err := s.verify(ctx, first.GetWebhookKey(), first.GetCall(), body)
	if err != nil {
		return err
	}
	status, err := s.take(ctx, from, first.GetCall(), body)
	if err != nil {
		return err
	}
	return stream.SendAndClose(&scmv1.ReceiveWebhookResponse{Status: status})
}

// limit counts one webhook of a key and returns 0, or how long its host has to wait.
func (s *IncomingWebhooks) limit(key string) time.Duration {
	bucket, ok := s.limits.Get(key)
	if !ok {
		bucket = rate.NewLimiter(webhooksPerSecond, webhookBurst)
		if other, exists, _ := s.limits.PeekOrAdd(key, bucket); exists {
			bucket = other // of a call at the same moment
		}
	}
	if bucket.Allow() {
		return 0
	}
	return time.Second
}

// readBody reads the body within its limits of size and time.
func readBody(stream grpc.ClientStreamingServer[scmv1.ReceiveWebhookRequest, scmv1.ReceiveWebhookResponse], body []byte) ([]byte, error) {
	type outcome struct {
		body []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() { // ends with the stream, when the handler has returned
		for {
			message, err := stream.Recv()
			switch {
			case errors.Is(err, io.EOF):
				done <- outcome{body: body}
				return
			case err == nil && (message.GetWebhookKey() != "" || message.GetCall() != nil):
				err = apierr.InvalidArgument("webhookKey", "webhookKey and call belong to the first message only")
			case err == nil && len(body)+len(message.GetChunk()) > maxWebhookBody:
				err = apierr.TooLarge("the body of a webhook must have at most %d bytes", maxWebhookBody)
			}
			if err != nil {
				done <- outcome{err: err}
				return
			}
			body = append(body, message.GetChunk()...)
		}
	}()
	timer := time.NewTimer(webhookTimeout)
	defer timer.Stop()
	select {
	case end := <-done:
		return end.body, end.err
	case <-timer.C:
		return nil, apierr.DeadlineExceeded(errors.New("the body of a webhook did not come to an end"))
	}
}

// sender is whose webhook it is: a configuration's or an application's.
type sender struct {
	deploymentID, configID, appID int64
	key                           string
	host                          webhook.Host
	baseURL, namespace            string
	secrets                       []string
}

// verify finds the sender and checks the signature. Nobody is told which of the two was wrong.
func (s *IncomingWebhooks) verify(ctx context.Context, key string, call *scmv1.WebhookCall, body []byte) (sender, error) {
	from, err := s.sender(ctx, key)
	if err != nil {
		return sender{}, err
	}
	err = webhook.Verify(from.host, webhook.Signature{
		Digest: call.GetGithubSignature(), Token: call.GetGitlabToken(),
		ID: call.GetWebhookId(), Timestamp: call.GetWebhookTimestamp(), Signatures: call.GetWebhookSignature(),
	}, body, from.secrets)
	if err == nil {
		return from, nil
	}
	if from.key != "" {
		s.log.WarnContext(ctx, "a webhook was refused", "config_id", from.configID, "scm_app_id", from.appID, "error", err)
	}
	return sender{}, apierr.NotFound("there is no webhook with this key and signature")
}

// sender finds whose key it is, in all deployments: the signature is yet to be checked. Without a match it has no secrets.
func (s *IncomingWebhooks) sender(ctx context.Context, key string) (from sender, err error) {
	ctx = tenant.System(ctx)
	configs, err := s.store.Reader.ScmConfig.Query().Where(scmconfig.WebhookKey(key), scmconfig.WebhookKeyNEQ("")).All(ctx)
	if err != nil {
		return sender{}, err
	}
	apps, err := s.store.Reader.ScmApp.Query().Where(scmapp.WebhookKey(key), scmapp.WebhookKeyNEQ(""), scmapp.State(appComplete)).All(ctx)
	if err != nil {
		return sender{}, err
	}
	switch {
	case len(configs) > 0:
		c := configs[0]
		from = sender{deploymentID: c.DeploymentID, configID: c.ID, key: key, host: webhookHost(c.Type), baseURL: c.BaseURL, namespace: c.Namespace}
		from.secrets, err = s.seals.webhookSecrets(configTable, c.DeploymentID, c.ID, c.WebhookSecret, c.PreviousWebhookSecret, c.WebhookRotatedAt)
	case len(apps) > 0:
		a := apps[0]
		from = sender{deploymentID: a.DeploymentID, appID: a.ID, key: key, host: webhookHost(a.ScmType), baseURL: a.BaseURL, namespace: a.Namespace}
		from.secrets, err = s.seals.webhookSecrets(appTable, a.DeploymentID, a.ID, a.WebhookSecret, a.PreviousWebhookSecret, a.WebhookRotatedAt)
	}
	return from, err
}

func webhookHost(kind string) webhook.Host {
	switch scmType(kind) {
	case scmv1.ScmType_SCM_TYPE_GITHUB, scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE:
		return webhook.GitHub
	case scmv1.ScmType_SCM_TYPE_GITLAB, scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED:
		return webhook.GitLab
	}
	return ""
}

// take reads a verified webhook, and stores its receipt and its job in one transaction.
func (s *IncomingWebhooks) take(ctx context.Context, from sender, call *scmv1.WebhookCall, body []byte) (status string, err error) {
	name := call.GetGithubEvent()
	if from.host == webhook.GitLab {
		name = call.GetGitlabEvent()
	}
	event, err := webhook.Parse(from.host, name, body)
	if err != nil {
		return "", apierr.InvalidArgument("body", "%v", err)
	}
	if !from.concerns(event) {
		return statusIgnored, nil
	}
	ctx = tenant.NewContext(ctx, from.deploymentID)
	status = statusAccepted
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		// The body, not the host's id of the delivery: that is in a header, which no host signs.
		hash := sha256.Sum256(body)
		if err := addReceipt(ctx, tx, from.deploymentID, from.key, "sha256:"+hex.EncodeToString(hash[:])); err != nil {
			return err
		}
		if event.Kind == webhook.Commented {
			on, err := triageViaComment(ctx, tx, from.deploymentID)
			if err != nil || !on {
				status = statusIgnored
				return err
			}
		}
		return s.jobs.Enqueue(ctx, eventArgs{
			DeploymentID: from.deploymentID, ConfigID: from.configID, AppID: from.appID, Host: from.host, BaseURL: from.baseURL, Event: event,
		}, nil)
	})
	if errors.Is(err, errReceived) {
		s.log.InfoContext(ctx, "a webhook came again", "config_id", from.configID, "scm_app_id", from.appID,
			"delivery", orElse(call.GetGithubDelivery(), orElse(call.GetGitlabEventUuid(), call.GetWebhookId())))
		return statusDuplicate, nil
	}
	return status, err
}

// concerns reports whether an event is one that the sender may cause something by: of its own namespace, and not so old
// that its receipt may be gone.
func (f sender) concerns(e webhook.Event) bool {
	if !e.At.IsZero() && time.Since(e.At) > receiptLife-24*time.Hour {
		return false
	}
	switch e.Kind {
	case webhook.Closed:
		return f.owns(e.Repository)
	case webhook.Commented:
		return f.owns(e.Repository) && !e.Comment.Bot && isCommand(e.Comment.Body)
	case webhook.Installed:
		return f.appID != 0 && strings.EqualFold(e.Installation.Namespace, f.namespace)
	case webhook.Other:
	}
	return false
}

// owns reports whether a repository is in the sender's namespace, or in a group of it.
func (f sender) owns(repository string) bool {
	prefix := f.namespace + "/"
	return len(repository) > len(prefix) && strings.EqualFold(repository[:len(prefix)], prefix)
}

// errReceived says that there is a receipt already.
var errReceived = errors.New("received before")

// addReceipt remembers that something came, so that it is not taken twice; errReceived when it was.
func addReceipt(ctx context.Context, tx *ent.Tx, deploymentID int64, key, delivery string) error {
	err := tx.WebhookReceipt.Create().SetDeploymentID(deploymentID).SetWebhookKey(key).SetDeliveryID(delivery).SetReceivedAt(store.Now()).Exec(ctx)
	if ent.IsConstraintError(err) {
		return errReceived
	}
	return err
}
