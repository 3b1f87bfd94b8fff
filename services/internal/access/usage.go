package access

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// usageResolution is the resolution of the last use of a credential: one write per minute, over all nodes.
	usageResolution = time.Minute
	// usageDelay is how long uses are collected before they are written in one batch.
	usageDelay = 5 * time.Second
	// maxPendingUses limits the memory. A later request records the credentials beyond it.
	maxPendingUses = 10_000
	// usageBatch keeps an IN list below the bind variable limit of the databases.
	usageBatch = 1000
	// usageTimeout ends a write that hangs.
	usageTimeout = 10 * time.Second
)

// usage writes last_used_at of tokens or sessions outside the requests that use them.
type usage struct {
	st  *store.Store
	log *slog.Logger
	of  string // for messages
	// write records one time as the last use of the rows with these ids, unless a recent time is stored.
	write func(ctx context.Context, tx *ent.Tx, batch []int64, now time.Time) error

	mu      sync.Mutex
	pending map[int64]struct{}

	stop chan struct{}
	done chan struct{}
	once sync.Once
}

func newUsage(st *store.Store, log *slog.Logger, of string, write func(context.Context, *ent.Tx, []int64, time.Time) error) *usage {
	return &usage{
		st: st, log: log, of: of, write: write,
		pending: make(map[int64]struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// record notes a use unless the stored one (microseconds; 0 for never) is recent enough.
func (u *usage) record(id, lastUsedAt, now int64) {
	if now-lastUsedAt < usageResolution.Microseconds() {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.pending) < maxPendingUses {
		u.pending[id] = struct{}{}
	}
}

func (u *usage) start() {
	go func() {
		defer close(u.done)
		ticker := time.NewTicker(usageDelay)
		defer ticker.Stop()
		for {
			select {
			case <-u.stop:
				return
			case <-ticker.C:
				if err := u.flush(context.Background(), time.Now()); err != nil {
					u.log.Warn("the last use of "+u.of+" was not written; the next use will be", "error", err)
				}
			}
		}
	}()
}

func (u *usage) close(ctx context.Context) error {
	u.once.Do(func() { close(u.stop) })
	select {
	case <-u.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return u.flush(ctx, time.Now())
}

// flush writes all pending uses with one time, which is at most usageDelay late: a twelfth of the resolution. Uses that
// cannot be written are dropped; the next request records a new one.
func (u *usage) flush(ctx context.Context, now time.Time) error {
	u.mu.Lock()
	ids := slices.Sorted(maps.Keys(u.pending))
	clear(u.pending)
	u.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(tenant.System(ctx), usageTimeout)
	defer cancel()
	err := u.st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		for batch := range slices.Chunk(ids, usageBatch) {
			if err := u.write(ctx, tx, batch, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the last use of %s: %w", u.of, err)
	}
	return nil
}

// recordTokenUses writes the last use of tokens. The condition keeps a recent time that another node has written.
func recordTokenUses(ctx context.Context, tx *ent.Tx, batch []int64, now time.Time) error {
	return tx.Token.Update().
		Where(token.IDIn(batch...), token.Or(token.LastUsedAtIsNil(), token.LastUsedAtLTE(store.Micros(now.Add(-usageResolution))))).
		SetLastUsedAt(store.Micros(now)).Exec(ctx)
}
