package list

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"

	"github.com/palisade/palisade/services/internal/store"
)

// boundary is the last row of a page. The next page begins after it.
type boundary struct {
	relevantSince, id int64
	end               bool // no row follows
}

// newerFirst compares two rows in the order of lists.
func newerFirst(a, b boundary) int {
	return cmp.Or(cmp.Compare(b.relevantSince, a.relevantSince), cmp.Compare(b.id, a.id))
}

// cursor is where a page of a listing session may begin: after the given number of rows. Its boundary is the last of
// these rows.
type cursor struct {
	// session identifies the listing session by its start, in microseconds. A session starts when page 0 is served, or
	// a page of a list that has no cursors.
	session int64
	rows    int64
	boundary
}

// cursorStore stores the last row of each served page for CursorTTL. Page N+1 then resumes from a keyset instead of an
// OFFSET and costs as much as page 0. A client that reads all pages sees every finding exactly once, even while
// findings are inserted.
type cursorStore interface {
	// lookup returns the cursor after the given number of rows, or else the nearest cursor before it in the latest
	// session. Without either it returns the zero value, the beginning of the list.
	lookup(ctx context.Context, list listKey, rows int64) (cursor, error)
	// query returns the subquery that reads the cursor after the given number of rows. The statement that reads the page
	// before the cursor runs it and passes the result to begin. Nil means that begin needs no such result.
	query(list listKey, rows int64) []scalar
	// begin stores the cursors of a new session, in ascending order. Older sessions keep only their latest cursor, so that
	// they may continue. Finished sessions, and all but the latest maxSessions, are deleted. If there is nothing to delete
	// and the last cursor is already stored, begin writes nothing: the client then continues the stored session.
	begin(ctx context.Context, list listKey, known string, found ...cursor) error
	// add stores cursors of a session.
	add(ctx context.Context, list listKey, found ...cursor) error
}

const (
	// CursorTTL is how long a cursor is kept at least, after its page was served.
	CursorTTL = 15 * time.Minute
	// cursorExpiry is when a cursor is deleted. It is longer than CursorTTL so that requests for page 0 do not have to
	// store the cursor each time.
	cursorExpiry = CursorTTL + CursorTTL/2
	// maxSessions is how many older sessions of a list are kept in addition to the latest one.
	maxSessions = 50
)

const (
	// recentCursors is how many cursors before a new one are always kept: a client may request these pages again.
	recentCursors = 50
	// maxCursorGap is how many rows may lie between two older cursors. Counting them takes less than a millisecond.
	maxCursorGap = 10_000
)

// memoryCursors stores cursors in the process. It is for SQLite, which has one node.
type memoryCursors struct {
	mu    sync.Mutex
	now   func() int64 // in microseconds
	lists *expirable.LRU[listKey, *listCursors]
}

func newMemoryCursors() *memoryCursors {
	return &memoryCursors{now: store.Now, lists: expirable.NewLRU[listKey, *listCursors](1000, nil, cursorExpiry)}
}

// listCursors are the cursors of one list.
type listCursors struct {
	at []servedCursor // in ascending order of rows, which are unique
}

type servedCursor struct {
	cursor
	served int64
}

func (m *memoryCursors) lookup(_ context.Context, list listKey, rows int64) (cursor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.lists.Get(list)
	if !ok {
		return cursor{}, nil
	}
	known.expire(m.now())
	i, exact := known.find(rows)
	if !exact {
		latest := known.latestSession()
		for i--; i >= 0 && known.at[i].session != latest; i-- {
		}
	}
	if i < 0 {
		return cursor{}, nil
	}
	return known.at[i].cursor, nil
}

func (*memoryCursors) query(listKey, int64) []scalar { return nil }

func (m *memoryCursors) begin(_ context.Context, list listKey, _ string, found ...cursor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, now, last := m.cursorsOf(list), m.now(), found[len(found)-1]
	kept := known.latestCursors()
	i, exact := known.find(last.rows)
	stale := slices.ContainsFunc(known.at, func(p servedCursor) bool {
		return p.rows != last.rows && !slices.Contains(kept, p)
	})
	recent := now - (cursorExpiry - CursorTTL).Microseconds()
	if exact && !stale && known.at[i].boundary == last.boundary && known.at[i].served > recent {
		return nil
	}
	known.at = kept
	for _, p := range found {
		known.put(servedCursor{p, now})
	}
	return nil
}

func (m *memoryCursors) add(_ context.Context, list listKey, found ...cursor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, now := m.cursorsOf(list), m.now()
	for _, p := range found {
		known.put(servedCursor{p, now})
	}
	return nil
}

// cursorsOf returns the cursors of a list, and keeps the list in the cache for another cursorExpiry.
func (m *memoryCursors) cursorsOf(list listKey) *listCursors {
	known, ok := m.lists.Peek(list)
	if !ok {
		known = &listCursors{}
	}
	known.expire(m.now())
	m.lists.Add(list, known)
	return known
}

func (l *listCursors) find(rows int64) (int, bool) {
	return slices.BinarySearchFunc(l.at, rows, func(p servedCursor, rows int64) int { return cmp.Compare(p.rows, rows) })
}

// put adds a cursor, or replaces the cursor after the same number of rows. It thins out older cursors.
func (l *listCursors) put(p servedCursor) {
	i, exact := l.find(p.rows)
	if exact {
		l.at[i] = p
		return
	}
	l.at = slices.Insert(l.at, i, p)
	old := i - recentCursors
	if old < 1 || l.at[old].session != p.session || l.at[old+1].rows-l.at[old-1].rows > maxCursorGap {
		return
	}
	l.at = slices.Delete(l.at, old, old+1)
}

// expire deletes cursors that are older than cursorExpiry.
func (l *listCursors) expire(now int64) {
	l.at = slices.DeleteFunc(l.at, func(p servedCursor) bool { return p.served <= now-cursorExpiry.Microseconds() })
}

// latestSession returns the session that started last, or 0.
func (l *listCursors) latestSession() (session int64) {
	for _, p := range l.at {
		session = max(session, p.session)
	}
	return session
}

// latestCursors returns the latest cursor of each unfinished session, for the latest maxSessions sessions.
func (l *listCursors) latestCursors() (last []servedCursor) {
	seen := map[int64]bool{}
	for _, p := range slices.Backward(l.at) {
		if !seen[p.session] && !p.end {
			last = append(last, p)
		}
		seen[p.session] = true
	}
	slices.Reverse(last)
	sessions := slices.Sorted(maps.Keys(seen))
	oldest := sessions[max(0, len(sessions)-maxSessions):]
	return slices.DeleteFunc(last, func(p servedCursor) bool { return p.session < oldest[0] })
}
