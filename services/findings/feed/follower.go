package feed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
)

const (
	// pollInterval is the time between two readings of the head. A reading without news is one short query.
	pollInterval = 200 * time.Millisecond
	// pageSize is the number of events that are read at once.
	pageSize   = 1000
	lingerTime = 5 * time.Second
	// logMemory is the memory of the latest events of one deployment, in bytes. Slower watchers read the database.
	logMemory = 4 << 20
	// allLogsMemory is the memory of all logs of a node, in bytes.
	allLogsMemory = 64 << 20
)

// follower reads the new events of one deployment while it has watchers, once for all of them.
type follower struct {
	feed         *Feed
	deploymentID int64
	watchers     int           // guarded by the mutex of the feed
	unwatched    time.Time     // when the last watcher left; guarded by the mutex of the feed
	wake         chan struct{} // asks for a reading now

	mu      sync.Mutex
	started int64 // readings
	ended   int64 // readings
	err     error // of the last reading
	known   bool  // whether the head has been read
	head    position
	headAt  int64  // number of the first page behind head
	log     []page // the latest pages, without gaps
	first   int64  // number of log[0]
	bytes   int    // memory of the log
	changed chan struct{}
}

// page has consecutive events.
type page struct {
	*batch
	from, to position
}

func newFollower(f *Feed, deploymentID int64) *follower {
	return &follower{feed: f, deploymentID: deploymentID, wake: make(chan struct{}, 1), changed: make(chan struct{})}
}

// run reads until ctx ends, or until the feed lets the follower go.
func (f *follower) run(ctx context.Context) {
	ctx = tenant.NewContext(ctx, f.deploymentID)
	tick := time.NewTicker(f.feed.poll)
	defer tick.Stop()
	for {
		f.poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-tick.C:
		}
		if f.feed.release(f) {
			return
		}
	}
}

// poll reads the head, and the events up to it.
func (f *follower) poll(ctx context.Context) {
	f.mu.Lock()
	f.started++
	from, known := f.head, f.known
	f.mu.Unlock()
	var head position
	var err error
	if !known {
		err = f.feed.source.adopt(ctx)
	}
	if err == nil {
		head, err = f.feed.source.head(ctx)
	}
	for err == nil && known && !from.equal(head) {
		var events []*ent.FindingEvent
		var to position
		if events, to, err = f.feed.source.read(ctx, from, head, pageSize); err == nil {
			f.add(page{batch: newBatch(f.feed, f.deploymentID, events), from: from, to: to})
			from = to
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = err; err == nil {
		f.head, f.headAt, f.known = head, f.first+int64(len(f.log)), true
	} else {
		f.forget() // the log ends inside a range; the next reading starts at the head again
	}
	f.ended++
	f.notify()
}

// add appends a page to the log and drops the oldest ones over the limit.
func (f *follower) add(p page) {
	limit := f.feed.logLimit()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, p)
	f.bytes += p.size
	for f.bytes > limit && len(f.log) > 0 {
		f.bytes -= f.log[0].size
		f.log = slices.Delete(f.log, 0, 1)
		f.first++
	}
	f.notify()
}

// forget empties the log.
func (f *follower) forget() {
	f.first += int64(len(f.log))
	f.log, f.bytes = nil, 0
	f.headAt = -1
}

func (f *follower) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// fresh waits for a reading that began after the call, so that the head has everything that was committed before.
func (f *follower) fresh(ctx context.Context) (position, error) {
	f.mu.Lock()
	want := f.started + 1
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
	for {
		f.mu.Lock()
		head, err, ended, changed := f.head, f.err, f.ended, f.changed
		f.mu.Unlock()
		if ended >= want {
			return head, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return position{}, ctx.Err()
		}
	}
}

// state is what a watcher needs of a follower.
type state struct {
	page    page // the next page; without a batch when there is none in the log
	lost    bool // the next page is no longer in the log
	head    position
	headAt  int64 // number of the page behind head; -1 when the log does not continue there
	err     error
	changed <-chan struct{} // closed by the next change
}

// at returns the state for a watcher whose next page has the number.
func (f *follower) at(number int64) state {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := state{head: f.head, headAt: f.headAt, err: f.err, changed: f.changed}
	switch i := number - f.first; {
	case i < 0 || i > int64(len(f.log)):
		s.lost = true
	case i < int64(len(f.log)):
		s.page = f.log[i]
	}
	if f.headAt < f.first {
		s.headAt = -1
	}
	return s
}
