package notifications

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// onEachStore runs a test on both databases, migrated and empty.
func onEachStore(t *testing.T, test func(t *testing.T, st *store.Store)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, o store.Options) { test(t, storetest.Open(t, o)) })
}

// seedDelivery writes a delivery and an attempt.
func seedDelivery(t *testing.T, st *store.Store, deploymentID int64, kind, state string, finishedAt *int64) (id int64) {
	t.Helper()
	err := st.Write(tenant.NewContext(t.Context(), deploymentID), func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		row, err := tx.Delivery.Create().SetRuleID(1).SetEventID("msg_1").SetKind(kind).SetScanID(1).SetPayload([]byte("{}")).SetState(state).
			SetNextAttemptAt(now).SetGiveUpAt(now).SetCreatedAt(now).SetNillableFinishedAt(finishedAt).Save(ctx)
		if err != nil {
			return err
		}
		id = row.ID
		return tx.DeliveryAttempt.Create().SetDeliveryID(row.ID).SetStatus(200).SetError("").SetDurationUs(1).SetAt(now).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestForget(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		limit := time.Now()
		before, after := store.Micros(limit)-1, store.Micros(limit)+1
		for _, deploymentID := range []int64{1, 2} {
			seedDelivery(t, st, deploymentID, kindScan, stateDelivered, &before)
			seedDelivery(t, st, deploymentID, kindScan, stateAbandoned, &before)
			seedDelivery(t, st, deploymentID, kindScan, stateDelivered, &after)
			seedDelivery(t, st, deploymentID, kindScan, statePending, nil)
		}
		if err := deleteDeliveries(t.Context(), st, limit); err != nil {
			t.Fatal(err)
		}
		system := tenant.System(t.Context())
		deliveries, attempts := st.Reader.Delivery.Query().CountX(system), st.Reader.DeliveryAttempt.Query().CountX(system)
		if deliveries != 4 || attempts != 4 {
			t.Errorf("%d deliveries and %d attempts are left, want 4 of each", deliveries, attempts)
		}
	})
}

// Nodes share the work: a node does not take leased deliveries before their lease expires. A scan waits for its
// findings.
func TestClaim(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		findings := seedDelivery(t, st, 1, kindFindings, statePending, nil)
		ofScan := seedDelivery(t, st, 1, kindScan, statePending, nil)
		other := seedDelivery(t, st, 2, kindScan, statePending, nil) // another deployment: does not wait for those findings
		one, two := newEngine(st, nil, nil), newEngine(st, nil, nil)
		claim := func(e *engine) (ids []int64) {
			t.Helper()
			d := newDispatch(e, nil)
			if err := d.claim(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, rows := range d.waiting {
				for _, row := range rows {
					ids = append(ids, row.ID)
				}
			}
			slices.Sort(ids)
			return ids
		}
		if got := claim(one); len(got) != 2 || got[0] != findings || got[1] != other {
			t.Errorf("the first node took %v", got)
		}
		if got := claim(two); got != nil {
			t.Errorf("the second node took %v", got)
		}
		system := tenant.System(t.Context())
		err := st.Write(system, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Delivery.Update().Where(delivery.ID(findings)).SetLockedUntil(store.Now() - 1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := claim(two); len(got) != 1 || got[0] != findings {
			t.Errorf("when the time of the first is up the second takes %v", got)
		}
		err = st.Write(system, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Delivery.Update().Where(delivery.ID(findings)).SetState(stateDelivered).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := claim(one); len(got) != 1 || got[0] != ofScan {
			t.Errorf("after the findings comes %v", got)
		}
	})
}

// A run requested while another works is not lost.
func TestOneRunAtATime(t *testing.T) {
	e := newEngine(nil, nil, nil)
	if !e.enter() || e.enter() || e.enter() {
		t.Error("two runs work")
	}
	if !e.leave() {
		t.Error("the second was forgotten")
	}
	if !e.enter() || e.leave() {
		t.Error("the second was done twice")
	}
}
