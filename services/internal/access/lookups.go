package access

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// lookupTimeout ends a look-up that is made for several calls; one that is made for one call ends with it.
const lookupTimeout = 10 * time.Second

// lookups finds tokens. Calls that come with a token while it is looked up for another one share the look-up after it: that one
// begins when all of them have come, so that nobody is told what was true before he asked. Under load most calls of a busy
// token share one, and the database is asked a fraction of the times.
type lookups struct {
	find    func(ctx context.Context, hash []byte) (*tokenRow, error)
	mu      sync.Mutex
	running map[[sha256.Size]byte]*lookup
}

// lookup is one look-up of a token.
type lookup struct {
	row  *tokenRow
	err  error
	done chan struct{} // nil where only the call that makes it waits for it
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
		mine := &lookup{}
		l.running[key] = mine
		l.mu.Unlock()
		l.run(ctx, key, mine)
		return mine.row, mine.err
	}
	if running.next == nil {
		running.next = &lookup{done: make(chan struct{})}
	}
	shared := running.next
	l.mu.Unlock()
	select {
	case <-shared.done:
		return shared.row, shared.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run makes a look-up, and then has the next one made, if anybody waits for it.
func (l *lookups) run(ctx context.Context, key [sha256.Size]byte, this *lookup) {
	this.row, this.err = l.find(ctx, key[:])
	l.mu.Lock()
	if this.next == nil {
		delete(l.running, key)
	} else {
		l.running[key] = this.next
	}
	l.mu.Unlock()
	if this.done != nil {
		close(this.done)
	}
	if this.next != nil {
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
			defer cancel()
			l.run(ctx, key, this.next)
		}()
	}
}
