package snapshots

import (
	"context"
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/internal/store"
)

// Snapshots caches the columns of recently requested deployments, and updates them with new events.
//
// Each change of a finding's attributes creates an event: scans record updates, and triage and verdicts record
// decisions. So an event means that its finding must be read again. Data of other objects (names, tags, teams,
// archiving and primary branches of projects, names and categories of rules) is not in the columns: each report looks
// it up.
type Snapshots struct {
	store *store.Store

	mu      sync.Mutex
	limit   int64
	bytes   int64
	entries *simplelru.LRU[int64, *entry]
}

// entry is the snapshot of one deployment.
type entry struct {
	turn chan struct{} // holds one token; its holder may change the fields below

	table    *columns.Table
	snapshot *columns.Snapshot // nil before the first use
	mark     watermark
	applied  map[int64]struct{} // events after the watermark that the snapshot contains
	base     base
	past     *past // nil before the first use, or if no branch changed

	bytes int64 // guarded by Snapshots.mu
}

// NewSnapshots caches about limit bytes, and always the last used entry.
func NewSnapshots(st *store.Store, limit int64) *Snapshots {
	entries, err := simplelru.NewLRU[int64, *entry](1<<30, nil)
	if err != nil {
		panic(err) // returns an error only for a size below 1
	}
	return &Snapshots{store: st, limit: limit, entries: entries}
}

// Of returns the columns of a deployment with all events committed before the call. Updates of one deployment are
// serialized; they do not wait for readers of a snapshot.
func (s *Snapshots) Of(ctx context.Context, deploymentID int64) (*columns.Snapshot, error) {
	return s.of(ctx, deploymentID, func(_ context.Context, e *entry, _ loader) (*columns.Snapshot, error) { return e.snapshot, nil })
}

// of returns a view of the columns.
func (s *Snapshots) of(
	ctx context.Context, deploymentID int64, view func(ctx context.Context, e *entry, l loader) (*columns.Snapshot, error),
) (*columns.Snapshot, error) {
	e := s.entry(deploymentID)
	select {
	case <-e.turn:
		defer func() { e.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l := loader{s.store, deploymentID}
	if err := e.advance(ctx, l); err != nil {
		return nil, err
	}
	shown, err := view(ctx, e, l)
	s.trackSize(deploymentID, e)
	return shown, err
}

func (s *Snapshots) entry(deploymentID int64) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries.Get(deploymentID); ok {
		return e
	}
	e := &entry{turn: make(chan struct{}, 1)}
	e.turn <- struct{}{}
	s.entries.Add(deploymentID, e)
	return e
}

// trackSize records the size of an entry and evicts the least recently used ones.
func (s *Snapshots) trackSize(deploymentID int64, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current, ok := s.entries.Peek(deploymentID); !ok || current != e {
		return // it was evicted concurrently
	}
	now := e.snapshot.Bytes() + e.past.size()
	s.bytes += now - e.bytes
	e.bytes = now
	for s.bytes > s.limit && s.entries.Len() > 1 {
		_, oldest, _ := s.entries.RemoveOldest()
		s.bytes -= oldest.bytes
	}
}

// base is the state of the events when the snapshot was built: count events with ids up to highest. Transactions that
// were open then may add events until all transactions below next have ended.
type base struct {
	openTransactions bool
	highest, next    int64
	count            int64
}

// rebuildThreshold is the maximum number of new events, of all deployments, to read for one. Above it, and above the
// size of the snapshot, reading all findings again is cheaper.
const rebuildThreshold = 500_000

// advance updates the entry; after an error it is unchanged.
func (e *entry) advance(ctx context.Context, l loader) error {
	now, err := readHighest(ctx, l.store)
	if err != nil {
		return err
	}
	if e.snapshot == nil || now.highest-e.mark.id > max(rebuildThreshold, int64(e.snapshot.Len())) {
		return e.build(ctx, l, now)
	}
	if e.base.openTransactions {
		count, err := l.count(ctx, e.base.highest)
		if err != nil {
			return err
		}
		if count != e.base.count {
			return e.build(ctx, l, now)
		}
		e.base.openTransactions = now.ended < e.base.next
	}
	if now.highest == e.mark.id {
		return nil
	}
	mark := e.mark.observe(now)
	events, err := l.since(ctx, e.mark.id)
	if err != nil {
		return err
	}
	applied := make(map[int64]struct{})
	var touched []int64
	for _, c := range events {
		if _, done := e.applied[c.id]; !done {
			touched = append(touched, c.finding)
		}
		if c.id > mark.id {
			applied[c.id] = struct{}{}
		}
	}
	if len(touched) > 0 {
		rows, err := l.some(ctx, e.table, unique(touched))
		if err != nil {
			return err
		}
		e.snapshot = e.table.With(e.snapshot, rows)
	}
	e.mark, e.applied = mark, applied
	return nil
}

// build reads everything. Events that are committed during the read are after the watermark and are read again.
func (e *entry) build(ctx context.Context, l loader, now reading) (err error) {
	began := base{openTransactions: now.ended < now.next, highest: now.highest, next: now.next}
	if began.openTransactions {
		if began.count, err = l.count(ctx, began.highest); err != nil {
			return err
		}
	}
	table := columns.NewTable()
	snapshot, err := l.all(ctx, table)
	if err != nil {
		return err
	}
	e.table, e.snapshot, e.base, e.applied, e.mark = table, snapshot, began, nil, watermark{id: now.highest}
	return nil
}

func unique(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}
