package apitest

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"google.golang.org/grpc"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/store"
)

// Executed is a statement with the plan that PostgreSQL executed, which may be generic, and its counters.
type Executed struct {
	Statement
	// Looked is the number of rows that the plan read. Concerned is the number of rows that the statement is about:
	// returned, changed, or named in its parameters.
	Looked, Concerned int64
	// Blocks is the number of pages that were read to find rows.
	Blocks int64
	Plan   string
}

// Executions records the plans of all statements of a server on PostgreSQL, from any source.
type Executions struct {
	mu     sync.Mutex
	sent   map[*pgconn.PgConn]map[string]Statement // by SQL text
	seen   []Executed
	broken error
}

// Take returns the executions since the last Take.
func (e *Executions) Take(t testing.TB) []Executed {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken != nil {
		t.Fatal(e.broken)
	}
	seen := e.seen
	e.seen = nil
	return seen
}

// StartExplained is Start on PostgreSQL with a record of executed plans. The tests' role must be a superuser,
// because only a superuser may enable auto_explain.
func StartExplained(t testing.TB, adjust func(*config.Config)) (*Server, *Executions) {
	t.Helper()
	seen := &Executions{sent: map[*pgconn.PgConn]map[string]Statement{}}
	var url string
	ctx := store.WithConnector(t.Context(), func(driver.Connector) driver.Connector {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(config.RuntimeParams, map[string]string{
			"jit": "off", "statement_timeout": "20s", "client_min_messages": "notice", "session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
			"auto_explain.log_analyze": "on", "auto_explain.log_timing": "off", "auto_explain.log_buffers": "on",
			"auto_explain.log_format": "json", "auto_explain.log_level": "notice",
		})
		config.Tracer, config.OnNotice = seen, seen.notice
		return stdlib.GetConnector(*config)
	})
	return startIn(ctx, t, func(c *config.Config) {
		adjust(c)
		url = c.Database
	}), seen
}

// TraceQueryStart records the statement of a connection.
func (e *Executions) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	method, _ := grpc.Method(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent[conn.PgConn()] == nil {
		e.sent[conn.PgConn()] = map[string]Statement{}
	}
	e.sent[conn.PgConn()][strings.TrimSpace(data.SQL)] = Statement{Method: method, Text: data.SQL, Args: data.Args}
	return ctx
}

// TraceQueryEnd does nothing, because the plan may arrive with the connection's next statement.
func (e *Executions) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (e *Executions) notice(conn *pgconn.PgConn, notice *pgconn.Notice) {
	_, text, ok := strings.Cut(notice.Message, "plan:\n")
	if !ok {
		return
	}
	var plan struct {
		Query string `json:"Query Text"`
		Plan  planNode
	}
	err := json.Unmarshal([]byte(text), &plan)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.broken = err
		return
	}
	sent, known := e.sent[conn][strings.TrimSpace(plan.Query)]
	if !known {
		sent.Text = plan.Query
	}
	done := Executed{Statement: sent, Plan: text, Concerned: plan.Plan.changed()}
	for _, arg := range done.Args {
		done.Concerned = max(done.Concerned, values(arg))
	}
	done.Concerned = max(done.Concerned, int64(len(done.Args)))
	plan.Plan.count(&done)
	e.seen = append(e.seen, done)
}

// values returns the number of values in a parameter.
func values(arg any) int64 {
	switch list := reflect.ValueOf(arg); list.Kind() {
	case reflect.Slice:
		if list.Type().Elem().Kind() != reflect.Uint8 {
			return int64(list.Len())
		}
	case reflect.String:
		if text := list.String(); strings.HasPrefix(text, "{") {
			return int64(strings.Count(text, ",")) + 1
		}
	}
	return 1
}

// planNode is a node of a plan in PostgreSQL's JSON format.
type planNode struct {
	Type          string     `json:"Node Type"`
	Rows          float64    `json:"Actual Rows"`
	Loops         float64    `json:"Actual Loops"`
	Filtered      float64    `json:"Rows Removed by Filter"`
	FilteredJoins float64    `json:"Rows Removed by Join Filter"`
	Rechecked     float64    `json:"Rows Removed by Index Recheck"`
	Hit           int64      `json:"Shared Hit Blocks"`
	Read          int64      `json:"Shared Read Blocks"`
	Plans         []planNode `json:"Plans"`
}

// changed returns how many rows a statement returned or changed.
func (n planNode) changed() int64 {
	if n.Type == "ModifyTable" && len(n.Plans) > 0 {
		return int64(n.Plans[0].Rows)
	}
	return int64(n.Rows)
}

// pageCosts is the number of rows that a sequentially read page counts as. Looking up a row by key costs about as
// much as that, so a sequential scan is right for a tenth of a table's rows.
const pageCosts = 10

// count adds the rows that scans have read, and the rows that joins have compared without a match.
func (n planNode) count(into *Executed) {
	loops := max(n.Loops, 0)
	into.Looked += int64(n.FilteredJoins * loops)
	if strings.HasSuffix(n.Type, "Scan") || n.Type == "Materialize" {
		looked := (n.Rows + n.Filtered + n.Rechecked) * loops
		if n.Type == "Seq Scan" {
			looked = min(looked, float64(pageCosts*(n.Hit+n.Read)))
		}
		into.Looked += int64(looked)
	}
	if len(n.Plans) == 0 && strings.HasSuffix(n.Type, "Scan") {
		into.Blocks += n.Hit + n.Read
	}
	for _, below := range n.Plans {
		below.count(into)
	}
}
