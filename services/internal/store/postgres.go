package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"

	"entgo.io/ent/dialect"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gate"
)

const (
	// statementTimeout ends statements that outlive their request.
	statementTimeout = 5 * time.Minute
	// idleTimeout ends the open transaction of a node that has disappeared, and so releases its row locks. It must be
	// longer than the seconds that an import computes between two statements.
	idleTimeout = 5 * time.Minute
	// readReserve is how many connections Write leaves to reads. Transactions that also read outside themselves would
	// deadlock without any.
	readReserve = 2
	// writeShare is a weight for gate.Share: one deployment's transactions get at most two thirds of the remaining
	// connections.
	writeShare = 2
)

// SessionName is the prefix of the application_name of all PostgreSQL sessions, regardless of the URL. A database
// copy uses it to detect a running server.
const SessionName = "palisade"

// openPostgres opens the pool for reads and writes, and the long-query pool, which has no statement timeout: it
// builds indexes and reads whole tables for statistics. It does not connect yet.
func openPostgres(ctx context.Context, o Options) (*Store, error) {
	config, err := pgx.ParseConfig(o.Database)
	if err != nil {
		// The text of pgx's error may contain the URL with its password.
		return nil, errors.New("database: not a PostgreSQL URL; want postgres://user:password@host:5432/name")
	}
	if name := config.RuntimeParams["application_name"]; !strings.HasPrefix(name, SessionName) {
		config.RuntimeParams["application_name"] = strings.TrimSpace(SessionName + " " + name)
	}
	generation := &generation{}
	generation.watch(config)
	longQuery := config.Copy()
	setSessionDefaults(config, statementTimeout, idleTimeout)
	setSessionDefaults(longQuery, 0, 0)
	db := openPool(ctx, postgresConnector{stdlib.GetConnector(*config, generation.options()...)})
	longQueryDB := openPool(ctx, postgresConnector{stdlib.GetConnector(*longQuery, generation.options()...)})
	connections := postgresConnections(o)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	longQueryDB.SetMaxIdleConns(1)
	for _, pool := range []*sql.DB{db, longQueryDB} {
		pool.SetConnMaxIdleTime(5 * time.Minute)
		// Behind a DNS name or a load balancer, connections then move to another server, and the server frees their
		// memory.
		pool.SetConnMaxLifetime(time.Hour)
	}
	return &Store{
		dialect: dialect.Postgres, readerDB: db, writerDB: db, longQueryDB: longQueryDB, generation: generation,
		gate: gate.New(max(1, connections-readReserve), gate.Share(writeShare)), location: PostgresLocation(config),
	}, nil
}

// ErrPooler means that a pooler refused the session settings of setSessionDefaults, because the URL does not say
// that there is a pooler.
var ErrPooler = errors.New("a pooler such as PgBouncer refuses the session settings")

// postgresConnector explains a pooler's errors.
type postgresConnector struct{ driver.Connector }

func (c postgresConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == apierr.StateProtocol && strings.Contains(refused.Message, "startup parameter") {
		err = fmt.Errorf("%w; add ?default_query_exec_mode=cache_describe to the database URL (see docs/scale.md): %w", ErrPooler, err)
	}
	return conn, err
}

// KeepSession keeps one connection to PostgreSQL open until ctx ends, even when the pools are idle, so that a
// database copy can detect a running server. Every interval it opens another connection before it closes the
// previous one. That replaces a broken connection and respects the pool's maximum lifetime. The ping makes a pooler
// hold a server connection, too.
func (s *Store) KeepSession(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	release := func() {}
	defer func() { release() }()
	for {
		if conn, err := s.longQueryDB.Conn(ctx); err == nil { // otherwise the database is down: retry later
			give := func() { _ = conn.Close() } // returns it to the pool
			if conn.PingContext(ctx) == nil {   // a pooler assigns a server connection only now
				give, release = release, give
			}
			give()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// PostgresLocation returns where a database is, without credentials.
func PostgresLocation(config *pgx.ConnConfig) string {
	host := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return (&url.URL{Scheme: "postgres", Host: host, Path: config.Database}).String()
}

// postgresConnections returns the size of the pool. A request holds a connection for a part of its time only, so
// four for each CPU keep this node busy. On the server each connection is a process.
func postgresConnections(o Options) int {
	connections := o.MaxOpen
	if connections == 0 {
		connections = max(10, 4*runtime.NumCPU())
	}
	return max(2, connections) // with one connection, a transaction that also reads outside itself would deadlock
}

// setSessionDefaults sets the parameters of new connections, unless the URL sets them: the timeouts (0 means none,
// even if the role has one), and no jit, whose compilation takes longer than it saves for nearly all statements. A
// pooler in transaction mode refuses such parameters. A URL for a pooler sets default_query_exec_mode to exec, or
// another mode without prepared statements; the role must then have the settings.
func setSessionDefaults(config *pgx.ConnConfig, statement, idle time.Duration) {
	if config.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return
	}
	for name, value := range map[string]string{
		"statement_timeout":                   strconv.FormatInt(statement.Milliseconds(), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt(idle.Milliseconds(), 10),
		"jit":                                 "off",
	} {
		if config.RuntimeParams[name] == "" {
			config.RuntimeParams[name] = value
		}
	}
}
