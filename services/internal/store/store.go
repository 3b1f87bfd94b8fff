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
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/catalog"
	_ "github.com/palisade/palisade/ent/runtime" // the policies and hooks of the schema
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/gate"
)

// Options selects the database to open.
type Options struct {
	// Database is a postgres:// URL. If empty, the SQLite file palisade.db in DataDir is used.
	Database string
	// DataDir is created if it does not exist.
	DataDir string
	// MaxOpen limits the connections of the pool that serves reads. 0 derives it from the number of CPUs.
	MaxOpen int
}

// Store is an open database.
type Store struct {
	// Reader runs queries outside a transaction. On SQLite its connections cannot write.
	Reader *ent.Client

	writer   *ent.Client
	dialect  string
	readerDB *sql.DB
	writerDB *sql.DB
	// primary is the database that a replica copies; otherwise nil.
	primary *Store
	// longQueryDB has no statement timeout. On SQLite it is writerDB.
	longQueryDB *sql.DB
	// gate limits the concurrent transactions of Write on PostgreSQL and serves deployments fairly. database/sql does
	// not serve waiting callers in order. The gate admits fewer transactions than there are connections (see
	// readReserve).
	gate *gate.Gate
	// waiting is the number of transactions that wait for the gate.
	waiting atomic.Int64
	// group and checkpoints are nil on PostgreSQL, which does both itself.
	group       *group
	checkpoints *checkpoints
	// generation is nil on SQLite.
	generation *generation
	location   string
	guard      func(ctx context.Context) error
	failed     func(error)
	admit      func(ctx context.Context) error
	// highest has the highest id of each SQLite table when RefreshGrown last refreshed its statistics.
	growth  sync.Mutex
	highest map[string]int64
}

// Open opens the database. It does not change the schema; see MigrateOnStart.
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

// withClients creates the ent clients.
func (s *Store) withClients() *Store {
	s.highest = map[string]int64{}
	s.Reader = ent.NewClient(ent.Driver(ReaderDriver(entsql.OpenDB(s.dialect, s.readerDB))))
	s.writer = ent.NewClient(ent.Driver(writerDriver{entsql.OpenDB(s.dialect, s.writerDB)}))
	return s
}

// Postgres reports whether the database is PostgreSQL.
func (s *Store) Postgres() bool { return s.dialect == dialect.Postgres }

// Dialect returns ent's name of the database.
func (s *Store) Dialect() string { return s.dialect }

// Location returns where the database is, without credentials.
func (s *Store) Location() string { return s.location }

// Pools returns the connection pools by name, for metrics.
func (s *Store) Pools() map[string]*sql.DB {
	if s.readerDB == s.writerDB {
		return map[string]*sql.DB{"main": s.writerDB}
	}
	return map[string]*sql.DB{"reader": s.readerDB, "writer": s.writerDB}
}

// Waiting returns the number of Write transactions that wait for a connection, for metrics. They wait before they
// reach the pool, so the pool's own metrics do not count them.
func (s *Store) Waiting() int64 { return s.waiting.Load() }

// DB returns the pools for a library with its own SQL: a read-only pool and one that writes. On PostgreSQL they are
// the same. On SQLite the writer has one connection, which blocks all other writers while it is held.
func (s *Store) DB() (reader, writer *sql.DB) { return s.readerDB, s.writerDB }

// OnDeployment adds a hook to mutations of deployments. Call it before the first Write.
func (s *Store) OnDeployment(hook ent.Hook) { s.writer.Deployment.Use(hook) }

// Guard sets a check that runs in the transaction of each Write, before the commit. Its error rolls the transaction
// back. Call it before the first Write.
func (s *Store) Guard(guard func(ctx context.Context) error) { s.guard = guard }

// OnFailure sets a function that gets the error of each Write that failed, and must not block. Call it before the first
// Write.
func (s *Store) OnFailure(failed func(error)) { s.failed = failed }

// Admit sets a check that runs before each Write, which then fails with its error. Call it before there are several
// Writes at once.
func (s *Store) Admit(admit func(ctx context.Context) error) { s.admit = admit }

// Unmoved returns how many bytes the background still moves from the log into the SQLite file, at most. SQLite itself
// moves the log of short transactions.
func (s *Store) Unmoved() int64 {
	if s.checkpoints == nil {
		return 0
	}
	return s.checkpoints.unmoved()
}

// Ping checks that the database answers.
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

// Close closes all connections. Stop background jobs before.
func (s *Store) Close() error {
	if s.checkpoints != nil {
		s.checkpoints.close()
	}
	err := s.readerDB.Close()
	if s.writerDB != s.readerDB {
		err = errors.Join(err, s.writerDB.Close())
	}
	if s.longQueryDB != s.writerDB {
		err = errors.Join(err, s.longQueryDB.Close())
	}
	return err
}

// Write runs fn in one transaction. It commits when fn returns nil and rolls back otherwise, also on panic. On
// SQLite writers run one at a time, and a Write waits as long as ctx allows; waiting Writes share a commit (see
// group). The context passed to fn has the transaction (see Tx, CurrentTransaction and ent.TxFromContext).
func (s *Store) Write(ctx context.Context, fn func(ctx context.Context, tx *ent.Tx) error) error {
	if s.admit != nil {
		if err := s.admit(ctx); err != nil {
			return err
		}
	}
	current := &Transaction{store: s}
	ctx, current.catalog = catalog.NewContext(context.WithValue(ctx, txKey{}, current))
	committed := false
	defer func() { current.end(committed) }()
	var err error
	if s.group == nil {
		err = s.withGate(ctx, func() error { return s.transact(ctx, current, fn) })
	} else {
		err = s.group.write(ctx, kindOf(fn), func(p *savepoint) error {
			current.savepoint = p
			return s.transact(ctx, current, fn)
		})
	}
	committed = err == nil
	if !committed && s.failed != nil {
		s.failed(err)
	}
	return err
}

// withGate runs fn after the gate has admitted it.
func (s *Store) withGate(ctx context.Context, fn func() error) error {
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
			_ = tx.Rollback() // fn is panicking; the panic is the error to report
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

// Now returns the current time in microseconds since 1970.
func Now() int64 { return time.Now().UnixMicro() }

// Micros converts a time to the format of the tables.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// Time converts the tables' format to a time.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// Timestamp converts a nullable time of the tables to a message; nil stays nil.
func Timestamp(micros *int64) *timestamppb.Timestamp {
	if micros == nil {
		return nil
	}
	return timestamppb.New(Time(*micros))
}

// Exec runs a statement that ent cannot build (INSERT … SELECT) inside a transaction. Placeholders are question
// marks. It bypasses the policies of the schema, so the statement must name the deployment.
func (s *Store) Exec(ctx context.Context, tx *ent.Tx, query string, args ...any) error {
	_, err := tx.ExecContext(ctx, s.Placeholders(query), args...)
	return err
}

// ReadWithFreshPlans runs fn in a read-only snapshot, in which PostgreSQL plans each statement for its parameters
// and prefers indexes. A generic plan takes a rare word for a frequent one and chooses a sequential scan. It is for
// lists with many filters, which cost more than planning, and whose statements depend on each other's results. fn
// must not keep db.
func (s *Store) ReadWithFreshPlans(ctx context.Context, fn func(db *ent.Client) error) error {
	level := sql.LevelDefault // a SQLite transaction always reads one snapshot
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

// ExecOutside runs a statement on PostgreSQL in its own transaction, also from inside another one. It uses the
// long-query pool, which has no limit, so that transactions that hold all other connections cannot deadlock. Like
// Exec it bypasses the policies.
func (s *Store) ExecOutside(ctx context.Context, query string, args ...any) error {
	_, err := s.longQueryDB.ExecContext(ctx, s.Placeholders(query), args...)
	return err
}

// Placeholders converts question marks to the placeholders of the database.
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
