package secret

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// onEachStore runs a test on an empty store of each kind.
func onEachStore(t *testing.T, test func(t *testing.T, st *store.Store)) {
	storetest.Each(t, func(t *testing.T, o store.Options) { test(t, storetest.Open(t, o)) })
}

func TestEnsureKey(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		ctx, right, wrong := context.Background(), newKeyring(t), newKeyring(t)
		for range 2 {
			if err := EnsureKey(ctx, st, right); err != nil {
				t.Fatal(err)
			}
		}
		err := EnsureKey(ctx, st, wrong)
		if !errors.Is(err, ErrWrongKey) || !strings.Contains(err.Error(), wrong.Path()) || !strings.Contains(err.Error(), "PALISADE_KEY_FILE") {
			t.Errorf("wrong key: %v", err)
		}
		if err := EnsureKey(ctx, st, right); err != nil {
			t.Errorf("the right key after a wrong one: %v", err)
		}
	})
}

func TestEnsureKeyAtOnceLetsOneKeyWin(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		keys := []*Keyring{newKeyring(t), newKeyring(t), newKeyring(t)}
		errs := make([]error, len(keys))
		var group sync.WaitGroup
		for i := range keys {
			group.Go(func() { errs[i] = EnsureKey(context.Background(), st, keys[i]) })
		}
		group.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, ErrWrongKey):
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d keys fit, want 1: %v", won, errs)
		}
	})
}

func TestOpenForDoesNotReplaceALostKey(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, st *store.Store) {
		ctx, path := context.Background(), filepath.Join(t.TempDir(), "palisade.key")
		first, err := OpenFor(ctx, st, path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := OpenFor(ctx, st, path)
		if err != nil {
			t.Fatal(err)
		}
		assertOpens(t, again, first)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFor(ctx, st, path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "restore") {
			t.Errorf("lost key: %v", err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a new key was made: %v", err)
		}
		if k, err := OpenFor(ctx, st, newKeyring(t).Path()); !errors.Is(err, ErrWrongKey) || k != nil {
			t.Errorf("wrong key: %v, %v", k, err)
		}
	})
}

func TestVerifyRefusesOtherSealedValues(t *testing.T) {
	k := newKeyring(t)
	sealed, err := k.Seal([]byte("something else"), []byte(settingKeyCheck))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Verify(sealed); !errors.Is(err, ErrWrongKey) {
		t.Errorf("got %v", err)
	}
}
