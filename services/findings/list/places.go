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

// boundary is the last row of a page in the order of lists: the next page begins behind it.
type boundary struct {
	relevantSince, id int64
	end               bool // nothing follows
}

// place is where a page may begin: behind so many rows of its list, of which the boundary's is the last. It belongs
// to a walk, which begins when page 0 is served, or a page of a list that nobody has asked for lately.
type place struct {
	walk int64 // when it began, in microseconds
	rows int64
	boundary
}

// places remembers where served pages ended, so that page N+1 after page N costs what page 0 costs, and so that a
// walk over all pages neither misses nor doubles a finding when others arrive meanwhile. It does so for PlacesKept
// after a page was served.
type places interface {
	// from returns the place behind so many rows, or else the last one before it of the latest walk: the beginning of the
	// list, the zero value, when there is none.
	from(ctx context.Context, of listKey, rows int64) (place, error)
	// query asks for what begin wants to know about the place behind so many rows, in the statement that reads the page
	// before it; nil when nothing is to be asked.
	query(of listKey, rows int64) []once
	// begin remembers places of a new walk, in ascending order. Of each older walk only where it is now stays true, so
	// that it may go on; one that has ended is forgotten, as are those before the last walksKept. Where there is nothing
	// to forget, and the last place is already as it says, the walk goes on instead.
	begin(ctx context.Context, of listKey, known string, found ...place) error
	// add remembers places of a walk.
	add(ctx context.Context, of listKey, found ...place) error
}

const (
	// PlacesKept is how long places are remembered, at least.
	PlacesKept = 15 * time.Minute
	// placesExpire is when they are forgotten: that of a page 0 is not remembered anew each time that it is served.
	placesExpire = PlacesKept + PlacesKept/2
	// walksKept is how many walks of one list may go on beside the one that began last.
	walksKept = 50
)

const (
	// placesNear are remembered in any case behind a new one: who walks may ask for a page again.
	placesNear = 50
	// placesApart is how many rows are between two others at most: counting so many takes less than a millisecond.
	placesApart = 10_000
)

// memory is the places of a node that shares its database with nobody.
type memory struct {
	mu    sync.Mutex
	now   func() int64 // in microseconds
	lists *expirable.LRU[listKey, *listPlaces]
}

func newMemory() *memory {
	return &memory{now: store.Now, lists: expirable.NewLRU[listKey, *listPlaces](1000, nil, placesExpire)}
}

// listPlaces are those of one list.
type listPlaces struct {
	at []servedPlace // by rows, no two behind the same number
}

type servedPlace struct {
	place
	served int64
}

func (m *memory) from(_ context.Context, of listKey, rows int64) (place, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.lists.Get(of)
	if !ok {
		return place{}, nil
	}
	known.expire(m.now())
	i, exact := known.find(rows)
	if !exact {
		latest := known.latest()
		for i--; i >= 0 && known.at[i].walk != latest; i-- {
		}
	}
	if i < 0 {
		return place{}, nil
	}
	return known.at[i].place, nil
}

func (*memory) query(listKey, int64) []once { return nil }

func (m *memory) begin(_ context.Context, of listKey, _ string, found ...place) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, now, last := m.list(of), m.now(), found[len(found)-1]
	kept := known.frontiers()
	i, exact := known.find(last.rows)
	passed := slices.ContainsFunc(known.at, func(p servedPlace) bool {
		return p.rows != last.rows && !slices.Contains(kept, p)
	})
	recent := now - (placesExpire - PlacesKept).Microseconds()
	if exact && !passed && known.at[i].boundary == last.boundary && known.at[i].served > recent {
		return nil
	}
	known.at = kept
	for _, p := range found {
		known.put(servedPlace{p, now})
	}
	return nil
}

func (m *memory) add(_ context.Context, of listKey, found ...place) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, now := m.list(of), m.now()
	for _, p := range found {
		known.put(servedPlace{p, now})
	}
	return nil
}

// list returns the places of a list, which are kept from now on.
func (m *memory) list(of listKey) *listPlaces {
	known, ok := m.lists.Peek(of)
	if !ok {
		known = &listPlaces{}
	}
	known.expire(m.now())
	m.lists.Add(of, known)
	return known
}

func (l *listPlaces) find(rows int64) (int, bool) {
	return slices.BinarySearchFunc(l.at, rows, func(p servedPlace, rows int64) int { return cmp.Compare(p.rows, rows) })
}

// put adds a place or replaces the one behind the same number of rows, and thins out those far before it.
func (l *listPlaces) put(p servedPlace) {
	i, exact := l.find(p.rows)
	if exact {
		l.at[i] = p
		return
	}
	l.at = slices.Insert(l.at, i, p)
	far := i - placesNear
	if far < 1 || l.at[far].walk != p.walk || l.at[far+1].rows-l.at[far-1].rows > placesApart {
		return
	}
	l.at = slices.Delete(l.at, far, far+1)
}

// expire forgets places that were served too long ago.
func (l *listPlaces) expire(now int64) {
	l.at = slices.DeleteFunc(l.at, func(p servedPlace) bool { return p.served <= now-placesExpire.Microseconds() })
}

// latest is the walk that began last; 0 when there is none.
func (l *listPlaces) latest() (walk int64) {
	for _, p := range l.at {
		walk = max(walk, p.walk)
	}
	return walk
}

// frontiers are the last places of the last walks, but of those that have ended.
func (l *listPlaces) frontiers() (last []servedPlace) {
	seen := map[int64]bool{}
	for _, p := range slices.Backward(l.at) {
		if !seen[p.walk] && !p.end {
			last = append(last, p)
		}
		seen[p.walk] = true
	}
	slices.Reverse(last)
	walks := slices.Sorted(maps.Keys(seen))
	oldest := walks[max(0, len(walks)-walksKept):]
	return slices.DeleteFunc(last, func(p servedPlace) bool { return p.walk < oldest[0] })
}
