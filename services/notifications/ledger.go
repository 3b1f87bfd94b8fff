package notifications

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/retry"
)

// The states of a delivery.
const (
	statePending   = outbox.Pending
	stateDelivered = "delivered"
	stateAbandoned = "abandoned"
	stateCanceled  = "canceled"
)

// errorLength is the maximum length of a stored error, in bytes.
const errorLength = 500

// isPending must repeat the partial index's condition literally: otherwise the index is not used.
func isPending(s *entsql.Selector) {
	s.Where(entsql.IsNull(s.C(delivery.FieldFinishedAt)))
}

func withIDs(rows []*ent.Delivery) predicate.Delivery {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(delivery.FieldID), ids)) }
}

// record writes the outcomes of deliveries. Most share one transaction. An abandoned delivery also creates a
// notification, so it has a transaction in its own deployment.
func (e *engine) record(ctx context.Context, outcomes []outcome) error {
	now := time.Now()
	slices.SortFunc(outcomes, func(a, b outcome) int { return cmp.Compare(a.row.ID, b.row.ID) }) // see lockPending
	var givenUp []outcome
	err := e.store.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		var attempts []*ent.DeliveryAttemptCreate
		givenUp = nil
		untried := map[int64][]*ent.Delivery{} // by lease
		for _, o := range outcomes {
			if !o.sent {
				untried[o.row.LockedUntil] = append(untried[o.row.LockedUntil], o.row)
				continue
			}
			attempts = append(attempts, attemptOf(tx, o))
			var err error
			switch state, reason, ended := o.ended(now); {
			case state == stateDelivered:
				err = delivered(ctx, tx, o, reason)
			case ended:
				givenUp = append(givenUp, o)
			default:
				err = postponed(ctx, tx, o, o.nextAttempt(now))
			}
			if err != nil {
				return err
			}
		}
		for lease, rows := range untried {
			if err := tx.Delivery.Update().Where(withIDs(rows), isPending, delivery.LockedUntil(lease)).SetLockedUntil(0).Exec(ctx); err != nil {
				return err
			}
		}
		for part := range slices.Chunk(attempts, store.RowsAtOnce) {
			if err := tx.DeliveryAttempt.CreateBulk(part...).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, o := range givenUp {
		_, reason, _ := o.ended(now)
		if err := e.abandon(ctx, []*ent.Delivery{o.row}, int32(o.status), reason, 1, o.received()); err != nil {
			// Continue with other deployments. This delivery is retried when its lease expires.
			e.log.ErrorContext(ctx, "a failed delivery could not be marked as abandoned", "deployment_id", o.row.DeploymentID, "delivery_id", o.row.ID, "error", err)
		}
	}
	e.noteRecipients(ctx, outcomes)
	return nil
}

func attemptOf(tx *ent.Tx, o outcome) *ent.DeliveryAttemptCreate {
	return tx.DeliveryAttempt.Create().SetDeploymentID(o.row.DeploymentID).SetDeliveryID(o.row.ID).SetStatus(int32(o.status)).
		SetError(cut(describe(o.err).text)).SetDurationUs(o.duration.Microseconds()).SetAt(o.at)
}

// delivered records a success from any sender, also from a node with an expired lease, if the rule still exists.
// refused is the text about refused recipients.
func delivered(ctx context.Context, tx *ent.Tx, o outcome, refused string) error {
	return tx.Delivery.Update().Where(delivery.ID(o.row.ID), isPending).SetState(stateDelivered).AddAttempts(1).SetLockedUntil(0).
		SetLastStatus(int32(o.status)).SetLastError(cut(refused)).SetFinishedAt(o.at).ClearDeliveredTo().Exec(ctx)
}

// postponed does nothing if another node has taken the delivery.
func postponed(ctx context.Context, tx *ent.Tx, o outcome, next time.Time) error {
	update := tx.Delivery.Update().Where(delivery.ID(o.row.ID), isPending, delivery.LockedUntil(o.row.LockedUntil)).AddAttempts(1).SetLockedUntil(0).
		SetLastStatus(int32(o.status)).SetLastError(cut(describe(o.err).text)).SetNextAttemptAt(store.Micros(next))
	if have := o.received(); len(have) > 0 {
		update.SetDeliveredTo(have)
	}
	return update.Exec(ctx)
}

// abandon abandons deliveries of one rule and notifies administrators. deliveredTo lists the recipients that have the
// message.
func (e *engine) abandon(ctx context.Context, rows []*ent.Delivery, status int32, reason string, attempts int32, deliveredTo []string) error {
	first := rows[0]
	return e.store.Write(tenant.NewContext(ctx, first.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		update := tx.Delivery.Update().Where(withIDs(rows), isPending).SetState(stateAbandoned).AddAttempts(attempts).SetLockedUntil(0).
			SetLastStatus(status).SetLastError(cut(reason)).SetFinishedAt(now)
		if len(deliveredTo) > 0 {
			update.SetDeliveredTo(deliveredTo)
		}
		if err := update.Exec(ctx); err != nil {
			return err
		}
		for _, row := range rows {
			before := *row
			row.State, row.Attempts, row.LastStatus, row.LastError, row.FinishedAt = stateAbandoned, row.Attempts+attempts, status, cut(reason), &now
			audit.Change(ctx, "delivery", row.ID, convertDelivery(&before), convertDelivery(row))
		}
		rule, err := tx.NotificationRule.Query().Where(notificationrule.ID(first.RuleID)).Only(ctx)
		if err != nil {
			return ignoreNotFound(err)
		}
		return notifyAbandoned(ctx, tx, rule, reason)
	})
}

// abandonUnreachable abandons overdue deliveries with an open circuit, because they are not retried any more.
func (e *engine) abandonUnreachable(ctx context.Context) error {
	for _, of := range e.breakers.openEndpoints() {
		for more := true; more && ctx.Err() == nil; {
			now := store.Now()
			rows, err := e.store.Reader.Delivery.Query().
				Where(delivery.DeploymentID(of.deploymentID), delivery.RuleID(of.ruleID), isPending, delivery.NextAttemptAtLTE(now),
					delivery.GiveUpAtLTE(now), delivery.LockedUntilLTE(now)).
				Order(ent.Asc(delivery.FieldNextAttemptAt, delivery.FieldID)).Limit(recordSize).All(tenant.System(ctx))
			if err != nil {
				return err
			}
			if more = len(rows) == recordSize; len(rows) == 0 {
				continue
			}
			if err := e.abandon(ctx, rows, 0, "the receiver failed again and again; given up after "+retry.GiveUpAfter.String(), 0, nil); err != nil {
				return fmt.Errorf("give up deliveries of rule %d: %w", of.ruleID, err)
			}
		}
	}
	return nil
}

// announceOpened notifies administrators of receivers that keep failing.
func (e *engine) announceOpened(ctx context.Context) error {
	for _, opened := range e.breakers.takeOpened() {
		rule, err := e.store.Reader.NotificationRule.Query().Where(notificationrule.ID(opened.ruleID)).Only(tenant.System(ctx))
		if ent.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = e.store.Write(tenant.NewContext(ctx, rule.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			return notifyOpened(ctx, tx, rule)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lockPending locks the pending deliveries of rules in the write order of record, so that the two cannot
// deadlock.
func lockPending(ctx context.Context, st *store.Store, tx *ent.Tx, rules ...int64) error {
	if !st.Postgres() {
		return nil
	}
	_, err := tx.Delivery.Query().Where(isPending, store.OneOf(delivery.FieldRuleID, rules)).Order(ent.Asc(delivery.FieldID)).ForUpdate().IDs(ctx)
	return err
}

// cancelOf cancels the pending deliveries of a deleted or disabled rule.
func cancelOf(ctx context.Context, st *store.Store, tx *ent.Tx, ruleID int64) error {
	if err := lockPending(ctx, st, tx, ruleID); err != nil {
		return err
	}
	return tx.Delivery.Update().Where(isPending, delivery.RuleID(ruleID)).SetState(stateCanceled).SetLockedUntil(0).SetFinishedAt(store.Now()).Exec(ctx)
}

func ignoreNotFound(err error) error {
	if ent.IsNotFound(err) {
		return nil
	}
	return err
}

// cut truncates an error at a character boundary.
func cut(text string) string {
	if len(text) <= errorLength {
		return text
	}
	end := errorLength
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end] + "…"
}
