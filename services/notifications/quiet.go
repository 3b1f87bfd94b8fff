package notifications

import (
	"context"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/timing"
)

// hush puts off the due deliveries of rules that are in their quiet hours.
func (d *dispatch) hush(ctx context.Context, now time.Time) error {
	for id, rows := range d.waiting {
		rule := d.rules[id]
		if rule == nil {
			continue
		}
		until, quiet := timing.Quiet(rule.quiet, now)
		if !quiet {
			continue
		}
		err := d.engine.store.Write(tenant.NewContext(ctx, rule.deploymentID), func(ctx context.Context, tx *ent.Tx) error {
			return waitUntil(ctx, d.engine.store, tx, id, rows, now, until)
		})
		if err != nil {
			return err
		}
		d.release(id)
	}
	return nil
}

// waitUntil makes all due deliveries of a rule wait, the leased ones and others. The quiet time does not count towards
// the time after which they are given up.
func waitUntil(
	ctx context.Context, st *store.Store, tx *ent.Tx, ruleID int64, leased []*ent.Delivery, now, until time.Time,
) error {
	if err := lockPending(ctx, st, tx, ruleID); err != nil {
		return err
	}
	return tx.Delivery.Update().
		Where(isPending, delivery.RuleID(ruleID), delivery.NextAttemptAtLTE(store.Micros(now)),
			delivery.Or(delivery.LockedUntilLTE(store.Micros(now)), withIDs(leased))).
		SetNextAttemptAt(store.Micros(until)).AddGiveUpAt(until.Sub(now).Microseconds()).SetLockedUntil(0).Exec(ctx)
}
