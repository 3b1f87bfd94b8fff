package store

import (
	"context"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/pgtest"
)

// TestWritesThatWaitForALock: Writes of one deployment that all wait for a row lock leave connections to the Writes
// of another deployment.
func TestWritesThatWaitForALock(t *testing.T) {
	t.Parallel()
	st := open(t, Options{Database: pgtest.NewDatabase(t)})
	busy, quiet := tenant.NewContext(t.Context(), 1), tenant.NewContext(t.Context(), 2)
	locked, release := make(chan struct{}), make(chan struct{})
	lock := func(ctx context.Context) error {
		tx, _ := st.Tx(ctx)
		_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(4711)")
		return err
	}
	ended := make(chan error, 101)
	go func() {
		ended <- st.Write(busy, func(ctx context.Context, _ *ent.Tx) error {
			err := lock(ctx)
			close(locked)
			<-release
			return err
		})
	}()
	<-locked
	for range 100 {
		go func() { ended <- st.Write(busy, func(ctx context.Context, _ *ent.Tx) error { return lock(ctx) }) }()
	}
	for st.Waiting() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(quiet, 2*time.Minute)
	defer cancel()
	if err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		own, _ := st.Tx(ctx)
		_, err := own.ExecContext(ctx, "SELECT 1")
		return err
	}); err != nil {
		t.Errorf("another deployment: %v", err)
	}
	close(release)
	for range 101 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
