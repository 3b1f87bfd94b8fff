package notifications

import (
	"context"
	"errors"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notificationevent"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tenant"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/payload"
)

const (
	// maxMessagesPerStep is the maximum number of finding messages per rule created in one transaction. deliveriesPerStep
	// is the target for all rules together: other deployments wait for it.
	maxMessagesPerStep = 10
	deliveriesPerStep  = 200
	// maxBusyDeployments is the maximum number of deployments to try in a row if other nodes hold their events.
	maxBusyDeployments = 100
	// deliveriesPerInsert keeps a statement below SQLite's parameter limit.
	deliveriesPerInsert = 200
	// eventRetry is the retry delay of an event that could not be expanded.
	eventRetry = time.Minute
)

// Kinds of deliveries in the ledger.
const (
	kindFindings = "findings"
	kindScan     = "scan"
	kindHeld     = "held_closes"
	kindTest     = "test"
)

// nextEventSQL finds the next deployment with a waiting event, with one index step per deployment.
const nextEventSQL = `WITH RECURSIVE head (deployment_id, not_before) AS (
	SELECT deployment_id, not_before FROM notification_events WHERE id = (
		SELECT id FROM notification_events WHERE deployment_id > CAST(? AS BIGINT) ORDER BY deployment_id, not_before, id LIMIT 1)
	UNION ALL
	SELECT next.deployment_id, next.not_before FROM head JOIN notification_events AS next ON next.id = (
		SELECT id FROM notification_events WHERE deployment_id > head.deployment_id ORDER BY deployment_id, not_before, id LIMIT 1)
) SELECT deployment_id FROM head WHERE not_before <= ? LIMIT 1`

// nextEventPostgresSQL is nextEventSQL for PostgreSQL; see headsPostgresSQL.
const nextEventPostgresSQL = `WITH RECURSIVE head (deployment_id, not_before) AS (
	(SELECT deployment_id, not_before FROM notification_events WHERE deployment_id > CAST(? AS BIGINT) ORDER BY deployment_id, not_before, id LIMIT 1)
	UNION ALL
	SELECT next.deployment_id, next.not_before FROM head CROSS JOIN LATERAL (
		SELECT deployment_id, not_before FROM notification_events WHERE deployment_id > head.deployment_id
		ORDER BY deployment_id, not_before, id LIMIT 1) AS next
) SELECT deployment_id FROM head WHERE not_before <= ? LIMIT 1`

// nextEvents returns the deployment with the next turn; ok is false if no event waits.
func (e *engine) nextEvents(ctx context.Context) (deploymentID int64, ok bool, err error) {
	query := nextEventSQL
	if e.store.Postgres() {
		query = nextEventPostgresSQL
	}
	err = e.read(ctx, func(q querier) error {
		for _, after := range []int64{e.eventsOf, 0} {
			rows, err := q.QueryContext(ctx, e.store.Placeholders(query), after, store.Now())
			if err != nil {
				return err
			}
			for rows.Next() { // one
				ok, err = true, rows.Scan(&deploymentID)
			}
			if err := errors.Join(err, rows.Err(), rows.Close()); err != nil || ok {
				return err
			}
		}
		return nil
	})
	return deploymentID, ok, err
}

// expand turns part of one event into deliveries; deployments take turns. worked is false if no event waits, or other
// nodes hold all of them.
func (e *engine) expand(ctx context.Context) (worked bool, err error) {
	var first int64
	for range maxBusyDeployments {
		deploymentID, waits, err := e.nextEvents(ctx)
		if err != nil || !waits || deploymentID == first {
			return false, err
		}
		if first == 0 {
			first = deploymentID
		}
		e.eventsOf = deploymentID
		if worked, err := e.expandOf(ctx, deploymentID); worked || err != nil {
			return worked, err
		}
	}
	return false, nil
}

// expandOf turns part of a deployment's first event into deliveries.
func (e *engine) expandOf(ctx context.Context, deploymentID int64) (worked bool, err error) {
	var event *ent.NotificationEvent
	err = e.store.Write(tenant.NewContext(ctx, deploymentID), func(ctx context.Context, tx *ent.Tx) error {
		query := tx.NotificationEvent.Query().Where(notificationevent.DeploymentID(deploymentID), notificationevent.NotBeforeLTE(store.Now())).
			Order(ent.Asc(notificationevent.FieldNotBefore, notificationevent.FieldID)).Limit(1)
		if e.store.Postgres() {
			query.ForUpdate(entsql.WithLockAction(entsql.SkipLocked))
		}
		found, err := query.All(ctx)
		if err != nil || len(found) == 0 {
			return err
		}
		event = found[0]
		return e.expandEvent(ctx, tx, event)
	})
	if err != nil && event != nil && ctx.Err() == nil {
		return true, e.postpone(ctx, event, err)
	}
	return event != nil, err
}

// postpone delays an event that cannot be expanded, so that it does not block others.
func (e *engine) postpone(ctx context.Context, event *ent.NotificationEvent, cause error) error {
	e.log.ErrorContext(ctx, "an event was not expanded into deliveries; it is retried", "deployment_id", event.DeploymentID, "scan_id", event.ScanID, "error", cause)
	return e.store.Write(tenant.NewContext(ctx, event.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		return tx.NotificationEvent.Update().Where(notificationevent.ID(event.ID)).
			SetNotBefore(store.Micros(time.Now().Add(eventRetry))).Exec(ctx)
	})
}

// expandEvent handles the next findings of the event, and the scan itself after the last finding.
func (e *engine) expandEvent(ctx context.Context, tx *ent.Tx, event *ent.NotificationEvent) error {
	rules, err := tx.NotificationRule.Query().Where(notificationrule.IsEnabled(true)).Order(ent.Asc(notificationrule.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	ended, err := tx.Scan.Query().Where(scan.ID(event.ScanID)).Only(ctx)
	switch {
	case ent.IsNotFound(err): // deleted with its project
		return tx.NotificationEvent.DeleteOneID(event.ID).Exec(ctx)
	case err != nil:
		return err
	case len(rules) == 0:
		return tx.NotificationEvent.DeleteOneID(event.ID).Exec(ctx)
	}
	step := payload.MaxFindings * min(max(deliveriesPerStep/len(rules), 1), maxMessagesPerStep)
	told, err := parseTallies(event)
	if err != nil {
		return err
	}
	found, err := newFindings(ctx, tx, event, rules, step)
	if err != nil {
		return err
	}
	about, err := readScanContext(ctx, tx.Client(), ended, found)
	if err != nil {
		return err
	}
	part, err := readBatch(ctx, tx.Client(), about, rules, found)
	if err != nil {
		return err
	}
	made := findingDeliveries(tx, rules, part)
	told.add(rules, part)
	if len(found) == step {
		if err := insertDeliveries(ctx, tx, made); err != nil {
			return err
		}
		return told.keep(tx.NotificationEvent.UpdateOneID(event.ID).SetAfterFindingID(found[len(found)-1].ID)).Exec(ctx)
	}
	digests, err := e.digestDeliveries(ctx, tx, rules, told, about)
	if err != nil {
		return err
	}
	scans, err := scanDeliveries(tx, rules, about)
	if err != nil {
		return err
	}
	held, err := heldDeliveries(ctx, tx, rules, about)
	if err != nil {
		return err
	}
	if err := insertDeliveries(ctx, tx, slices.Concat(made, digests, scans, held)); err != nil {
		return err
	}
	return tx.NotificationEvent.DeleteOneID(event.ID).Exec(ctx)
}

// scanDeliveries builds the message about the scan for the rules that include it.
func scanDeliveries(tx *ent.Tx, rules []*ent.NotificationRule, about *scanContext) ([]*ent.DeliveryCreate, error) {
	var made []*ent.DeliveryCreate
	var body []byte
	for _, rule := range rules {
		if rule.Channel != notificationsv1.Channel_CHANNEL_WEBHOOK.String() || !rule.SendScanCompletion {
			continue
		}
		if body == nil {
			finished, err := about.finishedScan()
			if err != nil {
				return nil, err
			}
			body = payload.ScanFinished(finished)
		}
		made = append(made, newDelivery(tx, rule, about.scan, kindScan, body))
	}
	return made, nil
}

// newDelivery builds a row that is due at once.
func newDelivery(tx *ent.Tx, rule *ent.NotificationRule, about *ent.Scan, kind string, body []byte) *ent.DeliveryCreate {
	return outbox.NewDelivery(tx, rule.DeploymentID, rule.ID, outbox.NewEventID(), kind, body, store.Now()).SetProjectID(about.ProjectID).SetScanID(about.ID)
}

func insertDeliveries(ctx context.Context, tx *ent.Tx, made []*ent.DeliveryCreate) error {
	for part := range slices.Chunk(made, deliveriesPerInsert) {
		if err := tx.Delivery.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}
