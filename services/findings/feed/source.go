package feed

import (
	"context"
	"fmt"
	"math"
	"strconv"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// source reads events. Its contexts have a deployment and no limit to teams: what is read is shared by all watchers.
type source struct{ store *store.Store }

// head reads the position behind all visible events. A later head contains everything that an earlier one does.
func (s source) head(ctx context.Context) (position, error) {
	if !s.store.Postgres() {
		var at position
		// The highest id that was ever assigned: the events with higher ids than the remaining ones may be deleted.
		err := s.store.ReadRow(ctx, "SELECT COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'finding_events'), 0)", nil, &at.id)
		return at, err
	}
	var text string
	if err := s.store.ReadRow(ctx, "SELECT CAST(pg_current_snapshot() AS text)", nil, &text); err != nil {
		return position{}, err
	}
	seen, err := parseSnapshot(text)
	return position{seen: seen}, err
}

// adopt removes transaction numbers that this PostgreSQL cluster has not assigned yet: the events came with a dump of
// another cluster. They then count as events from before the numbers.
func (s source) adopt(ctx context.Context) error {
	deploymentID, _ := tenant.FromContext(ctx)
	if !s.store.Postgres() {
		return nil
	}
	return s.store.ExecOutside(ctx, `UPDATE finding_events SET tx = NULL
		WHERE deployment_id = $1 AND tx >= CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)`, deploymentID)
}

// system identifies the PostgreSQL cluster. It is 0 on SQLite, and where the function is forbidden.
func (s source) system(ctx context.Context) (uint64, error) {
	if !s.store.Postgres() {
		return 0, nil
	}
	var text string
	err := s.store.ReadRow(ctx, `SELECT CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE')
		THEN (SELECT CAST(system_identifier AS text) FROM pg_control_system()) ELSE '0' END`, nil, &text)
	if err != nil {
		return 0, fmt.Errorf("identify the database cluster: %w", err)
	}
	return strconv.ParseUint(text, 10, 64)
}

// read returns up to limit events between from and head, in the order of positions, and the position behind them. It
// has reached head when that equals head.
func (s source) read(ctx context.Context, from, head position, limit int) ([]*ent.FindingEvent, position, error) {
	if !head.numbered() {
		rows, err := s.unnumbered(ctx, from.id, head.id, limit)
		return rows, behind(rows, limit, from, head), err
	}
	if !from.numbered() {
		rows, err := s.unnumbered(ctx, from.id, math.MaxInt64, limit)
		return rows, behind(rows, limit, from, position{target: head.seen}), err
	}
	if from.whole() {
		from.target = head.seen
	}
	rows, err := s.numbered(ctx, from, limit)
	return rows, behind(rows, limit, from, from.end()), err
}

// behind is the position behind a page: its last event, or the end of the range if the page is not full.
func behind(rows []*ent.FindingEvent, limit int, from, end position) position {
	if len(rows) < limit {
		return end
	}
	return from.after(rows[limit-1])
}

// unnumbered reads events without a transaction number, by id up to the highest. The order has the columns of the
// index.
func (s source) unnumbered(ctx context.Context, after, highest int64, limit int) ([]*ent.FindingEvent, error) {
	return s.store.Reader.FindingEvent.Query().
		Where(findingevent.TxIsNil(), findingevent.IDGT(after), findingevent.IDLTE(highest)).
		Order(ent.Asc(findingevent.FieldTx, findingevent.FieldID)).Limit(limit).All(ctx)
}

// numbered reads events of the transactions that the target contains and seen does not, by transaction and id.
func (s source) numbered(ctx context.Context, from position, limit int) (rows []*ent.FindingEvent, err error) {
	if late := from.seen.ended(from.target); len(late) > 0 && from.tx < from.seen.next {
		rows, err = s.transactions(ctx, from, limit, store.OneOf(findingevent.FieldTx, late))
		if err != nil || len(rows) == limit {
			return rows, err
		}
	}
	since := []func(*entsql.Selector){findingevent.TxGTE(from.seen.next), findingevent.TxLT(from.target.next)}
	if len(from.target.open) > 0 {
		since = append(since, store.NoneOf(findingevent.FieldTx, from.target.open))
	}
	more, err := s.transactions(ctx, from, limit-len(rows), since...)
	return append(rows, more...), err
}

func (s source) transactions(ctx context.Context, from position, limit int, which ...func(*entsql.Selector)) ([]*ent.FindingEvent, error) {
	query := s.store.Reader.FindingEvent.Query()
	for _, condition := range which {
		query.Where(condition)
	}
	if from.tx > 0 {
		query.Where(func(sel *entsql.Selector) {
			sel.Where(entsql.CompositeGT([]string{sel.C(findingevent.FieldTx), sel.C(findingevent.FieldID)}, from.tx, from.txEvent))
		})
	}
	return query.Order(ent.Asc(findingevent.FieldTx, findingevent.FieldID)).Limit(limit).All(ctx)
}
