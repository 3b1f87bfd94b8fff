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
	// lookupPatience is how long a call waits for a look-up that it shares with others before it looks up the token
	// itself; one that has less than twice as long to live waits for half of that.
	lookupPatience = time.Second
	// lookupTimeout ends a shared look-up; one that is made for one call ends with it.
	lookupTimeout = 10 * time.Second
)

// lookups finds tokens. Calls that come with a token while it is looked up for another one share the look-up after it:
// that one begins when all of them have come, so that nobody is told what was true before he asked. Under load most
// calls of a busy token share one, and the database is asked a fraction of the times. Who gets none, because it fails
// or takes too long, makes his own, so that no call fails by another one's, and who comes after that does not wait for
// one that hangs.
type lookups struct {
	find    func(ctx context.Context, hash []byte) (*tokenRow, error)
	mu      sync.Mutex
	running map[[sha256.Size]byte]*lookup
}

// lookup is one look-up of a token.
type lookup struct {
	row  *tokenRow
	err  error
	done chan struct{} // of a shared one
	next *lookup       // that of the calls that have come since it began
}

func newLookups(find func(ctx context.Context, hash []byte) (*tokenRow, error)) *lookups {
	return &lookups{find: find, running: map[[sha256.Size]byte]*lookup{}}
}

// of finds a token by its hash; nil for an unknown one. Several calls may get the same row: it is not to be changed.
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
	wait := patienceOf(ctx)
	patience := time.NewTimer(wait)
	defer patience.Stop()
	select {
	case <-shared.done:
		if shared.err == nil {
			return shared.row, nil
		}
	case <-patience.C:
		if wait == lookupPatience { // else it may take no longer than usual
			l.leave(key, running, shared)
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return l.find(ctx, hash)
}

func patienceOf(ctx context.Context) time.Duration {
	if deadline, bounded := ctx.Deadline(); bounded {
		return min(lookupPatience, time.Until(deadline)/2)
	}
	return lookupPatience
}

// leave has later calls begin anew while one of these look-ups is under way. Who waits for it already gets it when it
// ends.
func (l *lookups) leave(key [sha256.Size]byte, late ...*lookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(late, l.running[key]) {
		delete(l.running, key)
	}
}

// share makes a look-up for all who wait for it, and then the next one, until nobody waits. It keeps nothing of the
// call that began it alive.
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
		if p := recover(); p != nil { // those who wait panic themselves, where it is reported
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return l.find(ctx, hash)
}

// end has the next look-up take the place of one that has ended, and returns it; nil when nobody waits.
func (l *lookups) end(key [sha256.Size]byte, this *lookup) *lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.running[key] != this: // others did not wait so long, and began anew
	case this.next == nil:
		delete(l.running, key)
	default:
		l.running[key] = this.next
	}
	return this.next
}
