package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// lookupWait is how long a request waits for a shared look-up before it makes its own. A request with less than
	// twice this time left waits for half of its time.
	lookupWait = time.Second
	// lookupTimeout ends a shared look-up. A look-up for one request ends with the request.
	lookupTimeout = 10 * time.Second
)

// lookups finds tokens. Requests that arrive while a look-up of their token is running share the next look-up. It
// starts after all of them have arrived, so that no request gets a result older than itself. Under load this reduces
// the queries for a busy token to a fraction.
//
// A request whose shared look-up fails or takes too long makes its own, so that no request fails because of another
// one. Requests that arrive later do not wait for a look-up that hangs.
type lookups struct {
	find    func(ctx context.Context, hash []byte) (*tokenRow, error)
	mu      sync.Mutex
	running map[[sha256.Size]byte]*lookup
}

// lookup is one look-up of a token.
type lookup struct {
	row  *tokenRow
	err  error
	done chan struct{} // closed when a shared look-up ends
	next *lookup       // shared by the requests that arrived since this one began
}

func newLookups(find func(ctx context.Context, hash []byte) (*tokenRow, error)) *lookups {
	return &lookups{find: find, running: map[[sha256.Size]byte]*lookup{}}
}

// of finds a token by its hash; nil for an unknown one. Several requests may get the same row, so callers must not
// change it.
func (l *lookups) of(ctx context.Context, hash []byte) (*tokenRow, error) {
	key := [sha256.Size]byte(hash)
	l.mu.Lock()
	running := l.running[key]
	if running == nil {
		alone := &lookup{}
		l.running[key] = alone
		l.mu.Unlock()
		defer func() {
			if next := l.end(key, alone); next != nil {
				go l.share(key, next)
			}
		}()
		return l.find(ctx, hash)
	}
	if running.next == nil {
		running.next = &lookup{done: make(chan struct{})}
	}
	shared := running.next
	l.mu.Unlock()
	wait := waitOf(ctx)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-shared.done:
		if shared.err == nil {
			return shared.row, nil
		}
	case <-timer.C:
		if wait == lookupWait { // after a shorter wait the look-up may still be in time
			l.leave(key, running, shared)
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return l.find(ctx, hash)
}

func waitOf(ctx context.Context) time.Duration {
	if deadline, bounded := ctx.Deadline(); bounded {
		return min(lookupWait, time.Until(deadline)/2)
	}
	return lookupWait
}

// leave removes running look-ups that are late, so that later requests start a new one. Requests that already wait
// still get its result.
func (l *lookups) leave(key [sha256.Size]byte, late ...*lookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(late, l.running[key]) {
		delete(l.running, key)
	}
}

// share makes a look-up for all requests that wait for it, and then the next one, until none waits. It keeps no
// reference to the request that started it.
func (l *lookups) share(key [sha256.Size]byte, this *lookup) {
	for this != nil {
		this.row, this.err = l.findShared(key[:])
		close(this.done)
		this = l.end(key, this)
	}
}

func (l *lookups) findShared(hash []byte) (row *tokenRow, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil { // the waiting requests panic themselves, where it is reported
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return l.find(ctx, hash)
}

// end replaces a finished look-up by the next one and returns that. It returns nil when no request waits.
func (l *lookups) end(key [sha256.Size]byte, this *lookup) *lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.running[key] != this: // a waiting request timed out and started a new look-up
	case this.next == nil:
		delete(l.running, key)
	default:
		l.running[key] = this.next
	}
	return this.next
}
