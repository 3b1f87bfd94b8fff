package notifications

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/notificationevent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

const backlogSQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < CAST(? AS INTEGER) - 1)
INSERT INTO deliveries (deployment_id, rule_id, event_id, kind, project_id, scan_id, payload, state, attempts, next_attempt_at, locked_until,
	give_up_at, last_status, last_error, created_at)
SELECT CAST(? AS BIGINT), CAST(? AS BIGINT) + i %% CAST(? AS INTEGER), 'msg_' || i, '%s', 0, 1 + i, CAST(? AS %s), 'pending', 0, CAST(? AS BIGINT) + i, 0,
	CAST(? AS BIGINT), 0, '', 1 FROM n`

// backlog writes n due deliveries, spread over a number of rules. The functions run before the commit.
func backlog(t *testing.T, st *store.Store, n int, deploymentID, firstRule int64, rules int, kind string, before ...func() error) {
	t.Helper()
	bytes := map[bool]string{true: "bytea", false: "blob"}[st.Postgres()]
	hour := time.Hour.Microseconds()
	err := st.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
		err := st.Exec(ctx, tx, fmt.Sprintf(backlogSQL, kind, bytes), n, deploymentID, firstRule, rules, []byte(`{}`), store.Now()-hour, store.Now()+hour)
		for _, f := range before {
			err = errors.Join(err, f())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// claimed claims once and returns the number of deliveries per rule.
func claimed(t *testing.T, d *dispatch) map[int64]int {
	t.Helper()
	d.claims.notBefore = time.Time{}
	if err := d.claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	of := map[int64]int{}
	for id, rows := range d.waiting {
		of[id] = len(rows)
	}
	return of
}

// While one rule has 100,000 deliveries and its deployment 1,000 rules, other deliveries are claimed at once,
// and no receiver exceeds its limit. No plan scans the ledger, neither with the statistics of an empty table nor
// without any.
func TestClaimTakesTurns(t *testing.T) {
	testrun.Deep(t) // measures the latency of a neighbour
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		if err := st.RefreshStatistics(t.Context()); err != nil {
			t.Fatal(err)
		}
		backlog(t, st, testrun.Size(20_000, 100_000), 1, 1, 1, "workflow")
		backlog(t, st, 5_000, 2, 1001, 1000, "workflow")
		for i := range int64(40) {
			backlog(t, st, 2, 10+i, 5001+i, 1, "workflow")
		}
		one, two := newDispatch(newEngine(st, nil, nil), nil), newDispatch(newEngine(st, nil, nil), nil)
		got, total := claimed(t, one), 0
		for i := range int64(40) {
			if got[5001+i] == 0 {
				t.Errorf("nothing was taken of deployment %d", 10+i)
			}
		}
		many := 0
		for id, n := range got {
			if total += n; id > 1000 && id < 5000 {
				many += n
			}
		}
		if got[1] == 0 || got[1] > maxClaimsOfRule || many == 0 || many > maxClaims/2 || total > maxClaims {
			t.Errorf("%d were taken of the first rule, %d of many rules, %d in all", got[1], many, total)
		}
		others := claimed(t, two)
		for id, rows := range two.waiting {
			for _, row := range rows {
				for _, mine := range one.waiting[id] {
					if mine.ID == row.ID {
						t.Fatalf("two nodes took delivery %d", row.ID)
					}
				}
			}
		}
		if others[1] == 0 {
			t.Error("the second node took nothing of the first rule")
		}
		// Each rule of a deployment gets a turn.
		seen := map[int64]bool{}
		for range 150 {
			for id := range claimed(t, one) {
				seen[id] = true
				one.release(id)
			}
			if err := one.record(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) < 1000 {
			t.Errorf("%d rules had a turn in 150 claims, want all of 1,042", len(seen))
		}
	})
}

// Messages about scans that wait for finding messages do not block others, and are sent after them.
func TestWaitingScansDoNotBlock(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		backlog(t, st, 200, 1, 1, 1, kindScan)
		backlog(t, st, 200, 1, 1, 1, kindFindings) // of the same scans
		behind := seedDelivery(t, st, 1, "workflow", statePending, nil)
		system := tenant.System(t.Context())
		later := store.Now() + time.Hour.Microseconds()
		err := st.Write(system, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Delivery.Update().Where(delivery.Kind(kindFindings)).SetNextAttemptAt(later).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		d := newDispatch(newEngine(st, nil, nil), nil)
		for range 20 {
			claimed(t, d)
		}
		if rows := d.waiting[1]; len(rows) != 1 || rows[0].ID != behind {
			t.Errorf("taken: %v", rows)
		}
		if n := st.Reader.Delivery.Query().Where(delivery.Kind(kindScan), delivery.NextAttemptAt(later)).CountX(system); n != 200 {
			t.Errorf("%d of 200 messages wait until those about findings are due", n)
		}
	})
}

// Claim queries use index scans, regardless of statistics.
func TestClaimPlans(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		if st.Postgres() {
			_, db := st.DB()
			storetest.StopAutovacuum(t, db)
		}
		heads, nextEvent := headsSQL, nextEventSQL
		if st.Postgres() {
			heads, nextEvent = headsPostgresSQL, nextEventPostgresSQL
		}
		refresh := func() error { return st.RefreshStatistics(t.Context()) }
		for _, name := range []string{"never analysed", "one delivery, analysed", "large, analysed before", "large, analysed during the import", "large and analysed"} {
			var err error
			switch {
			case name == "one delivery, analysed":
				backlog(t, st, 1, 1, 1, 1, kindScan)
				err = refresh()
			case name == "large, analysed before":
				backlog(t, st, 20_000, 1, 1, 10, kindScan)
			case name == "large, analysed during the import" && st.Postgres(): // SQLite has one writer
				err = st.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
					_, err := tx.Delivery.Delete().Exec(ctx)
					return err
				})
				backlog(t, st, 20_000, 1, 1, 10, kindScan, refresh) // counts hardly any rows in a large table
			case name == "large and analysed":
				err = refresh()
			}
			if err != nil {
				t.Fatal(err)
			}
			for query, args := range map[string][]any{
				heads:     {0, 0, 32, 1 << 40, 1 << 40, 512},
				windowSQL: {1, 1, store.Now(), store.Now(), 32},
				nextEvent: {0, store.Now()},
			} {
				plan := explain(t, st, query, args)
				if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "SCAN deliveries") || strings.Contains(plan, "SCAN notification_events") ||
					strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort Key") || strings.Contains(plan, "Hash") ||
					strings.Contains(plan, "Join Filter") { // compares every pair of rows
					t.Errorf("%s: %s\n%s", name, query, plan)
				}
			}
		}
	})
}

func explain(t *testing.T, st *store.Store, query string, args []any) string {
	t.Helper()
	prefix := map[bool]string{true: "EXPLAIN ", false: "EXPLAIN QUERY PLAN "}[st.Postgres()]
	var lines []string
	err := newEngine(st, nil, nil).read(t.Context(), func(q querier) error {
		rows, err := q.QueryContext(t.Context(), prefix+st.Placeholders(query), args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var line string
			if st.Postgres() {
				err = rows.Scan(&line)
			} else {
				var id, parent, unused int
				err = rows.Scan(&id, &parent, &unused, &line)
			}
			if err != nil {
				return err
			}
			lines = append(lines, line)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// Deployments take turns when events are expanded; an event held by another node does not block others.
func TestEventsTakeTurns(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		e := newEngine(st, nil, nil)
		system := tenant.System(t.Context())
		add := func(deploymentID, scanID int64) {
			err := st.Write(tenant.NewContext(t.Context(), deploymentID), func(ctx context.Context, tx *ent.Tx) error {
				return tx.NotificationEvent.Create().SetScanID(scanID).SetNotBefore(store.Now()).SetCreatedAt(store.Now()).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range int64(20) { // of deleted scans: such an event is done after its turn
			add(1, i+1)
		}
		add(2, 101)
		add(3, 102)
		add(3, 103)
		left := func(deploymentID int64) int {
			return st.Reader.NotificationEvent.Query().Where(notificationevent.DeploymentID(deploymentID)).CountX(system)
		}
		for range 3 {
			if worked, err := e.expand(t.Context()); !worked || err != nil {
				t.Fatal(worked, err)
			}
		}
		if left(1) != 19 || left(2) != 0 || left(3) != 1 {
			t.Errorf("after three turns %d, %d and %d events are left", left(1), left(2), left(3))
		}
		if st.Postgres() { // another node holds the next one
			_, db := st.DB()
			other, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = other.Rollback() }()
			if _, err := other.ExecContext(t.Context(), "SELECT id FROM notification_events WHERE deployment_id = 1 FOR UPDATE"); err != nil {
				t.Fatal(err)
			}
			if worked, err := e.expand(t.Context()); !worked || err != nil || left(3) != 0 {
				t.Errorf("beside a lock: %v, %v, %d events", worked, err, left(3))
			}
			if worked, err := e.expand(t.Context()); worked || err != nil {
				t.Errorf("only locked ones are left: %v, %v", worked, err)
			}
			return
		}
		for worked := true; worked; {
			var err error
			if worked, err = e.expand(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if left(1)+left(3) != 0 {
			t.Errorf("%d events are left", left(1)+left(3))
		}
	})
}
