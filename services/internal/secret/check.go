package secret

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// settingKeyCheck names the row of the store that holds the check value.
const settingKeyCheck = "key_check"

// checkText is the plaintext of the check value.
const checkText = "palisade key check"

// ErrWrongKey means that the store was sealed with another key.
var ErrWrongKey = errors.New("the key does not fit the database")

// CheckValue seals the constant that Verify expects.
func (k *Keyring) CheckValue() ([]byte, error) {
	return k.Seal([]byte(checkText), []byte(settingKeyCheck))
}

// Verify checks that a check value was sealed with this key. Otherwise the error wraps [ErrWrongKey], names the file
// and says what to do.
func (k *Keyring) Verify(checkValue []byte) error {
	plain, err := k.Unseal(checkValue, []byte(settingKeyCheck))
	if err == nil && subtle.ConstantTimeCompare(plain, []byte(checkText)) == 1 {
		return nil
	}
	return fmt.Errorf("%w: the credentials in it were sealed with another key than that of %s: "+
		"put the original key file there (every node needs the same one), or name it with --key-file or PALISADE_KEY_FILE", ErrWrongKey, k.path)
}

// EnsureKey writes the check value into a store that has none, and otherwise verifies it: see [Keyring.Verify]. When
// nodes with different keys start at once on an empty store, only one of them succeeds.
func EnsureKey(ctx context.Context, st *store.Store, k *Keyring) error {
	ctx = tenant.System(ctx)
	stored, err := readCheck(ctx, st)
	if err != nil {
		return err
	}
	if stored == nil {
		if err := writeCheck(ctx, st, k); err != nil {
			return err
		}
		if stored, err = readCheck(ctx, st); err != nil {
			return err
		}
	}
	return k.Verify(stored)
}

// OpenFor opens the key of a store: Open, then EnsureKey. It creates a key file only for a store that has never had a
// key. A lost file is therefore reported, not replaced by a key that cannot fit.
func OpenFor(ctx context.Context, st *store.Store, path string) (*Keyring, error) {
	stored, err := readCheck(tenant.System(ctx), st)
	if err != nil {
		return nil, err
	}
	if stored != nil {
		return OpenExisting(ctx, st, path)
	}
	k, err := Open(path, true)
	if err != nil {
		return nil, err
	}
	if err := EnsureKey(ctx, st, k); err != nil {
		return nil, err
	}
	return k, nil
}

// readCheck returns nil when the store has no check value.
func readCheck(ctx context.Context, st *store.Store) ([]byte, error) {
	row, err := st.Reader.Setting.Query().Where(setting.Name(settingKeyCheck)).Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the key check: %w", err)
	default:
		return row.Value, nil
	}
}

// writeCheck keeps a value that another node wrote concurrently.
func writeCheck(ctx context.Context, st *store.Store, k *Keyring) error {
	value, err := k.CheckValue()
	if err != nil {
		return err
	}
	err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return tx.Setting.Create().SetName(settingKeyCheck).SetValue(value).
			OnConflictColumns(setting.FieldName).Ignore().Exec(ctx)
	})
	if err != nil {
		return fmt.Errorf("write the key check: %w", err)
	}
	return nil
}
