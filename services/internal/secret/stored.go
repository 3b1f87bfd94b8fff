package secret

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// storedKey names a key of a store.
type storedKey struct {
	store *store.Store
	name  string
}

// StoredKey returns 32 random bytes that are the same on every node and at every start. The first request for a name
// generates them; the store keeps them sealed. Later requests for the same key read nothing.
func (k *Keyring) StoredKey(ctx context.Context, st *store.Store, name string) (key []byte, err error) {
	if known, ok := k.stored.Load(storedKey{st, name}); ok {
		return slices.Clone(known.([]byte)), nil
	}
	row, err := st.Reader.Setting.Query().Where(setting.Name(name)).Only(tenant.System(ctx))
	if ent.IsNotFound(err) {
		row, err = k.makeStored(ctx, st, name)
	}
	if err == nil {
		key, err = k.Unseal(row.Value, []byte(name))
	}
	if err != nil {
		return nil, fmt.Errorf("key %q of the store: %w", name, err)
	}
	k.stored.Store(storedKey{st, name}, slices.Clone(key))
	return key, nil
}

// makeStored stores a new key, unless another node has stored one, and returns the stored one.
func (k *Keyring) makeStored(ctx context.Context, st *store.Store, name string) (row *ent.Setting, err error) {
	sealed, err := k.Seal(RandomKey(), []byte(name))
	if err != nil {
		return nil, err
	}
	err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.Setting.Create().SetName(name).SetValue(sealed).OnConflictColumns(setting.FieldName).Ignore().Exec(ctx); err != nil {
			return err
		}
		row, err = tx.Setting.Query().Where(setting.Name(name)).Only(ctx)
		return err
	})
	return row, err
}

// RandomKey returns 32 random bytes.
func RandomKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the program instead
	return key
}
