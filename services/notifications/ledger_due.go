package notifications

import (
	"context"
	"database/sql"
	"maps"
	"math"
	"slices"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// head is a receiver for which something is pending, and when the first of it is due.
type head struct {
	receiver
	due int64
	n   int // which of its deployment's rules it is in the walk
}

// headsSQL walks from receiver to receiver along the index of what is pending, a step for each, however much it is.
const headsSQL = `WITH RECURSIVE head (deployment_id, rule_id, due, n) AS (
	SELECT deployment_id, rule_id, next_attempt_at, 1 FROM deliveries WHERE id = (
		SELECT id FROM deliveries WHERE finished_at IS NULL AND (deployment_id, rule_id) > (CAST(? AS BIGINT), CAST(? AS BIGINT))
		ORDER BY deployment_id, rule_id, next_attempt_at, id LIMIT 1)
	UNION ALL
	SELECT next.deployment_id, next.rule_id, next.next_attempt_at, CASE WHEN next.deployment_id = head.deployment_id THEN head.n + 1 ELSE 1 END
	FROM head JOIN deliveries AS next ON next.id = (
		SELECT id FROM deliveries
		WHERE finished_at IS NULL AND (deployment_id, rule_id) > (head.deployment_id, CASE WHEN head.n < ? THEN head.rule_id ELSE ? END)
		ORDER BY deployment_id, rule_id, next_attempt_at, id LIMIT 1)
	WHERE next.deployment_id <= ?
) SELECT deployment_id, rule_id, due, n FROM head LIMIT ?`

// querier reads rows with SQL of its own.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// plannedSQL leaves PostgreSQL the plans that step along indexes alone: it knows little of a ledger that was empty a
// moment ago, and a plan that was made then would read all of it.
var plannedSQL = store.PlannerSettings("plan_cache_mode=force_custom_plan", "enable_seqscan=off", "enable_sort=off", "enable_hashjoin=off", "enable_mergejoin=off")

// read reads what the queries of this package walk along.
func (e *engine) read(ctx context.Context, fn func(q querier) error) error {
	db, _ := e.store.DB()
	if !e.store.Postgres() {
		return fn(db)
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	if _, err := tx.ExecContext(ctx, plannedSQL); err != nil {
		return err
	}
	return fn(tx)
}

// heads are the receivers behind one, up to a deployment: so many of each deployment, and so many in all.
func (e *engine) heads(ctx context.Context, q querier, after receiver, until int64, ofEach, most int) (found []head, err error) {
	rows, err := q.QueryContext(ctx, e.store.Placeholders(headsSQL), after.deploymentID, after.ruleID, ofEach, int64(math.MaxInt64), until, most)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var h head
		if err := rows.Scan(&h.deploymentID, &h.ruleID, &h.due, &h.n); err != nil {
			return nil, err
		}
		if h.deploymentID <= until { // the first one may be behind it
			found = append(found, h)
		}
	}
	return found, rows.Err()
}

// waitingRow is a message that is due; behind is when the last message about its findings is, for one about a scan.
type waitingRow struct {
	id, nextAttemptAt int64
	behind            *int64
}

// windowSQL reads the first messages of a rule that are due and that no node has. What is added to the columns of the
// subquery changes nothing but the plan: the only index left for it is the one of the scan, whatever PostgreSQL knows
// of the table.
const windowSQL = `SELECT d.id, d.next_attempt_at, CASE WHEN d.kind = 'scan' THEN (
		SELECT MAX(f.next_attempt_at + 0) FROM deliveries AS f
		WHERE f.deployment_id = d.deployment_id AND f.scan_id = d.scan_id AND f.rule_id = d.rule_id AND f.kind = 'findings' AND f.state || '' = 'pending'
	) END
	FROM deliveries AS d
	WHERE d.deployment_id = ? AND d.rule_id = ? AND d.finished_at IS NULL AND d.next_attempt_at <= ? AND d.locked_until <= ?
	ORDER BY d.next_attempt_at, d.id LIMIT ?`

// window reads what of a rule may be sent now. A message about a scan waits for those about its findings, and is put
// off until then: behind them in the index it stands in nobody's way.
func (e *engine) window(ctx context.Context, q querier, of receiver, now int64) (ready []int64, putOff map[int64]int64, err error) {
	rows, err := q.QueryContext(ctx, e.store.Placeholders(windowSQL), of.deploymentID, of.ruleID, now, now, windowSize)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = rows.Close() }()
	putOff = map[int64]int64{}
	for rows.Next() {
		var row waitingRow
		if err := rows.Scan(&row.id, &row.nextAttemptAt, &row.behind); err != nil {
			return nil, nil, err
		}
		switch {
		case row.behind == nil:
			ready = append(ready, row.id)
		case *row.behind > row.nextAttemptAt:
			putOff[row.id] = *row.behind
		}
	}
	return ready, putOff, rows.Err()
}

// take takes deliveries for leaseTime; others are put off. Nodes take turns on SQLite, and pass over one another's on
// PostgreSQL.
func (e *engine) take(ctx context.Context, ids []int64, putOff map[int64]int64) (rows []*ent.Delivery, err error) {
	if len(ids) == 0 && len(putOff) == 0 {
		return nil, nil
	}
	err = e.store.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		now := store.Now()
		for _, id := range slices.Sorted(maps.Keys(putOff)) { // see lockPending
			err := tx.Delivery.Update().Where(delivery.ID(id), isPending, delivery.LockedUntilLTE(now)).SetNextAttemptAt(putOff[id]).Exec(ctx)
			if err != nil {
				return err
			}
		}
		query := tx.Delivery.Query().Where(store.WithIDs[func(*entsql.Selector)](ids), isPending, delivery.NextAttemptAtLTE(now), delivery.LockedUntilLTE(now)).
			Order(ent.Asc(delivery.FieldNextAttemptAt, delivery.FieldID))
		if e.store.Postgres() {
			query.ForUpdate(entsql.WithLockAction(entsql.SkipLocked))
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
	if err != nil {
		return nil, err
	}
	return rows, nil
}
