package store

import (
	"context"
	"database/sql"
	"net/url"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/pgtest"
)

// withParameter adds a parameter to a database URL.
func withParameter(t *testing.T, database, name, value string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	values := u.Query()
	values.Set(name, value)
	u.RawQuery = values.Encode()
	return u.String()
}

// TestPostgresSettings: connections for requests have timeouts and connections for long queries have none. Neither
// uses jit. Settings in the URL win. With a pooler in the URL no settings are sent, because a pooler would refuse
// them.
func TestPostgresSettings(t *testing.T) {
	t.Parallel()
	database := pgtest.NewDatabase(t)
	for _, c := range []struct{ name, database, calls, longQuery string }{
		{"default", database, "5min 5min off", "0 0 off"},
		{"own", withParameter(t, withParameter(t, database, "statement_timeout", "7000"), "jit", "on"), "7s 5min on", "7s 0 on"},
		{"pooler", withParameter(t, database, "default_query_exec_mode", "exec"), "0 0 on", "0 0 on"},
		{"simple pooler", withParameter(t, database, "default_query_exec_mode", "simple_protocol"), "0 0 on", "0 0 on"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := open(t, Options{Database: c.database})
			for pool, want := range map[*sql.DB]string{st.readerDB: c.calls, st.longQueryDB: c.longQuery} {
				var settings string
				err := pool.QueryRowContext(t.Context(), "SELECT concat_ws(' ', current_setting('statement_timeout'), "+
					"current_setting('idle_in_transaction_session_timeout'), current_setting('jit'))").Scan(&settings)
				if err != nil || settings != want {
					t.Errorf("timeout of statements, of idle transactions, jit: %s, %v; want %s", settings, err, want)
				}
			}
		})
	}
}

// TestPostgresWithoutPreparedStatements: Write works in the query modes that poolers need.
func TestPostgresWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol"} {
		st := open(t, Options{Database: withParameter(t, pgtest.NewDatabase(t), "default_query_exec_mode", mode)})
		if _, err := st.Migrate(t.Context()); err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		ctx := tenant.System(t.Context())
		err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { return insertPair(ctx, st, tx, mode, false) })
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if n := st.Reader.Setting.Query().CountX(ctx); n != 2 {
			t.Errorf("%s: %d rows, want 2", mode, n)
		}
		var prepared int
		if err := st.readerDB.QueryRowContext(ctx, "SELECT COUNT(*) FROM pg_prepared_statements").Scan(&prepared); err != nil || prepared != 0 {
			t.Errorf("%s: %d prepared statements, %v", mode, prepared, err)
		}
	}
}

// TestWritesLeaveConnectionsToReads: transactions that also read outside themselves never hold all connections, so
// they cannot deadlock.
func TestWritesLeaveConnectionsToReads(t *testing.T) {
	t.Parallel()
	st := open(t, Options{Database: pgtest.NewDatabase(t), MaxOpen: 3})
	ctx, cancel := context.WithTimeout(tenant.System(t.Context()), time.Minute)
	defer cancel()
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			return st.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
				time.Sleep(50 * time.Millisecond) // let the other transactions arrive
				return st.Ping(ctx)
			})
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := st.Waiting(); n != 0 {
		t.Errorf("%d transactions wait, and all have ended", n)
	}
}

// TestKeepSession: while the pools close connections, at least one visible session exists at any time.
func TestKeepSession(t *testing.T) {
	t.Parallel()
	database := pgtest.NewDatabase(t)
	st := open(t, Options{Database: database})
	for _, pool := range []*sql.DB{st.readerDB, st.longQueryDB} {
		pool.SetConnMaxIdleTime(time.Nanosecond)
		pool.SetConnMaxLifetime(time.Nanosecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		st.KeepSession(ctx, time.Millisecond)
	}()
	watch, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	sessions := func() (n int) {
		query := "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1)"
		if err := watch.QueryRowContext(t.Context(), query, SessionName).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	until := func(what string, yes func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !yes(); <-time.After(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not within a minute: %s", what)
			}
		}
	}
	closed := func() int64 {
		stats := st.longQueryDB.Stats()
		return stats.MaxIdleTimeClosed + stats.MaxLifetimeClosed
	}
	until("there is a session", func() bool { return sessions() > 0 })
	until("many were closed", func() bool {
		// pg_stat_activity reads backend by backend. It can miss the new session in a slot that it has passed, and
		// also the old session in a later slot.
		seen := 0
		for range 3 {
			seen += sessions()
		}
		if seen == 0 {
			t.Fatal("the running server has no session")
		}
		return closed() > 50 && st.readerDB.Stats().OpenConnections == 0
	})
	cancel()
	<-ended
	until("none is left in the end", func() bool { return sessions() == 0 })
}
