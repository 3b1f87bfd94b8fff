package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/palisade/palisade/services/internal/store"
)

// TestLookupsAreShared takes look-ups of a tenth of a second, which tell how many began before them.
func TestLookupsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began int64
		l := newLookups(func(ctx context.Context, _ []byte) (*tokenRow, error) {
			row := &tokenRow{ID: began}
			began++
			select {
			case <-time.After(100 * time.Millisecond):
				return row, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		hash, other := make([]byte, sha256.Size), append(make([]byte, sha256.Size-1), 1)
		ask := func(ctx context.Context, hash []byte, want int64, wantErr error) {
			go func() {
				row, err := l.of(ctx, hash)
				switch {
				case !errors.Is(err, wantErr):
					t.Errorf("look-up %d: %v, want %v", want, err, wantErr)
				case err == nil && row.ID != want:
					t.Errorf("got look-up %d, want %d", row.ID, want)
				}
			}()
			synctest.Wait()
		}
		impatient, cancel := context.WithCancel(t.Context())
		ask(impatient, hash, 0, context.Canceled)
		for range 5 {
			ask(t.Context(), hash, 2, nil) // that after the one under way, and after that of the other token
		}
		ask(t.Context(), other, 1, nil)
		gone, leave := context.WithCancel(t.Context())
		ask(gone, hash, 2, context.Canceled)
		leave()
		time.Sleep(50 * time.Millisecond)
		cancel() // ends the first look-up, not that of the others
		synctest.Wait()
		if began != 3 {
			t.Errorf("%d look-ups have begun, want 3", began)
		}
		ask(t.Context(), hash, 3, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if began != 4 || len(l.running) != 0 {
			t.Errorf("%d look-ups, want 4; %d are left", began, len(l.running))
		}
		ask(t.Context(), hash, 4, nil)
		time.Sleep(time.Hour)
	})
}

// TestLookupsThatFail has a look-up fail, never end or panic: that is felt by the call that made it, and by no other one.
func TestLookupsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := func(ctx context.Context) (*tokenRow, error) { return nil, errors.New("broken") }
		var good atomic.Int64
		var made atomic.Int64
		l := newLookups(func(ctx context.Context, _ []byte) (*tokenRow, error) {
			time.Sleep(time.Millisecond)
			if made.Add(1) <= 2 { // that of the first call, and the first shared one
				return bad(ctx)
			}
			return &tokenRow{}, nil
		})
		hash := make([]byte, sha256.Size)
		ask := func() {
			defer func() { _ = recover() }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if row, err := l.of(ctx, hash); err == nil && row != nil {
				good.Add(1)
			}
		}
		for name, how := range map[string]func(ctx context.Context) (*tokenRow, error){
			"fails":      bad,
			"never ends": func(ctx context.Context) (*tokenRow, error) { <-ctx.Done(); return nil, ctx.Err() },
			"panics":     func(context.Context) (*tokenRow, error) { panic("broken") },
		} {
			bad = how
			made.Store(0)
			good.Store(0)
			first, cancel := context.WithTimeout(t.Context(), time.Minute)
			go func() {
				defer func() { _ = recover() }()
				_, _ = l.of(first, hash)
			}()
			synctest.Wait()
			for range 5 {
				go ask()
			}
			synctest.Wait()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if good.Load() < 4 { // where the first never ends, one of the five makes the second
				t.Errorf("%s: %d of 5 other calls were answered in time", name, good.Load())
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			cancel()
			l.mu.Lock()
			if len(l.running) != 0 {
				t.Errorf("%s: %d look-ups are left", name, len(l.running))
			}
			l.mu.Unlock()
		}
	})
}

// TestRevocationUnderLoad revokes a token that many use: whoever comes after that is refused, although others wait for look-ups that
// began before.
func TestRevocationUnderLoad(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		for range 10 {
			row, value := s.createToken(t, s.spec())
			var revoked, stop atomic.Bool
			var after atomic.Int64
			users := make(chan struct{})
			for range 16 {
				go func() {
					defer func() { users <- struct{}{} }()
					for !stop.Load() {
						ended := revoked.Load()
						p, err := s.login(t, value)
						if ended {
							after.Add(1)
							assertBadCredential(t, p, err)
						}
					}
				}()
			}
			time.Sleep(10 * time.Millisecond)
			if err := s.tokens.Revoke(t.Context(), s.first.Deployment.ID, row.ID); err != nil {
				t.Fatal(err)
			}
			revoked.Store(true)
			for after.Load() < 100 {
				time.Sleep(time.Millisecond)
			}
			stop.Store(true)
			for range 16 {
				<-users
			}
			if t.Failed() {
				return
			}
		}
	})
}
