package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/catalog"
	_ "github.com/palisade/palisade/ent/runtime" // the policies and hooks of the schema
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/gate"
)

// Options say which database to open.
type Options struct {
	// Database is a postgres:// URL; empty means the SQLite file palisade.db in DataDir.
	Database string
	// DataDir is made when it does not exist.
	DataDir string
	// MaxOpen caps the connections of the pool that serves reads; 0 chooses by the number of processors.
	MaxOpen int
}

// Store is an open database.
type Store struct {
	// Reader serves queries outside a transaction. On SQLite its connections refuse to write.
	Reader *ent.Client

	writer   *ent.Client
	dialect  string
	readerDB *sql.DB
	writerDB *sql.DB
	// primary is what a replica copies; nil for others.
	primary *Store
	// patientDB is for statements that may take long: no timeout ends them. On SQLite it is writerDB.
	patientDB *sql.DB
	// gate lets the transactions of Write in on PostgreSQL: database/sql gives a connection to any of those that wait for
	// one, and lets some wait long. There are fewer places than connections (see forReads).
	gate *gate.Gate
	// waiting are the transactions that wait for their turn.
	waiting atomic.Int64
	// group and checkpoints are nil on PostgreSQL, which syncs the commits of many connections together by itself, and
	// moves what it has logged beside them.
	group       *group
	checkpoints *checkpoints
	// generation is nil on SQLite.
	generation *generation
	location   string
	guard      func(ctx context.Context) error
	// highest are the ids that tables of SQLite ended with when their statistics were refreshed because they had grown.
	growth  sync.Mutex
	highest map[string]int64
}

// Open opens the database without touching its schema; see MigrateOnStart.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Database == "" {
		s, err := openSQLite(ctx, o)
		if err != nil {
			return nil, err
		}
		return s.withClients(), nil
	}
	s, err := openPostgres(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := s.readerDB.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", s.location, err), s.Close())
	}
	return s.withClients(), nil
}

// withClients gives a store ent's clients of its pools.
func (s *Store) withClients() *Store {
	s.highest = map[string]int64{}
	s.Reader = ent.NewClient(ent.Driver(ReaderDriver(entsql.OpenDB(s.dialect, s.readerDB))))
	s.writer = ent.NewClient(ent.Driver(writerDriver{entsql.OpenDB(s.dialect, s.writerDB)}))
	return s
}

// Postgres reports whether the database is PostgreSQL.
func (s *Store) Postgres() bool { return s.dialect == dialect.Postgres }

// Dialect returns ent's name of the kind of database.
func (s *Store) Dialect() string { return s.dialect }

// Location says where the database is, without credentials.
func (s *Store) Location() string { return s.location }

// Pools returns the connection pools by name, for metrics.
func (s *Store) Pools() map[string]*sql.DB {
	if s.readerDB == s.writerDB {
		return map[string]*sql.DB{"main": s.writerDB}
	}
	return map[string]*sql.DB{"reader": s.readerDB, "writer": s.writerDB}
}

// Waiting is how many transactions of Write wait for a connection to PostgreSQL, for metrics: they do so before they
// ask the pool.
func (s *Store) Waiting() int64 { return s.waiting.Load() }

// DB returns the pools for a library that brings its own SQL: one whose connections only read, and one that writes. On
// PostgreSQL they are the same; on SQLite the writer has one connection, and whoever holds it makes all others wait.
func (s *Store) DB() (reader, writer *sql.DB) { return s.readerDB, s.writerDB }

// OnDeployment adds a hook to what makes and changes deployments. It is called before anybody writes.
func (s *Store) OnDeployment(hook ent.Hook) { s.writer.Deployment.Use(hook) }

// Guard is asked before each commit of Write, in its transaction: an error rolls that back. It is set before anybody
// writes.
func (s *Store) Guard(guard func(ctx context.Context) error) { s.guard = guard }

// Ping asks the database for an answer.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.readerDB.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}

// Clock returns the database's time.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	query := "SELECT CAST(strftime('%s','now') AS INTEGER)"
	if s.Postgres() {
		query = "SELECT EXTRACT(EPOCH FROM clock_timestamp())::bigint"
	}
	var seconds int64
	err := s.readerDB.QueryRowContext(ctx, query).Scan(&seconds)
	return time.Unix(seconds, 0).UTC(), err
}

// Close closes all connections. Background jobs that use them are stopped before.
func (s *Store) Close() error {
	if s.checkpoints != nil {
		s.checkpoints.close()
	}
	err := s.readerDB.Close()
	if s.writerDB != s.readerDB {
		err = errors.Join(err, s.writerDB.Close())
	}
	if s.patientDB != s.writerDB {
		err = errors.Join(err, s.patientDB.Close())
	}
	return err
}

// Write runs fn in one transaction: committed when fn returns nil, else rolled back, also on panic. On SQLite there is
// one writer at a time, and others wait for their turn as long as ctx allows; what they write meanwhile is synced to
// the disk together (see group). The context that fn gets carries the transaction (see Tx, CurrentTransaction and
// ent.TxFromContext).
func (s *Store) Write(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) error {
	current := &Transaction{store: s}
	ctx, current.catalog = catalog.NewContext(context.WithValue(ctx, txKey{}, current))
	committed := false
	defer func() { current.end(committed) }()
	var err error
	if s.group == nil {
		err = s.inTurn(ctx, func() error { return s.transact(ctx, current, fn) })
	} else {
		err = s.group.write(ctx, kindOf(fn), func(p *part) error {
			current.part = p
			return s.transact(ctx, current, fn)
		})
	}
	committed = err == nil
	return err
}

// inTurn runs fn when it has its turn.
func (s *Store) inTurn(ctx context.Context, fn func() error) error {
	deployment, _ := tenant.FromContext(ctx)
	s.waiting.Add(1)
	err := s.gate.Enter(ctx, deployment)
	s.waiting.Add(-1)
	if err != nil {
		return fmt.Errorf("wait for a connection: %w", err)
	}
	defer s.gate.Leave(deployment)
	return fn()
}

func (s *Store) transact(ctx context.Context, current *Transaction, fn func(ctx context.Context, tx *ent.Tx) error) (err error) {
	tx, err := s.writer.Tx(ctx)
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	ctx = ent.NewTxContext(ctx, tx)
	done := false
	defer func() {
		if !done {
			_ = tx.Rollback() // a panic is on its way; it is the error that counts
		}
	}()
	if err = fn(ctx, tx); err == nil && s.guard != nil {
		err = s.guard(ctx)
	}
	if err == nil {
		err = current.beforeCommit(ctx, tx)
	}
	done = true
	if err != nil {
		if rollback := tx.Rollback(); rollback != nil && !errors.Is(rollback, sql.ErrTxDone) {
			err = errors.Join(err, fmt.Errorf("roll back: %w", rollback))
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Now is the present in microseconds since 1970.
func Now() int64 { return time.Now().UnixMicro() }

// Micros converts a time to the form in which tables hold it.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time converts the form in which tables hold times back.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// Exec runs a statement that ent cannot build (INSERT … SELECT) inside a transaction. Placeholders are written as ?.
// It passes the policies of the schema by: the statement itself names the deployment.
func (s *Store) Exec(ctx context.Context, tx *ent.Tx, query string, args ...any) error {
	_, err := tx.ExecContext(ctx, s.Placeholders(query), args...)
	return err
}

// ReadAnew reads what was committed before it began, with statements that PostgreSQL plans for the values that they are
// given, and by indexes: a plan for any value takes a rare word for a frequent one, and then a walk through the table
// for short. It is for lists with many filters, which cost more than their plan, and for which one statement looks up
// what the next one looks for. fn must not keep db.
func (s *Store) ReadAnew(ctx context.Context, fn func(db *ent.Client) error) error {
	level := sql.LevelDefault // on SQLite a transaction sees one state anyway
	if s.Postgres() {
		level = sql.LevelRepeatableRead
	}
	tx, err := s.Reader.BeginTx(ctx, &sql.TxOptions{Isolation: level, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	if !s.Postgres() {
		return fn(tx.Client())
	}
	if _, err := tx.ExecContext(ctx, PlannerSettings(customPlans, "enable_seqscan=off")); err != nil {
		return err
	}
	return fn(tx.Client())
}

// ExecAside runs a statement on PostgreSQL in a transaction of its own, also from inside of another one: it takes a
// connection of the pool that has no limit, so that transactions that hold all others cannot wait for each other. Like
// Exec it passes the policies by.
func (s *Store) ExecAside(ctx context.Context, query string, args ...any) error {
	_, err := s.patientDB.ExecContext(ctx, s.Placeholders(query), args...)
	return err
}

// Placeholders turns those of SQLite, ?, into those of the database.
func (s *Store) Placeholders(query string) string {
	if !s.Postgres() {
		return query
	}
	b := make([]byte, 0, len(query)+16)
	n := int64(0)
	for _, c := range []byte(query) {
		if c != '?' {
			b = append(b, c)
			continue
		}
		n++
		b = strconv.AppendInt(append(b, '$'), n, 10)
	}
	return string(b)
}
