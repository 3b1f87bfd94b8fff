package secret

import (
	"context"
	"errors"
	"fmt"

	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// ErrNoCheck means that a store has no check value.
var ErrNoCheck = errors.New("the database has no check value of its key (table settings, row " + settingKeyCheck +
	"): start the server once with these settings (palisade serve), which makes it, or restore that row from a backup")

// OpenExisting opens the key of a store. The key file must exist and fit. It writes nothing. Errors: ErrNoCheck; the
// errors of Open and Verify.
func OpenExisting(ctx context.Context, st *store.Store, path string) (*Keyring, error) {
	stored, err := readCheck(tenant.System(ctx), st)
	if err != nil {
		return nil, err
	}
	if stored == nil {
		return nil, ErrNoCheck
	}
	k, err := Open(path, false)
	if err != nil {
		return nil, fmt.Errorf("%w; the credentials in the database are sealed with that key: restore the file, or name it with --key-file or PALISADE_KEY_FILE", err)
	}
	if err := k.Verify(stored); err != nil {
		return nil, err
	}
	return k, nil
}
