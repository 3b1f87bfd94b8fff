package scm

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/ent/tenant"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/buckets"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/quota"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/webhook"
)

const (
	// maxWebhookBody is in bytes. Processed events have a few KiB; hosts send up to 25 MiB.
	maxWebhookBody = 5 << 20
	// webhookTimeout is the timeout for receiving the body. Hosts give up after ten seconds.
	webhookTimeout = 20 * time.Second
	// refusedPerSecond and refusedBurst limit unverified webhooks per key and node.
	refusedPerSecond = 50
	refusedBurst     = 500
	// webhookKeys limits the memory of the limiters to 2 MB: senders can use any key.
	webhookKeys = 10_000
	// receiptLife is how long a webhook is remembered. Events older than that, less a day, are ignored.
	receiptLife = 30 * 24 * time.Hour
)

// Values of ReceiveWebhookResponse.status.
const (
	statusAccepted  = "accepted"
	statusDuplicate = "duplicate"
	statusIgnored   = "ignored"
)

// IncomingWebhooks is the service group "incoming webhooks".
type IncomingWebhooks struct {
	scmv1.UnimplementedIncomingWebhooksServiceServer
	*Connections
	jobs    *jobs.Jobs
	log     *slog.Logger
	refused *buckets.Buckets[string] // unverified webhooks by key

	mu      sync.Mutex
	inboxes map[int64]*inbox // by deployment
}

// NewIncomingWebhooks receives webhooks. The jobs of IncomingBackground process them.
func NewIncomingWebhooks(c *Connections, j *jobs.Jobs, log *slog.Logger) *IncomingWebhooks {
	return &IncomingWebhooks{
		Connections: c, jobs: j, log: log, inboxes: map[int64]*inbox{},
		refused: buckets.New[string](webhookKeys, refusedPerSecond, refusedBurst),
	}
}

// ReceiveWebhook verifies a webhook and stores its event. The rate limit applies to unverified webhooks only: hosts
// send in bursts and do not repeat a rejected webhook.
func (s *IncomingWebhooks) ReceiveWebhook(stream grpc.ClientStreamingServer[scmv1.ReceiveWebhookRequest, scmv1.ReceiveWebhookResponse]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return apierr.InvalidArgument("webhookKey", "webhookKey is required in the first message; got no message")
	}
	if err != nil {
		return err
	}
	if err := s.refuseEarly(ctx, first.GetWebhookKey()); err != nil {
		return err
	}
	body, err := readBody(stream, first.GetChunk())
	if err != nil {
		return err
	}
	from, err := s.verify(ctx, first.GetWebhookKey(), first.GetCall(), body)
	if err != nil {
		return err
	}
	if body, err = webhook.Payload(body); err != nil {
		return apierr.InvalidArgument("body", "%v", err)
	}
	status, err := s.accept(ctx, from, first.GetCall(), body)
	if err != nil {
		return err
	}
	return stream.SendAndClose(&scmv1.ReceiveWebhookResponse{Status: status})
}

// refuseEarly rejects a webhook of an unknown key before reading its body, if the limit of the key or of the caller's
// address is exhausted. The body of a known key is read anyway, since its signature may be valid. This difference
// reveals which keys exist, but only to a caller that already knows the key: keys have 256 random bits.
func (s *IncomingWebhooks) refuseEarly(ctx context.Context, key string) error {
	if !quota.UsedUp(ctx) && s.refused.Of(key).Tokens() >= 1 {
		return nil
	}
	from, err := s.sender(ctx, key)
	if err == nil && from.key == "" {
		err = apierr.RateLimited(time.Second)
	}
	return err
}

// readBody reads the body within the size and time limits.
func readBody(stream grpc.ClientStreamingServer[scmv1.ReceiveWebhookRequest, scmv1.ReceiveWebhookResponse], body []byte) ([]byte, error) {
	type outcome struct {
		body []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() { // ends with the stream, after the handler has returned
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
		return nil, apierr.DeadlineExceeded(errors.New("the body of a webhook is incomplete"))
	}
}

// sender is the configuration or application that a webhook belongs to.
type sender struct {
	deploymentID, configID, appID int64
	key                           string
	host                          webhook.Host
	baseURL, namespace            string
	secrets                       []string
	// signedID: the signature also covers the delivery id.
	signedID bool
}

// verify finds the sender and checks the signature. The error does not say which of the two failed.
func (s *IncomingWebhooks) verify(ctx context.Context, key string, call *scmv1.WebhookCall, body []byte) (sender, error) {
	from, err := s.sender(ctx, key)
	if err != nil {
		return sender{}, err
	}
	from.signedID, err = webhook.Verify(from.host, webhook.Signature{
		Digest: call.GetGithubSignature(), Token: call.GetGitlabToken(), Basic: call.GetAzureAuthorization(),
		ID: call.GetWebhookId(), Timestamp: call.GetWebhookTimestamp(), Signatures: call.GetWebhookSignature(),
	}, body, from.secrets)
	if err == nil {
		return from, nil
	}
	if !s.refused.Of(key).Allow() {
		return sender{}, apierr.RateLimited(time.Second)
	}
	if from.key != "" {
		s.log.WarnContext(ctx, "a webhook was refused", "config_id", from.configID, "scm_app_id", from.appID, "error", err)
	}
	return sender{}, apierr.NotFound("there is no webhook with this key and signature")
}

// sender finds the owner of a key in all deployments, before the signature is checked. An unknown key gives a sender
// without secrets.
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
		from.secrets, err = s.seals.WebhookSecrets(connect.ConfigTable, c.DeploymentID, c.ID, c.WebhookSecret, c.PreviousWebhookSecret, c.WebhookRotatedAt)
	case len(apps) > 0:
		a := apps[0]
		from = sender{deploymentID: a.DeploymentID, appID: a.ID, key: key, host: webhookHost(a.ScmType), baseURL: a.BaseURL, namespace: a.Namespace}
		from.secrets, err = s.seals.WebhookSecrets(connect.AppTable, a.DeploymentID, a.ID, a.WebhookSecret, a.PreviousWebhookSecret, a.WebhookRotatedAt)
	}
	return from, err
}

func webhookHost(kind string) webhook.Host {
	switch connect.TypeOf(kind) {
	case scmv1.ScmType_SCM_TYPE_GITHUB, scmv1.ScmType_SCM_TYPE_GITHUB_ENTERPRISE:
		return webhook.GitHub
	case scmv1.ScmType_SCM_TYPE_GITLAB, scmv1.ScmType_SCM_TYPE_GITLAB_SELFMANAGED:
		return webhook.GitLab
	case scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS:
		return webhook.AzureDevOps
	}
	return ""
}

// concerns reports whether the sender may cause an effect by the event: it must be about the sender's namespace, and
// not older than the stored receipts.
func (f sender) concerns(e webhook.Event) bool {
	if !e.At.IsZero() && time.Since(e.At) > receiptLife-24*time.Hour {
		return false
	}
	switch e.Kind {
	case webhook.Pushed, webhook.Closed, webhook.Changed, webhook.Deleted, webhook.BranchDeleted:
		return f.owns(e.Repository)
	case webhook.Commented:
		return f.owns(e.Repository) && !e.Comment.Bot && isCommand(e.Comment.Body)
	case webhook.Installed:
		return f.appID != 0 && strings.EqualFold(e.Installation.Namespace, f.namespace)
	case webhook.Other:
	}
	return false
}

// owns reports whether a repository is in the sender's namespace or its subgroups.
func (f sender) owns(repository string) bool {
	prefix := f.namespace + "/"
	return len(repository) > len(prefix) && strings.EqualFold(repository[:len(prefix)], prefix)
}
