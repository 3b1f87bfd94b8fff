package apitest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
)

// Queries is an ent driver that records its queries, also inside transactions.
type Queries struct {
	beginner
	which func(query string) bool
	mu    sync.Mutex
	seen  []Statement
}

// beginner is a Reader's driver.
type beginner interface {
	dialect.Driver
	BeginTx(ctx context.Context, options *sql.TxOptions) (dialect.Tx, error)
}

// OpenRecorded opens the database of a server a second time, and records the chosen queries of its Reader.
func OpenRecorded(t testing.TB, s *Server, which func(query string) bool) (*store.Store, *Queries) {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{DataDir: s.Config.Data, Database: s.Config.Database, MaxOpen: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	reader, _ := st.DB()
	seen := &Queries{beginner: store.ReaderDriver(entsql.OpenDB(st.Dialect(), reader)).(beginner), which: which}
	st.Reader = ent.NewClient(ent.Driver(seen))
	return st, seen
}

// Take returns the queries since the last Take.
func (q *Queries) Take() []Statement {
	q.mu.Lock()
	defer q.mu.Unlock()
	seen := q.seen
	q.seen = nil
	return seen
}

// Query records the query and runs it.
func (q *Queries) Query(ctx context.Context, query string, args, into any) error {
	q.keep(query, args)
	return q.beginner.Query(ctx, query, args, into)
}

// BeginTx begins a transaction and records its queries.
func (q *Queries) BeginTx(ctx context.Context, options *sql.TxOptions) (dialect.Tx, error) {
	tx, err := q.beginner.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return recordedTx{tx.(*entsql.Tx), q}, nil
}

func (q *Queries) keep(query string, args any) {
	if list, ok := args.([]any); ok && q.which(query) {
		q.mu.Lock()
		q.seen = append(q.seen, Statement{Text: query, Args: list})
		q.mu.Unlock()
	}
}

type recordedTx struct {
	*entsql.Tx
	queries *Queries
}

// Query records the query and runs it.
func (t recordedTx) Query(ctx context.Context, query string, args, into any) error {
	t.queries.keep(query, args)
	return t.Tx.Query(ctx, query, args, into)
}

// Querier is a pool, a connection or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Explain returns the plan of a statement as text, with the current statistics. options, such as "ANALYZE, TIMING OFF",
// apply to PostgreSQL.
func Explain(t testing.TB, st *store.Store, in Querier, statement Statement, options ...string) string {
	t.Helper()
	if !st.Postgres() {
		if pool, is := in.(*sql.DB); is { // the next statements need the same connection
			conn, err := pool.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			in = conn
		}
		readSchemaAgain(t, in)
	}
	explain := "EXPLAIN QUERY PLAN "
	if st.Postgres() {
		explain = "EXPLAIN "
		if len(options) > 0 {
			explain += "(" + strings.Join(options, ", ") + ") "
		}
	}
	rows, err := in.QueryContext(t.Context(), explain+statement.Text, statement.Args...)
	if err != nil {
		t.Fatalf("%s: %v", statement.Text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new(any)
	}
	var plan strings.Builder
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&plan, *values[len(values)-1].(*any)) // the last column has the plan's line on both databases
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}

// readSchemaAgain makes a connection to SQLite read schema and statistics again if they have changed. A statement does
// that when it runs. EXPLAIN QUERY PLAN runs nothing, so it would show the plan for statistics that the connection read
// at some time before, or for none.
func readSchemaAgain(t testing.TB, in Querier) {
	t.Helper()
	rows, err := in.QueryContext(t.Context(), "SELECT COUNT(*) FROM sqlite_schema")
	if err == nil {
		rows.Next()
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
