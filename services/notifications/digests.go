package notifications

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/digestpart"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/timing"
)

const (
	// digestInterval is how often due digests are looked for, digestsAtOnce how many due rules are read together.
	digestInterval = time.Minute
	digestsAtOnce  = 100
	// digestQueue is a queue of its own, so that nodes of earlier versions do not claim these jobs during an upgrade.
	digestQueue = "digests"
)

// digestArgs is the job that writes due digests.
type digestArgs struct{}

// Kind is the name in the queue.
func (digestArgs) Kind() string { return "send_digests" }

// InsertOpts keeps jobs from piling up while no node works.
func (digestArgs) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = digestQueue
	return opts
}

type digestWorker struct {
	river.WorkerDefaults[digestArgs]
	digests *Digests
}

// Work implements river.Worker.
func (w *digestWorker) Work(ctx context.Context, _ *river.Job[digestArgs]) error {
	return w.digests.Send(ctx, jobs.FromContext(ctx), time.Now())
}

// Digests writes the digests of notification rules on their schedules.
type Digests struct {
	store *store.Store
	// base is the URL of this server.
	base string
}

// NewDigests writes digests whose links lead to the console below the base URL.
func NewDigests(st *store.Store, base string) *Digests { return &Digests{store: st, base: base} }

// Send puts the digests that are due into the ledger of deliveries. A digest that fails does not stop the others; it is
// tried again by the next run.
func (d *Digests) Send(ctx context.Context, queue *jobs.Jobs, now time.Time) error {
	var failed error
	var last *ent.NotificationRule
	for {
		query := d.store.Reader.NotificationRule.Query().
			Where(notificationrule.NextDigestAtNotNil(), notificationrule.NextDigestAtLTE(store.Micros(now)))
		if last != nil {
			query.Where(func(s *entsql.Selector) {
				s.Where(entsql.CompositeGT([]string{s.C(notificationrule.FieldNextDigestAt), s.C(notificationrule.FieldID)}, *last.NextDigestAt, last.ID))
			})
		}
		due, err := query.Order(ent.Asc(notificationrule.FieldNextDigestAt, notificationrule.FieldID)).Limit(digestsAtOnce).All(tenant.System(ctx))
		if err != nil {
			return errors.Join(failed, err)
		}
		for _, rule := range due {
			if err := d.send(tenant.NewContext(ctx, rule.DeploymentID), queue, rule, now); err != nil {
				failed = errors.Join(failed, fmt.Errorf("digest of notification rule %d: %w", rule.ID, err))
			}
		}
		if len(due) < digestsAtOnce {
			return failed
		}
		last = due[len(due)-1]
	}
}

// send replaces the parts of a digest by one delivery, in one transaction. Another node may have done so, or somebody
// may have changed the rule: then nothing happens.
func (d *Digests) send(ctx context.Context, queue *jobs.Jobs, rule *ent.NotificationRule, now time.Time) error {
	collected, err := d.collect(ctx, rule)
	if err != nil {
		return err
	}
	body, err := d.body(ctx, rule, collected)
	if err != nil {
		return err
	}
	return d.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		update := tx.NotificationRule.Update().Where(notificationrule.ID(rule.ID), notificationrule.IsEnabled(true),
			notificationrule.NextDigestAt(*rule.NextDigestAt), notificationrule.UpdatedAt(rule.UpdatedAt))
		if schedule := digestOf(rule); schedule != nil {
			update.SetNextDigestAt(store.Micros(timing.NextDigest(schedule, now)))
		} else {
			update.ClearNextDigestAt() // it was the last one
		}
		n, err := update.Save(ctx)
		if err != nil || n == 0 {
			return err
		}
		_, err = tx.DigestPart.Delete().Where(digestpart.RuleID(rule.ID), store.WithIDs[predicate.DigestPart](collected.parts)).Exec(ctx)
		if err != nil || body == nil {
			return err
		}
		if err := outbox.NewDelivery(tx, rule.DeploymentID, rule.ID, outbox.NewEventID(), kindFindings, body, store.Now()).Exec(ctx); err != nil {
			return err
		}
		return queue.Enqueue(ctx, outbox.Deliver{Cause: outbox.CauseEvent}, nil)
	})
}

// body is the message; nil if there is nothing new.
func (d *Digests) body(ctx context.Context, rule *ent.NotificationRule, c *collection) ([]byte, error) {
	counts := c.counts()
	if len(counts) == 0 {
		return nil, nil
	}
	owner, err := d.store.Reader.Deployment.Query().Where(deployment.ID(rule.DeploymentID)).Only(ctx)
	if err != nil {
		return nil, err
	}
	message, err := c.message(ctx, d.store.Reader, consoleOf(d.base, owner.Slug))
	if err != nil {
		return nil, err
	}
	message.DeploymentID, message.TenantName, message.Counts, message.SentAt = rule.DeploymentID, owner.Slug, counts, time.Now()
	message.Link = listLink(d.base, owner.Slug, c.since, namesPolicy(rule.PolicySlugs), url.Values{})
	return message.Body(), nil
}
