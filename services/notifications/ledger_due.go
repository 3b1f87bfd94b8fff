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

// head is a receiver with pending deliveries, and the time when the first is due.
type head struct {
	receiver
	due int64
	n   int // position among the rules of its deployment
}

// headsSQL is a skip scan over the index of pending deliveries: one step per receiver for any number of deliveries.
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

// headsPostgresSQL is headsSQL in the only form that PostgreSQL plans the same with any statistics. An ANALYZE during
// a large import counts hardly any rows in a large table. Then PostgreSQL joins head with all deliveries of another
// index, which takes seconds for a hundred thousand. A lateral subquery with a limit cannot be planned as such a join.
const headsPostgresSQL = `WITH RECURSIVE head (deployment_id, rule_id, due, n) AS (
	(SELECT deployment_id, rule_id, next_attempt_at, 1 FROM deliveries
		WHERE finished_at IS NULL AND (deployment_id, rule_id) > (CAST(? AS BIGINT), CAST(? AS BIGINT))
		ORDER BY deployment_id, rule_id, next_attempt_at, id LIMIT 1)
	UNION ALL
	SELECT next.deployment_id, next.rule_id, next.next_attempt_at, CASE WHEN next.deployment_id = head.deployment_id THEN head.n + 1 ELSE 1 END
	FROM head CROSS JOIN LATERAL (
		SELECT deployment_id, rule_id, next_attempt_at FROM deliveries
		WHERE finished_at IS NULL AND (deployment_id, rule_id) > (head.deployment_id, CASE WHEN head.n < ? THEN head.rule_id ELSE ? END)
		ORDER BY deployment_id, rule_id, next_attempt_at, id LIMIT 1) AS next
	WHERE next.deployment_id <= ?
) SELECT deployment_id, rule_id, due, n FROM head LIMIT ?`

// querier runs hand-written SQL.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// plannedSQL makes PostgreSQL use index scans only. Its statistics may be from a moment when the ledger was empty, and
// a plan made then would read the whole table.
var plannedSQL = store.PlannerSettings("plan_cache_mode=force_custom_plan", "enable_seqscan=off", "enable_sort=off", "enable_hashjoin=off", "enable_mergejoin=off")

// read runs fn with the settings of plannedSQL on PostgreSQL.
func (e *engine) read(ctx context.Context, fn func(q querier) error) error {
	db, _ := e.store.DB()
	if !e.store.Postgres() {
		return fn(db)
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // read-only
	if _, err := tx.ExecContext(ctx, plannedSQL); err != nil {
		return err
	}
	return fn(tx)
}

// heads returns the receivers after one, up to a deployment: at most ofEach per deployment, and most in total.
func (e *engine) heads(ctx context.Context, q querier, after receiver, until int64, ofEach, most int) (found []head, err error) {
	query := headsSQL
	if e.store.Postgres() {
		query = headsPostgresSQL
	}
	rows, err := q.QueryContext(ctx, e.store.Placeholders(query), after.deploymentID, after.ruleID, ofEach, int64(math.MaxInt64), until, most)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var h head
		if err := rows.Scan(&h.deploymentID, &h.ruleID, &h.due, &h.n); err != nil {
			return nil, err
		}
		if h.deploymentID <= until { // the first row may be above the bound
			found = append(found, h)
		}
	}
	return found, rows.Err()
}

// waitingRow is a due delivery. For a scan message, behind is the latest due time of the messages about its findings.
type waitingRow struct {
	id, nextAttemptAt int64
	findingsDue       *int64
}

// windowSQL reads a rule's first due deliveries that no node has leased. The expressions (+ 0, || ”) in the subquery
// affect only the plan: they leave the scan's index as the only choice, regardless of PostgreSQL's statistics.
const windowSQL = `SELECT d.id, d.next_attempt_at, CASE WHEN d.kind = 'scan' THEN (
		SELECT MAX(f.next_attempt_at + 0) FROM deliveries AS f
		WHERE f.deployment_id = d.deployment_id AND f.scan_id = d.scan_id AND f.rule_id = d.rule_id AND f.kind = 'findings' AND f.state || '' = 'pending'
	) END
	FROM deliveries AS d
	WHERE d.deployment_id = ? AND d.rule_id = ? AND d.finished_at IS NULL AND d.next_attempt_at <= ? AND d.locked_until <= ?
	ORDER BY d.next_attempt_at, d.id LIMIT ?`

// window returns the deliveries of a rule that may be sent now. A scan message must follow the messages about its
// findings. It is postponed to their due time, so that it does not block the front of the index.
func (e *engine) window(ctx context.Context, q querier, of receiver, now int64) (ready []int64, putOff map[int64]int64, err error) {
	rows, err := q.QueryContext(ctx, e.store.Placeholders(windowSQL), of.deploymentID, of.ruleID, now, now, windowSize)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = rows.Close() }()
	putOff = map[int64]int64{}
	for rows.Next() {
		var row waitingRow
		if err := rows.Scan(&row.id, &row.nextAttemptAt, &row.findingsDue); err != nil {
			return nil, nil, err
		}
		switch {
		case row.findingsDue == nil:
			ready = append(ready, row.id)
		case *row.findingsDue > row.nextAttemptAt:
			putOff[row.id] = *row.findingsDue
		}
	}
	return ready, putOff, rows.Err()
}

// take leases deliveries for leaseTime and postpones others. Nodes are serialized on SQLite, and skip each other's
// locked rows on PostgreSQL.
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
