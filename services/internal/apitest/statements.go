package apitest

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/store"
)

// Statement is a statement that the server sent to its database.
type Statement struct {
	// Method is the RPC (/package.Service/Method) that sent it; "" outside an RPC.
	Method string
	Text   string
	Args   []any
}

// Statements records all statements that a server sends to its database: by ent, by the queue, or as plain SQL.
type Statements struct {
	mu   sync.Mutex
	seen []Statement
}

// Take returns the statements of one RPC since the last Take, and discards all others.
func (s *Statements) Take(method string) (list []Statement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, statement := range s.seen {
		if statement.Method == method {
			list = append(list, statement)
		}
	}
	s.seen = nil
	return list
}

// TakeAll returns the statements of all RPCs since the last Take.
func (s *Statements) TakeAll() []Statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// StartRecorded is Start with a record of all statements.
func StartRecorded(t testing.TB, adjust func(*config.Config)) (*Server, *Statements) {
	t.Helper()
	seen := &Statements{}
	ctx := store.WithConnector(t.Context(), func(c driver.Connector) driver.Connector { return recordingConnector{c, seen} })
	return startIn(ctx, t, adjust), seen
}

func (s *Statements) add(ctx context.Context, query string, args []driver.NamedValue) {
	method, ok := grpc.Method(ctx)
	if !ok {
		return
	}
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, Statement{Method: method, Text: query, Args: values})
}

type recordingConnector struct {
	driver.Connector
	seen *Statements
}

func (c recordingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &recordingConn{conn, c.seen}, nil
}

// recordingConn wraps a connection of either driver and records its statements.
type recordingConn struct {
	driver.Conn
	seen *Statements
}

var errNotForwarded = errors.New("the driver's connection lacks a method that apitest forwards")

func (c *recordingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	conn, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, errNotForwarded
	}
	c.seen.add(ctx, query, args)
	return conn.QueryContext(ctx, query, args)
}

func (c *recordingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	conn, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, errNotForwarded
	}
	c.seen.add(ctx, query, args)
	return conn.ExecContext(ctx, query, args)
}

// PrepareContext counts a prepared statement as one. The server prepares none itself; its drivers cache prepared
// statements.
func (c *recordingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	conn, ok := c.Conn.(driver.ConnPrepareContext)
	if !ok {
		return nil, errNotForwarded
	}
	c.seen.add(ctx, query, nil)
	return conn.PrepareContext(ctx, query)
}

func (c *recordingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	conn, ok := c.Conn.(driver.ConnBeginTx)
	if !ok {
		return nil, errNotForwarded
	}
	return conn.BeginTx(ctx, options)
}

func (c *recordingConn) Ping(ctx context.Context) error {
	if conn, ok := c.Conn.(driver.Pinger); ok {
		return conn.Ping(ctx)
	}
	return nil
}

func (c *recordingConn) ResetSession(ctx context.Context) error {
	if conn, ok := c.Conn.(driver.SessionResetter); ok {
		return conn.ResetSession(ctx)
	}
	return nil
}

func (c *recordingConn) IsValid() bool {
	conn, ok := c.Conn.(driver.Validator)
	return !ok || conn.IsValid()
}

func (c *recordingConn) CheckNamedValue(value *driver.NamedValue) error {
	if conn, ok := c.Conn.(driver.NamedValueChecker); ok {
		return conn.CheckNamedValue(value)
	}
	return driver.ErrSkip
}
