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

// Both memories of places say the same about walks that follow each other and interleave, but that the one in the
// process forgets some places that a count reaches at once.
func TestPlacesEqualModel(t *testing.T) {
	t.Parallel()
	db := postgres(t)
	lists := 0
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		lists++
		of := newListKey(1, "caller", []byte(strconv.Itoa(lists)))
		inProcess, inDatabase := newMemory(), shared{db}
		type walker struct{ walk, rows, size int64 }
		var walkers []*walker
		clock := int64(0)
		for range rapid.IntRange(1, 150).Draw(rt, "steps") {
			clock++
			if len(walkers) == 0 || rapid.IntRange(0, 20).Draw(rt, "begin") == 0 {
				w := &walker{clock, 0, rapid.SampledFrom([]int64{100, 300, 3000}).Draw(rt, "size")}
				walkers = append(walkers, w)
			}
			w := rapid.SampledFrom(walkers).Draw(rt, "walker")
			begins := w.rows == 0
			w.rows += w.size
			ends := rapid.IntRange(0, 30).Draw(rt, "end") == 0
			p := place{w.walk, w.rows, boundary{relevantSince: w.walk, id: w.rows, end: ends}}
			for _, places := range []places{inProcess, inDatabase} {
				remember := places.add
				if begins {
					remember = func(ctx context.Context, of listKey, found ...place) error {
						return places.begin(ctx, of, ask(rt, db, places.query(of, p.rows)), found...)
					}
				}
				if err := remember(ctx, of, p); err != nil {
					rt.Fatal(err)
				}
			}
			for _, rows := range []int64{w.rows, max(100, w.rows-w.size), 100 * rapid.Int64Range(1, 400).Draw(rt, "rows")} {
				got, _ := inProcess.from(ctx, of, rows)
				want, err := inDatabase.from(ctx, of, rows)
				if err != nil {
					rt.Fatal(err)
				}
				other := got.walk != want.walk && want.rows == rows
				if got != want && (other || want.rows-got.rows > placesApart || got.rows > want.rows) {
					rt.Fatalf("behind %d rows: the process says %+v, the database %+v", rows, got, want)
				}
			}
			if got, _ := inProcess.from(ctx, of, w.rows); got != p {
				rt.Fatalf("got %+v, want %+v", got, p)
			}
		}
	})
}

// ask does what the statement of a page does for places.
func ask(t *rapid.T, db *sql.DB, queries []once) (known string) {
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

// Places in the process are forgotten in time, however often the list is asked for, and page 0 is remembered anew
// before.
func TestPlacesExpire(t *testing.T) {
	m, ctx, of := newMemory(), t.Context(), listKey{}
	now := int64(1)
	m.now = func() int64 { return now }
	first := place{walk: 1, rows: 100, boundary: boundary{relevantSince: 9, id: 9}}
	remember := func(do func(context.Context, listKey, ...place) error, p place) {
		t.Helper()
		if err := do(ctx, of, p); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(ctx context.Context, of listKey, found ...place) error { return m.begin(ctx, of, "", found...) }
	remember(begin, first)
	remember(m.add, place{walk: 1, rows: 200, boundary: boundary{relevantSince: 8, id: 8}})
	for range 7 {
		now += PlacesKept.Microseconds() / 4
		remember(begin, first)
	}
	if got, _ := m.from(ctx, of, 200); got != first {
		t.Errorf("got %+v, want page 0's end", got)
	}
	now += PlacesKept.Microseconds()
	if got, _ := m.from(ctx, of, 100); got != first {
		t.Errorf("got %+v %v after page 0 was served, want its end", got, PlacesKept)
	}
}

// Who asks for page 0 in all sizes begins as many walks, of which the last are remembered.
func TestWalksAreLimited(t *testing.T) {
	t.Parallel()
	db := postgres(t)
	inProcess, inDatabase := newMemory(), shared{db}
	of, ctx := newListKey(1, "caller", nil), t.Context()
	for i := range int64(3 * walksKept) {
		p := place{walk: i + 1, rows: 100 + i, boundary: boundary{relevantSince: 1, id: 1}}
		for _, places := range []places{inProcess, inDatabase} {
			if err := places.begin(ctx, of, "", p); err != nil {
				t.Fatal(err)
			}
		}
	}
	known, _ := inProcess.lists.Peek(of)
	var stored int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM page_boundaries").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if want := walksKept + 1; len(known.at) != want || stored != want {
		t.Errorf("the process remembers %d places, the database %d, want %d", len(known.at), stored, want)
	}
	for _, places := range []places{inProcess, inDatabase} {
		if got, err := places.from(ctx, of, 100+2*walksKept); err != nil || got.walk != 2*walksKept+1 {
			t.Errorf("%T: got %+v (%v), want where the walk %d is", places, got, err, 2*walksKept+1)
		}
	}
}
