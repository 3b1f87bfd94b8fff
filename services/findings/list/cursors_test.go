package list

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

func postgres(t *testing.T) *sql.DB {
	t.Helper()
	_, db := storetest.Open(t, store.Options{Database: storetest.Postgres(t)}).DB()
	return db
}

// Both cursor stores return the same cursors for sessions that follow each other and interleave. The store in memory
// may return a cursor up to maxCursorGap rows earlier, because it thins out older cursors.
func TestCursorStoresAgree(t *testing.T) {
	t.Parallel()
	db := postgres(t)
	lists := 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		lists++
		list := newListKey(1, "caller", []byte(strconv.Itoa(lists)))
		inMemory, inPostgres := newMemoryCursors(), postgresCursors{db}
		type client struct{ session, rows, size int64 }
		var clients []*client
		clock := int64(0)
		for range rapid.IntRange(1, 150).Draw(rt, "steps") {
			clock++
			if len(clients) == 0 || rapid.IntRange(0, 20).Draw(rt, "begin") == 0 {
				w := &client{clock, 0, rapid.SampledFrom([]int64{100, 300, 3000}).Draw(rt, "size")}
				clients = append(clients, w)
			}
			w := rapid.SampledFrom(clients).Draw(rt, "client")
			begins := w.rows == 0
			w.rows += w.size
			ends := rapid.IntRange(0, 30).Draw(rt, "end") == 0
			p := cursor{w.session, w.rows, boundary{relevantSince: w.session, id: w.rows, end: ends}}
			for _, cursors := range []cursorStore{inMemory, inPostgres} {
				remember := cursors.add
				if begins {
					remember = func(ctx context.Context, list listKey, found ...cursor) error {
						return cursors.begin(ctx, list, runQueries(rt, db, cursors.query(list, p.rows)), found...)
					}
				}
				if err := remember(ctx, list, p); err != nil {
					rt.Fatal(err)
				}
			}
			for _, rows := range []int64{w.rows, max(100, w.rows-w.size), 100 * rapid.Int64Range(1, 400).Draw(rt, "rows")} {
				got, _ := inMemory.lookup(ctx, list, rows)
				want, err := inPostgres.lookup(ctx, list, rows)
				if err != nil {
					rt.Fatal(err)
				}
				other := got.session != want.session && want.rows == rows
				if got != want && (other || want.rows-got.rows > maxCursorGap || got.rows > want.rows) {
					rt.Fatalf("after %d rows: memory has %+v, PostgreSQL %+v", rows, got, want)
				}
			}
			if got, _ := inMemory.lookup(ctx, list, w.rows); got != p {
				rt.Fatalf("got %+v, want %+v", got, p)
			}
		}
	})
}

// runQueries runs the subqueries of a cursor store, as the statement that reads a page does.
func runQueries(t *rapid.T, db *sql.DB, queries []scalar) (known string) {
	for _, q := range queries {
		text := q.query
		for i := range q.args {
			text = strings.Replace(text, "?", "$"+strconv.Itoa(i+1), 1)
		}
		if err := db.QueryRow(text, q.args...).Scan(&known); err != nil && !errors.Is(err, sql.ErrNoRows) {
			t.Fatal(err)
		}
	}
	return known
}

// Cursors in memory expire even if the list is requested again and again. The cursor of page 0 is renewed before.
func TestCursorsExpire(t *testing.T) {
	m, ctx, list := newMemoryCursors(), t.Context(), listKey{}
	now := int64(1)
	m.now = func() int64 { return now }
	first := cursor{session: 1, rows: 100, boundary: boundary{relevantSince: 9, id: 9}}
	remember := func(do func(context.Context, listKey, ...cursor) error, p cursor) {
		t.Helper()
		if err := do(ctx, list, p); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(ctx context.Context, list listKey, found ...cursor) error {
		return m.begin(ctx, list, "", found...)
	}
	remember(begin, first)
	remember(m.add, cursor{session: 1, rows: 200, boundary: boundary{relevantSince: 8, id: 8}})
	for range 7 {
		now += CursorTTL.Microseconds() / 4
		remember(begin, first)
	}
	if got, _ := m.lookup(ctx, list, 200); got != first {
		t.Errorf("got %+v, want the cursor after page 0", got)
	}
	now += CursorTTL.Microseconds()
	if got, _ := m.lookup(ctx, list, 100); got != first {
		t.Errorf("got %+v %v after page 0 was served, want the cursor after it", got, CursorTTL)
	}
}

// Each request for page 0 in another size starts a session. Only the latest maxSessions are kept.
func TestSessionsAreLimited(t *testing.T) {
	t.Parallel()
	db := postgres(t)
	inMemory, inPostgres := newMemoryCursors(), postgresCursors{db}
	list, ctx := newListKey(1, "caller", nil), t.Context()
	for i := range int64(3 * maxSessions) {
		p := cursor{session: i + 1, rows: 100 + i, boundary: boundary{relevantSince: 1, id: 1}}
		for _, cursors := range []cursorStore{inMemory, inPostgres} {
			if err := cursors.begin(ctx, list, "", p); err != nil {
				t.Fatal(err)
			}
		}
	}
	known, _ := inMemory.lists.Peek(list)
	var stored int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM page_boundaries").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if want := maxSessions + 1; len(known.at) != want || stored != want {
		t.Errorf("memory has %d cursors, PostgreSQL %d, want %d", len(known.at), stored, want)
	}
	for _, cursors := range []cursorStore{inMemory, inPostgres} {
		if got, err := cursors.lookup(ctx, list, 100+2*maxSessions); err != nil || got.session != 2*maxSessions+1 {
			t.Errorf("%T: got %+v (%v), want the cursor of session %d", cursors, got, err, 2*maxSessions+1)
		}
	}
}
