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

// TestLookupsAreShared uses look-ups of a tenth of a second, which return the number of look-ups that began before.
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
			ask(t.Context(), hash, 2, nil) // the look-ups after the running one and after the other token's
		}
		ask(t.Context(), other, 1, nil)
		gone, leave := context.WithCancel(t.Context())
		ask(gone, hash, 2, context.Canceled)
		leave()
		time.Sleep(50 * time.Millisecond)
		cancel() // ends the first look-up, not the shared ones
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

// TestLookupsThatFail: a look-up that fails, never ends or panics affects only the call that made it.
func TestLookupsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := func(ctx context.Context) (*tokenRow, error) { return nil, errors.New("broken") }
		var good atomic.Int64
		var made atomic.Int64
		l := newLookups(func(ctx context.Context, _ []byte) (*tokenRow, error) {
			time.Sleep(time.Millisecond)
			if made.Add(1) <= 2 { // the look-up of the first call, and the first shared one
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
			want := int64(5)
			if name == "never ends" {
				want = 4 // the fifth call makes the second look-up that never ends
			}
			if good.Load() != want {
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

// TestLookupThatHangs: a hanging look-up delays the calls that joined it early, for a moment. It delays neither calls
// with little time nor later calls.
func TestLookupThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made int
		l := newLookups(func(ctx context.Context, _ []byte) (*tokenRow, error) {
			if made++; made == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &tokenRow{}, nil
		})
		hash := make([]byte, sha256.Size)
		stuck, end := context.WithCancel(t.Context())
		go func() { _, _ = l.of(stuck, hash) }()
		synctest.Wait()
		for _, c := range []struct{ left, want time.Duration }{
			{500 * time.Millisecond, 250 * time.Millisecond},
			{time.Minute, lookupWait},
			{time.Minute, 0}, // the call before has timed out on it
		} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), c.left)
			if row, err := l.of(ctx, hash); err != nil || row == nil || time.Since(began) != c.want {
				t.Errorf("with %s to live: %v, %v after %s, want a row after %s", c.left, row, err, time.Since(began), c.want)
			}
			cancel()
		}
		end()
		synctest.Wait()
		if len(l.running) != 0 {
			t.Errorf("%d look-ups are left", len(l.running))
		}
	})
}

// TestLookupThatIsLate: a late look-up still answers the calls that wait for it, even after others started a new one.
func TestLookupThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		l := newLookups(func(context.Context, []byte) (*tokenRow, error) {
			row := &tokenRow{ID: made.Add(1)}
			if row.ID == 1 {
				time.Sleep(lookupWait + 200*time.Millisecond)
			}
			return row, nil
		})
		hash := make([]byte, sha256.Size)
		for _, c := range []struct {
			after time.Duration
			want  int64
		}{
			{0, 1},
			{100 * time.Millisecond, 2},  // times out after 1.1 s
			{900 * time.Millisecond, 4},  // gets the shared look-up, which begins after 1.2 s
			{1150 * time.Millisecond, 3}, // starts a new one
		} {
			go func() {
				time.Sleep(c.after)
				if row, err := l.of(t.Context(), hash); err != nil || row.ID != c.want {
					t.Errorf("after %s: %+v (%v), want look-up %d", c.after, row, err, c.want)
				}
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if made.Load() != 4 || len(l.running) != 0 {
			t.Errorf("%d look-ups, want 4; %d are left", made.Load(), len(l.running))
		}
	})
}

// TestRevocationUnderLoad revokes a token in heavy use. Every later call is refused, although other calls wait for
// look-ups that began earlier.
func TestRevocationUnderLoad(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		s := newServer(t, st)
		for range 10 {
			row, value := s.createToken(t, s.spec())
			var revoked, stop atomic.Bool
			var after atomic.Int64
			users := make(chan struct{}, 16)
			defer stop.Store(true)
			for range cap(users) {
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
			for after.Load() < 100 && !t.Failed() {
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
