package nodestest

import (
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
)

// receiver receives webhooks.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string][]time.Time // by message id
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{got: map[string][]time.Time{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if _, err := io.Copy(io.Discard, q.Body); err != nil {
			return // the connection was closed
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		id := q.Header.Get("webhook-id")
		r.got[id] = append(r.got[id], time.Now())
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(r.Close)
	return r
}

// database is the test's own connection.
type database struct {
	t  testing.TB
	db *sql.DB
}

func openDatabase(t testing.TB, url string) *database {
	t.Helper()
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(2)
	t.Cleanup(func() { _ = db.Close() })
	return &database{t, db}
}

// number returns the single number of a query.
func (d *database) number(query string, args ...any) (n int) {
	d.t.Helper()
	if err := d.db.QueryRowContext(d.t.Context(), query, args...).Scan(&n); err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// counts returns the rows of a query as a map from text to number.
func (d *database) counts(query string, args ...any) map[string]int {
	d.t.Helper()
	rows, err := d.db.QueryContext(d.t.Context(), query, args...)
	if err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	counts := map[string]int{}
	for rows.Next() {
		var text string
		var n int
		if err := rows.Scan(&text, &n); err != nil {
			d.t.Fatal(err)
		}
		counts[text] = n
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	return counts
}

// waitForZero waits until a query counts nothing.
func (d *database) waitForZero(what, query string, args ...any) {
	d.t.Helper()
	last := -1
	if err := poll(func() (bool, error) {
		last = d.number(query, args...)
		return last == 0, nil
	}); err != nil {
		d.t.Fatalf("%d %s: %v", last, what, err)
	}
}

// subscribe sends the receiver a message for each finding and each scan.
func (l *load) subscribe(to *receiver) {
	l.t.Helper()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body := fmt.Appendf(nil, `{"notificationRule":{"name":"all","channel":"webhook","is_enabled":true,"config":{"url":%q,"secret":%q}}}`, to.URL, secret)
	if _, err := l.send(http.MethodPost, "/api/agent/deployments/1/actions", body); err != nil {
		l.t.Fatal(err)
	}
}

// requireDelivered requires that every message arrives exactly once. A message that arrived before a node was
// killed may be repeated, because it is unknown whether that node saw the response.
func requireDelivered(t testing.TB, d *database, to *receiver, killed time.Time) {
	t.Helper()
	d.waitForZero("events have no messages yet", "SELECT COUNT(*) FROM notification_events")
	d.waitForZero("messages are not delivered", "SELECT COUNT(*) FROM deliveries WHERE state <> 'delivered'")
	to.mu.Lock()
	defer to.mu.Unlock()
	if sent := d.number("SELECT COUNT(*) FROM deliveries"); sent != len(to.got) || sent == 0 {
		t.Errorf("%d messages were sent, %d arrived", sent, len(to.got))
	}
	again := 0
	for id, at := range to.got {
		if len(at) > 1 {
			again++
		}
		if len(at) > 2 || len(at) == 2 && at[0].After(killed) {
			t.Errorf("%s arrived %d times: %v", id, len(at), at)
		}
	}
	t.Logf("%d messages arrived, %d of them twice", len(to.got), again)
}

// requireJobsDone requires that all current jobs complete at the first attempt, except jobs of a node that was
// killed at this time (zero for none). River rescues those after an hour, which the test simulates.
func requireJobsDone(t testing.TB, d *database, killed time.Time) {
	t.Helper()
	newest := d.number("SELECT COALESCE(MAX(id), 0) FROM river_job")
	d.waitForZero("jobs wait", "SELECT COUNT(*) FROM river_job WHERE id <= $1 AND state IN ('available', 'retryable')", newest)
	d.waitForZero("jobs of living nodes run", "SELECT COUNT(*) FROM river_job WHERE id <= $1 AND state = 'running' AND attempted_at >= $2", newest, killed)
	result, err := d.db.ExecContext(t.Context(), "UPDATE river_job SET attempted_at = attempted_at - interval '2 hours' WHERE id <= $1 AND state = 'running'", newest)
	if err != nil {
		t.Fatal(err)
	}
	died, _ := result.RowsAffected() // pgx always knows it
	d.waitForZero("jobs are not done", "SELECT COUNT(*) FROM river_job WHERE id <= $1 AND state IN ('available', 'retryable', 'running', 'scheduled', 'pending')", newest)
	if lost := d.number("SELECT COUNT(*) FROM river_job WHERE state IN ('cancelled', 'discarded')"); lost != 0 {
		t.Errorf("%d jobs were discarded", lost)
	}
	if again := d.number("SELECT COUNT(*) FROM river_job WHERE id <= $1 AND attempt > 1", newest); again > int(died) {
		t.Errorf("%d jobs ran again, but only %d died with a node", again, died)
	}
	t.Logf("%d jobs were done, %d of them after their node died", d.number("SELECT COUNT(*) FROM river_job WHERE state = 'completed'"), died)
}
