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
	// statementTimeout ends what nobody waits for any more: calls have long ended by then.
	statementTimeout = 5 * time.Minute
	// idleTimeout ends the transaction of a node that is gone without a word, and with it the locks of its rows. An import
	// computes for seconds between two statements.
	idleTimeout = 5 * time.Minute
	// forReads are the connections that transactions of Write leave to reads: without any, transactions that read beside
	// themselves could wait for each other.
	forReads = 2
	// writeShare lets the transactions of one deployment have two thirds of the others.
	writeShare = 2
)

// SessionName begins the application_name of all sessions on PostgreSQL, whatever the URL calls them: by it a copy of
// the database sees that a server runs.
const SessionName = "palisade"

// openPostgres opens a pool that serves reads and writes, and one for what may take longer than a statement may:
// building an index, or reading all tables for statistics. It connects to nothing yet.
func openPostgres(ctx context.Context, o Options) (*Store, error) {
	config, err := pgx.ParseConfig(o.Database)
	if err != nil {
		// pgx's text may repeat the URL with its password.
		return nil, errors.New("database: not a PostgreSQL URL; want postgres://user:password@host:5432/name")
	}
	if name := config.RuntimeParams["application_name"]; !strings.HasPrefix(name, SessionName) {
		config.RuntimeParams["application_name"] = strings.TrimSpace(SessionName + " " + name)
	}
	generation := &generation{}
	generation.watch(config)
	patient := config.Copy()
	settle(config, statementTimeout, idleTimeout)
	settle(patient, 0, 0)
	db := openPool(ctx, postgresConnector{stdlib.GetConnector(*config, generation.options()...)})
	patientDB := openPool(ctx, postgresConnector{stdlib.GetConnector(*patient, generation.options()...)})
	connections := postgresConnections(o)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	patientDB.SetMaxIdleConns(1)
	for _, pool := range []*sql.DB{db, patientDB} {
		pool.SetConnMaxIdleTime(5 * time.Minute)
		// Behind a name or a balancer connections move to another server in time, and what they hold in memory is freed.
		pool.SetConnMaxLifetime(time.Hour)
	}
	return &Store{
		dialect: dialect.Postgres, readerDB: db, writerDB: db, patientDB: patientDB, generation: generation,
		gate: gate.New(max(1, connections-forReads), gate.Share(writeShare)), location: PostgresLocation(config),
	}, nil
}

// ErrPooler says that a pooler refuses what settle sets, because nobody said that it is there.
var ErrPooler = errors.New("a pooler such as PgBouncer refuses the settings of a session")

// postgresConnector opens connections to one database.
type postgresConnector struct{ driver.Connector }

func (c postgresConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == apierr.StateProtocol && strings.Contains(refused.Message, "startup parameter") {
		err = fmt.Errorf("%w; add ?default_query_exec_mode=cache_describe to the URL of the database, as docs/scale.md says: %w", ErrPooler, err)
	}
	return conn, err
}

// KeepSession holds a connection to PostgreSQL until ctx ends, whatever the pools close, so that a copy of the database
// sees that a server runs which nobody asks for anything. Every so often it takes another one before it lets go of the
// one before: one that broke is replaced, none is kept from its end, and a pooler has a reason to keep one, too.
func (s *Store) KeepSession(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	release := func() {}
	defer func() { release() }()
	for {
		if conn, err := s.patientDB.Conn(ctx); err == nil { // else the database is down: ask again later
			give := func() { _ = conn.Close() } // back to the pool
			if conn.PingContext(ctx) == nil {   // a pooler looks for a session only then
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

// PostgresLocation says where a database is, without credentials.
func PostgresLocation(config *pgx.ConnConfig) string {
	host := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	return (&url.URL{Scheme: "postgres", Host: host, Path: config.Database}).String()
}

// postgresConnections is how many connections serve calls. A call holds one for a part of its time only, so four for
// each processor of this node keep it busy; the server needs a process for each.
func postgresConnections(o Options) int {
	connections := o.MaxOpen
	if connections == 0 {
		connections = max(10, 4*runtime.NumCPU())
	}
	return max(2, connections) // with one alone, what reads beside its own transaction would wait for itself
}

// settle sets what a connection begins with, unless the URL has its own: timeouts, of which 0 is none, whatever the
// role has, and no compiling of statements, which takes longer than all but a few that were estimated to be worth it. A
// pooler that gives each transaction another connection refuses such settings: whoever says in the URL that there is
// one, because statements must not be prepared (default_query_exec_mode=exec, or another that is not the default), sets
// them for the role.
func settle(config *pgx.ConnConfig, statement, idle time.Duration) {
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
