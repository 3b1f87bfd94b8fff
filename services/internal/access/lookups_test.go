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

// TestLookupsAreShared takes look-ups of a second, which tell how many began before them.
func TestLookupsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began int64
		l := newLookups(func(ctx context.Context, _ []byte) (*tokenRow, error) {
			row := &tokenRow{ID: began}
			began++
			select {
			case <-time.After(time.Second):
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
		time.Sleep(500 * time.Millisecond)
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

// TestRevocationUnderLoad revokes a token that many use: whoever comes after that is refused, although others wait for look-ups that
// began before.
func TestRevocationUnderLoad(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		for range 10 {
			row, value := s.createToken(t, s.spec())
			var revoked, stop atomic.Bool
			var late, after atomic.Int64
			users := make(chan struct{})
			for range 16 {
				go func() {
					defer func() { users <- struct{}{} }()
					for !stop.Load() {
						ended := revoked.Load()
						_, err := s.login(t, value)
						if ended {
							after.Add(1)
							if err == nil {
								late.Add(1)
							}
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
			if late.Load() > 0 {
				t.Fatalf("%d of %d calls after the revocation were let in", late.Load(), after.Load())
			}
		}
	})
}
