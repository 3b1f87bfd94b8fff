package snapshots

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/internal/store"
)

// loader reads the columns of one deployment. It uses plain SQL instead of ent, because it reads a million rows for one
// number. No tenant policy applies, so each statement names the deployment. Filters apply the caller's visibility
// later.
type loader struct {
	store        *store.Store
	deploymentID int64
}

// facts is the SQL expression that packs the facts of a finding.
var facts = columns.FactsSQL()

// row is a finding without its history.
type row struct {
	id, project, rule int64
	ref               sql.RawBytes
	facts             columns.Facts
	since             int64
}

// transition is the SQL expression that packs a status change and its time.
var transition = columns.TransitionSQL()

// event is a status change.
type event struct {
	finding int64
	columns.Transition
}

// all reads all findings and their histories into a new snapshot, both concurrently.
func (l loader) all(ctx context.Context, table *columns.Table) (*columns.Snapshot, error) {
	reading, readCtx := errgroup.WithContext(ctx)
	rows := readBatches(readCtx, reading, func(give func(columns.Row) error) error { return l.allFindings(readCtx, table, give) })
	history := readBatches(readCtx, reading, func(give func(event) error) error { return l.allEvents(readCtx, give) })
	snapshot := table.Build(joined(rows, history))
	for history.peek() != nil { // events of findings inserted after the last one read: they are read again
		history.batch = nil
	}
	return snapshot, reading.Wait()
}

func (l loader) allFindings(ctx context.Context, table *columns.Table, give func(columns.Row) error) error {
	if l.store.Postgres() {
		return l.findings(ctx, table, "", nil, give)
	}
	return l.packedFindings(ctx, table, give)
}

func (l loader) allEvents(ctx context.Context, give func(event) error) error {
	if l.store.Postgres() {
		return l.events(ctx, "", nil, give)
	}
	return l.packedEvents(ctx, give)
}

// some reads findings with their histories by id.
func (l loader) some(ctx context.Context, table *columns.Table, ids []int64) (found []columns.Row, err error) {
	in, idArgs := l.store.InIDs(ids)
	var rows cursor[columns.Row]
	if err := l.findings(ctx, table, " AND id"+in, idArgs, rows.add); err != nil {
		return nil, err
	}
	var history cursor[event]
	if err := l.events(ctx, " AND finding_id"+in, idArgs, history.add); err != nil {
		return nil, err
	}
	next := joined(&rows, &history)
	for r, ok := next(); ok; r, ok = next() {
		r.Transitions = slices.Clone(r.Transitions)
		found = append(found, r)
	}
	return found, nil
}

func (l loader) findings(ctx context.Context, table *columns.Table, condition string, args []any, give func(columns.Row) error) error {
	query := "SELECT id, project_id, rule_id, ref, relevant_since, " + facts + " FROM findings WHERE deployment_id = ?" + condition + " ORDER BY id"
	rows, err := l.query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read findings for columns: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var r row
	var place uint32
	var project int64
	var ref []byte
	for known := false; rows.Next(); known = true {
		if err := rows.Scan(&r.id, &r.project, &r.rule, &r.ref, &r.since, &r.facts); err != nil {
			return err
		}
		// Consecutive rows are mostly of one scan.
		if !known || r.project != project || !bytes.Equal(r.ref, ref) {
			project, ref = r.project, bytes.Clone(r.ref)
			place = table.Place(project, string(ref))
		}
		kind, attr := table.Kind(r.facts)
		if err := give(columns.Row{ID: r.id, Place: place, Rule: table.Rule(r.rule), Kind: kind, Attr: attr, Since: r.since}); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (l loader) events(ctx context.Context, condition string, args []any, give func(event) error) error {
	query := "SELECT finding_id, " + transition + " FROM finding_events WHERE deployment_id = ?" + condition + " ORDER BY finding_id, id"
	rows, err := l.query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read events for columns: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var finding, packed int64
	for rows.Next() {
		if err := rows.Scan(&finding, &packed); err != nil {
			return err
		}
		if err := give(event{finding, columns.TransitionOf(packed)}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// query runs a statement with the deployment as its first parameter.
func (l loader) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	args = append([]any{l.deploymentID}, args...)
	reader, _ := l.store.DB()
	return reader.QueryContext(ctx, l.store.Placeholders(query), args...)
}

// changed is an event that the snapshot may not contain yet.
type changed struct{ id, finding int64 }

// since reads the deployment's events with higher ids.
func (l loader) since(ctx context.Context, id int64) (list []changed, err error) {
	reader, _ := l.store.DB()
	// Scan the primary key across tenants: no index has the deployment and then the id. The new events of all deployments,
	// at most rebuildThreshold or the number of findings in the snapshot, are fewer than all events of one. The sum keeps
	// the planner from using an index by deployment.
	query := l.store.Placeholders("SELECT id, finding_id FROM finding_events WHERE id > ? AND deployment_id + 0 = ?")
	rows, err := reader.QueryContext(ctx, query, id, l.deploymentID)
	if err != nil {
		return nil, fmt.Errorf("read new events for columns: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var c changed
		if err := rows.Scan(&c.id, &c.finding); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, rows.Err()
}

// count is the number of the deployment's events with ids up to highest.
func (l loader) count(ctx context.Context, highest int64) (n int64, err error) {
	reader, _ := l.store.DB()
	query := l.store.Placeholders("SELECT COUNT(*) FROM finding_events WHERE deployment_id = ? AND id <= ?")
	if err := reader.QueryRowContext(ctx, query, l.deploymentID, highest).Scan(&n); err != nil {
		return 0, fmt.Errorf("count events for columns: %w", err)
	}
	return n, nil
}
