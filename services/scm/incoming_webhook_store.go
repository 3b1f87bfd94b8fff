package scm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/webhookevent"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/webhook"
)

const (
	// maxWaiting is the maximum number of waiting events of a deployment. Above it the host gets an error: it shows the
	// delivery as failed, and people can redeliver it.
	maxWaiting = 20_000
	// fullRetry is the retry delay in that error.
	fullRetry = 30 * time.Second
	// countTTL is how long a count of waiting events is cached.
	countTTL = time.Second
	// clockTolerance is the tolerance for a host's clock. An event further in the future gets the time of arrival.
	clockTolerance = 5 * time.Minute
	// maxStoredComment is in bytes: enough for a command with a comment of maximum length.
	maxStoredComment = 16 << 10
)

// inbox is this node's state of a deployment's waiting events.
type inbox struct {
	// waking: a transaction that will enqueue a job has not begun yet.
	waking atomic.Bool

	mu      sync.Mutex
	waiting int
	counted time.Time
}

func (s *IncomingWebhooks) inbox(deploymentID int64) *inbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	box := s.inboxes[deploymentID]
	if box == nil {
		box = &inbox{}
		s.inboxes[deploymentID] = box
	}
	return box
}

// accept parses a verified webhook and stores its event with one insert. A job processes it. If the process ends before
// it enqueues the job, the next sweep finds the event.
func (s *IncomingWebhooks) accept(ctx context.Context, from sender, call *scmv1.WebhookCall, body []byte) (status string, err error) {
	name := call.GetGithubEvent()
	if from.host == webhook.GitLab {
		name = call.GetGitlabEvent()
	}
	event, err := webhook.Parse(from.host, name, body)
	if err != nil {
		return "", apierr.InvalidArgument("body", "%v", err)
	}
	event.Within(from.host, from.baseURL, from.namespace)
	if !from.concerns(event) {
		return statusIgnored, nil
	}
	ctx = tenant.NewContext(ctx, from.deploymentID)
	wanted := true
	if event.Kind == webhook.Commented {
		if wanted, err = triageViaComment(ctx, s.store.Reader, from.deploymentID); err != nil {
			return "", err
		}
	}
	if wanted {
		if err := s.reserve(ctx, from.deploymentID); err != nil {
			return "", err
		}
	}
	row, err := from.row(event, deliveryID(from, call, body), wanted)
	if err != nil {
		return "", err
	}
	if status, err = s.insert(ctx, row); err != nil {
		return "", err
	}
	switch {
	case status == statusDuplicate:
		s.log.InfoContext(ctx, "a webhook was delivered again", "config_id", from.configID, "scm_app_id", from.appID,
			"delivery", orElse(call.GetGithubDelivery(), orElse(call.GetGitlabEventUuid(), call.GetWebhookId())))
	case !wanted:
		return statusIgnored, nil
	default:
		s.wake(ctx, from.deploymentID)
	}
	return status, nil
}

// deliveryID is the deduplication key of an event. If the host signs the delivery id (Standard Webhooks), that is the
// key. Other ids are in unsigned headers: anyone who saw a delivery could replay it under new ids, or block a future
// id. In that case the key is a hash of the body. Bodies contain the time and ids of the event, so equal bodies mean
// the same event, and processing an event twice is idempotent.
func deliveryID(from sender, call *scmv1.WebhookCall, body []byte) string {
	if from.signedID {
		return "id:" + call.GetWebhookId()
	}
	hash := sha256.Sum256(body)
	return "sha256:" + hex.EncodeToString(hash[:])
}

// row converts an event to a row. An unwanted event is stored as done.
func (f sender) row(event webhook.Event, delivery string, wanted bool) (*ent.WebhookEvent, error) {
	now := time.Now()
	if event.At.IsZero() || event.At.After(now.Add(clockTolerance)) {
		event.At = now
	}
	if body := event.Comment.Body; len(body) > maxStoredComment {
		event.Comment.Body = strings.ToValidUTF8(body[:maxStoredComment], "")
	}
	row := &ent.WebhookEvent{
		DeploymentID: f.deploymentID, WebhookKey: f.key, DeliveryID: delivery, Subject: f.subject(event),
		HappenedAt: store.Micros(event.At), ReceivedAt: store.Micros(now),
	}
	if !wanted {
		return row, nil
	}
	told, err := json.Marshal(eventArgs{
		DeploymentID: f.deploymentID, ConfigID: f.configID, AppID: f.appID, Host: f.host, BaseURL: f.baseURL, Event: event,
	})
	if err != nil {
		return nil, fmt.Errorf("store an event: %w", err)
	}
	row.Event, row.DueAt = told, &row.ReceivedAt
	return row, nil
}

// subject is the key by which events are ordered: all events of one pull request share it, and all about a repository
// itself, regardless of the sender.
func (f sender) subject(event webhook.Event) string {
	switch event.Kind {
	case webhook.Installed:
		return fmt.Sprintf("app %d", f.appID)
	case webhook.Changed, webhook.Deleted, webhook.BranchDeleted:
		return fmt.Sprintf("%s repository %s", f.baseURL, event.RepositoryID)
	case webhook.Pushed, webhook.Closed, webhook.Commented, webhook.Other:
	}
	return fmt.Sprintf("%s/%s#%d", f.baseURL, strings.ToLower(event.Repository), event.Number)
}

// insert stores an event, unless it is already stored. An abandoned event is processed again, because a
// person has redelivered it.
func (s *IncomingWebhooks) insert(ctx context.Context, row *ent.WebhookEvent) (status string, err error) {
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		create := tx.WebhookEvent.Create().SetDeploymentID(row.DeploymentID).SetWebhookKey(row.WebhookKey).SetDeliveryID(row.DeliveryID).
			SetSubject(row.Subject).SetHappenedAt(row.HappenedAt).SetReceivedAt(row.ReceivedAt).SetNillableDueAt(row.DueAt)
		if row.Event != nil {
			create.SetEvent(row.Event)
		}
		return create.Exec(ctx)
	})
	if err == nil {
		return statusAccepted, nil
	}
	if !ent.IsConstraintError(err) {
		return "", err
	}
	status = statusDuplicate
	if row.DueAt == nil {
		return status, nil
	}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.WebhookEvent.Update().Where(webhookevent.WebhookKey(row.WebhookKey), webhookevent.DeliveryID(row.DeliveryID), webhookevent.Failed(true)).
			SetFailed(false).SetAttempts(0).SetEvent(row.Event).SetDueAt(*row.DueAt).Save(ctx)
		if n > 0 {
			status = statusAccepted
		}
		return err
	})
	return status, err
}

// reserve counts one more waiting event of a deployment, or returns an error if there are too many. It queries the
// database at most once a second per node.
func (s *IncomingWebhooks) reserve(ctx context.Context, deploymentID int64) error {
	box := s.inbox(deploymentID)
	box.mu.Lock()
	defer box.mu.Unlock()
	if time.Since(box.counted) > countTTL {
		n, err := s.store.Reader.WebhookEvent.Query().Where(webhookevent.DueAtNotNil()).Count(ctx)
		if err != nil {
			return err
		}
		box.waiting, box.counted = n, time.Now()
	}
	if box.waiting >= maxWaiting {
		return apierr.New(codes.Unavailable, errorsv1.Reason_REASON_UNAVAILABLE,
			fmt.Sprintf("%d events of this deployment wait to be acted on, which is the most: send this one again later", maxWaiting),
			&errdetails.RetryInfo{RetryDelay: durationpb.New(fullRetry)})
	}
	box.waiting++
	return nil
}

// wake enqueues the job that processes a deployment's events. Only one of several concurrent calls enqueues: its job
// sees all events that were committed before its transaction began.
func (s *IncomingWebhooks) wake(ctx context.Context, deploymentID int64) {
	box := s.inbox(deploymentID)
	if !box.waking.CompareAndSwap(false, true) {
		return
	}
	begun := false
	err := s.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
		begun = true
		box.waking.Store(false)
		return s.jobs.Enqueue(ctx, drainArgs{DeploymentID: deploymentID}, nil)
	})
	if !begun {
		box.waking.Store(false)
	}
	if err != nil {
		s.log.WarnContext(ctx, "an event is stored and waits for the next sweep", "deployment_id", deploymentID, "error", err)
	}
}
