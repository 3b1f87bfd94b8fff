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
	"github.com/palisade/palisade/services/notifications/retry"
)

// The states of a delivery.
const (
	statePending   = "pending"
	stateDelivered = "delivered"
	stateAbandoned = "abandoned"
	stateCanceled  = "canceled"
)

// errorLength is how many bytes of an error are kept.
const errorLength = 500

// isPending says in the words of the index what is pending: only so is it used.
func isPending(s *entsql.Selector) {
	s.Where(entsql.IsNull(s.C(delivery.FieldFinishedAt)))
}

// mayBeSent chooses what no node works on, not of the rules named, and no scan before the findings that it brought.
func mayBeSent(now int64, except []int64) predicate.Delivery {
	return func(s *entsql.Selector) {
		findings := entsql.Dialect(s.Dialect()).Table(delivery.Table).As("findings")
		before := entsql.Dialect(s.Dialect()).Select(findings.C(delivery.FieldID)).From(findings).Where(entsql.And(
			entsql.ColumnsEQ(findings.C(delivery.FieldDeploymentID), s.C(delivery.FieldDeploymentID)),
			entsql.ColumnsEQ(findings.C(delivery.FieldScanID), s.C(delivery.FieldScanID)),
			entsql.ColumnsEQ(findings.C(delivery.FieldRuleID), s.C(delivery.FieldRuleID)),
			entsql.EQ(findings.C(delivery.FieldKind), kindFindings),
			entsql.EQ(findings.C(delivery.FieldState), statePending),
		))
		s.Where(entsql.And(
			entsql.LTE(s.C(delivery.FieldLockedUntil), now),
			entsql.Or(entsql.NEQ(s.C(delivery.FieldKind), kindScan), entsql.NotExists(before)),
		))
		if len(except) > 0 {
			s.Where(entsql.Not(store.InIDs(s.C(delivery.FieldRuleID), except)))
		}
	}
}

// claim takes deliveries that are due, the longest first, for leaseTime. Nodes take turns on SQLite, and pass over one
// another's on PostgreSQL.
func (e *engine) claim(ctx context.Context, most int, except []int64) (rows []*ent.Delivery, err error) {
	ctx = tenant.System(ctx)
	due := func() []predicate.Delivery {
		now := store.Now()
		return []predicate.Delivery{isPending, delivery.NextAttemptAtLTE(now), mayBeSent(now, except)}
	}
	// Whoever only looks needs no turn to write.
	if any, err := e.store.Reader.Delivery.Query().Where(due()...).Exist(ctx); err != nil || !any {
		return nil, err
	}
	err = e.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		query := tx.Delivery.Query().Where(due()...).Order(ent.Asc(delivery.FieldNextAttemptAt, delivery.FieldID)).Limit(most)
		if e.store.Postgres() {
			query.ForUpdate(entsql.WithLockAction(entsql.SkipLocked), entsql.WithLockTables(delivery.Table))
		}
		if rows, err = query.All(ctx); err != nil || len(rows) == 0 {
			return err
		}
		until := store.Micros(time.Now().Add(leaseTime))
		for _, row := range rows {
			row.LockedUntil = until
		}
		return tx.Delivery.Update().Where(withIDs(rows)).SetLockedUntil(until).Exec(ctx)
	})
	return rows, err
}

func withIDs(rows []*ent.Delivery) predicate.Delivery {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(delivery.FieldID), ids)) }
}

// nextDue is when the next delivery becomes due; ok is false when none is pending.
func (e *engine) nextDue(ctx context.Context, except []int64) (at time.Time, ok bool, err error) {
	rows, err := e.store.Reader.Delivery.Query().Where(isPending, mayBeSent(store.Now(), except)).
		Order(ent.Asc(delivery.FieldNextAttemptAt, delivery.FieldID)).Limit(1).Select(delivery.FieldNextAttemptAt).All(tenant.System(ctx))
	if err != nil || len(rows) == 0 {
		return time.Time{}, false, err
	}
	return store.Time(rows[0].NextAttemptAt), true, nil
}

// record writes what became of deliveries: most of them in one transaction; one that is given up, which people are told,
// in a transaction of its own deployment.
func (e *engine) record(ctx context.Context, outcomes []outcome) error {
	now := time.Now()
	slices.SortFunc(outcomes, func(a, b outcome) int { return cmp.Compare(a.row.ID, b.row.ID) }) // see lockPending
	var givenUp []outcome
	err := e.store.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		var attempts []*ent.DeliveryAttemptCreate
		untried := map[int64][]*ent.Delivery{} // by lease
		for _, o := range outcomes {
			if !o.sent {
				untried[o.row.LockedUntil] = append(untried[o.row.LockedUntil], o.row)
				continue
			}
			attempts = append(attempts, attemptOf(tx, o))
			switch next, _, again := o.nextAttempt(now); {
			case o.err == nil:
				if err := delivered(ctx, tx, o); err != nil {
					return err
				}
			case again:
				if err := postponed(ctx, tx, o, next); err != nil {
					return err
				}
			default:
				givenUp = append(givenUp, o)
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
		_, reason, _ := o.nextAttempt(now)
		if err := e.giveUp(ctx, []*ent.Delivery{o.row}, int32(o.status), reason, 1); err != nil {
			return err
		}
	}
	return nil
}

func attemptOf(tx *ent.Tx, o outcome) *ent.DeliveryAttemptCreate {
	return tx.DeliveryAttempt.Create().SetDeploymentID(o.row.DeploymentID).SetDeliveryID(o.row.ID).SetStatus(int32(o.status)).
		SetError(cut(describe(o.err).text)).SetDurationUs(o.duration.Microseconds()).SetAt(o.at)
}

// delivered counts whoever sent it: also a node whose time was up, and that of a rule which is still there.
func delivered(ctx context.Context, tx *ent.Tx, o outcome) error {
	return tx.Delivery.Update().Where(delivery.ID(o.row.ID), isPending).SetState(stateDelivered).AddAttempts(1).SetLockedUntil(0).
		SetLastStatus(int32(o.status)).SetLastError("").SetFinishedAt(o.at).Exec(ctx)
}

// postponed changes nothing when another node has the delivery by now.
func postponed(ctx context.Context, tx *ent.Tx, o outcome, next time.Time) error {
	return tx.Delivery.Update().Where(delivery.ID(o.row.ID), isPending, delivery.LockedUntil(o.row.LockedUntil)).AddAttempts(1).SetLockedUntil(0).
		SetLastStatus(int32(o.status)).SetLastError(cut(describe(o.err).text)).SetNextAttemptAt(store.Micros(next)).Exec(ctx)
}

// giveUp abandons deliveries of one rule, which people are told.
func (e *engine) giveUp(ctx context.Context, rows []*ent.Delivery, status int32, reason string, attempts int32) error {
	first := rows[0]
	return e.store.Write(tenant.NewContext(ctx, first.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		err := tx.Delivery.Update().Where(withIDs(rows), isPending).SetState(stateAbandoned).AddAttempts(attempts).SetLockedUntil(0).
			SetLastStatus(status).SetLastError(cut(reason)).SetFinishedAt(now).Exec(ctx)
		if err != nil {
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
		return tellAbandoned(ctx, tx, rule, reason)
	})
}

// giveUpUnreachable abandons what is overdue while its circuit is open: nothing of it is tried any more.
func (e *engine) giveUpUnreachable(ctx context.Context) error {
	for _, ruleID := range e.breakers.openRules() {
		for more := true; more && ctx.Err() == nil; {
			now := store.Now()
			rows, err := e.store.Reader.Delivery.Query().
				Where(isPending, delivery.RuleID(ruleID), delivery.GiveUpAtLTE(now), delivery.LockedUntilLTE(now)).
				Order(ent.Asc(delivery.FieldID)).Limit(recordSize).All(tenant.System(ctx))
			if err != nil || len(rows) == 0 {
				return err
			}
			if err := e.giveUp(ctx, rows, 0, "the receiver failed again and again; given up after "+retry.Patience.String(), 0); err != nil {
				return fmt.Errorf("give up deliveries of rule %d: %w", ruleID, err)
			}
			more = len(rows) == recordSize
		}
	}
	return nil
}

// announceOpened tells people of receivers that keep failing.
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
			return tellOpened(ctx, tx, rule)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lockPending locks what is pending of a rule in the order in which record writes, so that neither waits for the other
// in a ring.
func lockPending(ctx context.Context, st *store.Store, tx *ent.Tx, ruleID int64) error {
	if !st.Postgres() {
		return nil
	}
	_, err := tx.Delivery.Query().Where(isPending, delivery.RuleID(ruleID)).Order(ent.Asc(delivery.FieldID)).ForUpdate().IDs(ctx)
	return err
}

// cancelOf cancels what is pending of a rule that sends no more.
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

// cut shortens an error at the end of a character.
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
