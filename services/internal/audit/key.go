package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// keyName is the name of the stored key of all chains.
	keyName = "audit_key"
	// keySize is that of a key of a store whose chains have no origins yet.
	keySize = 32
	// markedSize is that of a key of a store in which each deployment has an origin (see mark).
	markedSize = 64
)

var (
	// ErrNoKey says that the key of the chains is gone although deployments are there: it belongs to every backup of the
	// database, and a new one would make all that was written before look edited.
	ErrNoKey = errors.New("the key of the audit trail is missing from the database (table settings, row audit_key) although deployments or " +
		"entries are there: somebody removed it. Restore that row from a backup; or, to go on without what was written before, run: palisade audit begin")
	// ErrKey says that the stored key of the chains cannot be opened.
	ErrKey = errors.New("the key of the audit trail (table settings, row audit_key) was edited: it cannot be opened with the key file. " +
		"Restore that row from a backup")
)

// mark adds to a key that the store has origins: zeros, which HMAC adds to a key by itself (RFC 2104), so that the
// hashes stay the same, also for nodes of the version before. The key is stored sealed, so whoever has no key file can
// neither remove the mark nor make a key without it.
func mark(key []byte) []byte {
	return append(bytes.Clone(key[:keySize]), make([]byte, markedSize-keySize)...)
}

// Open opens the trail of a store for writing. On an empty store it makes the key of the chains; one from before
// origins were kept gets them now. A missing key is otherwise ErrNoKey.
func Open(ctx context.Context, st *store.Store, keyring *secret.Keyring, log *slog.Logger) (*Trail, error) {
	t, err := Read(ctx, st, keyring, log)
	if errors.Is(err, ErrNoKey) {
		var fresh bool
		if fresh, err = isFresh(ctx, st); err == nil && !fresh {
			// Once more: another node may have begun meanwhile. It makes the key before anything else.
			t, err = Read(ctx, st, keyring, log)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("audit trail: %w", err)
	}
	if t == nil || !t.marked {
		if t, _, err = Establish(ctx, st, keyring, log); err != nil {
			return nil, err
		}
	}
	st.OnDeployment(t.onDeployment)
	return t, nil
}

// Read opens the trail of a store without changing anything, for verifying and listing. Errors: ErrNoKey, ErrKey.
func Read(ctx context.Context, st *store.Store, keyring *secret.Keyring, log *slog.Logger) (*Trail, error) {
	row, err := st.Reader.Setting.Query().Where(setting.Name(keyName)).Only(tenant.System(ctx))
	if ent.IsNotFound(err) {
		return nil, ErrNoKey
	}
	if err != nil {
		return nil, err
	}
	key, err := unsealKey(keyring, row.Value)
	if err != nil {
		return nil, err
	}
	return newTrail(st, key, log), nil
}

func newTrail(st *store.Store, key []byte, log *slog.Logger) *Trail {
	return &Trail{store: st, key: key, marked: len(key) == markedSize, log: log}
}

func unsealKey(keyring *secret.Keyring, sealed []byte) ([]byte, error) {
	key, err := keyring.Unseal(sealed, []byte(keyName))
	if err != nil || len(key) != keySize && len(key) != markedSize {
		return nil, ErrKey
	}
	return key, nil
}

// isFresh tells whether nothing has happened in a store that a key would have been there for.
func isFresh(ctx context.Context, st *store.Store) (bool, error) {
	ctx = tenant.System(ctx)
	for _, exist := range []func(context.Context) (bool, error){
		st.Reader.Deployment.Query().Exist, st.Reader.AuditHead.Query().Exist, st.Reader.AuditEntry.Query().Exist,
	} {
		if found, err := exist(ctx); found || err != nil {
			return false, err
		}
	}
	return true, nil
}

// BeginTrails is Establish for an operator: each chain that it begins has an entry of the call, as its first.
func BeginTrails(ctx context.Context, st *store.Store, keyring *secret.Keyring, log *slog.Logger, call Call) (adopted []int64, err error) {
	_, adopted, err = establish(ctx, st, keyring, log, &call)
	return adopted, err
}

// Establish makes the key of the chains where there is none, gives every deployment an origin that has none, and
// returns the ids of those. It is for who knows that nothing was removed: the upgrade of a store, and operators.
func Establish(ctx context.Context, st *store.Store, keyring *secret.Keyring, log *slog.Logger) (t *Trail, adopted []int64, err error) {
	return establish(ctx, st, keyring, log, nil)
}

func establish(ctx context.Context, st *store.Store, keyring *secret.Keyring, log *slog.Logger, by *Call) (t *Trail, adopted []int64, err error) {
	random := make([]byte, 0, markedSize)
	random = append(random, secret.RandomKey()...)
	fresh, err := keyring.Seal(mark(random), []byte(keyName))
	if err != nil {
		return nil, nil, err
	}
	err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		if err := tx.Setting.Create().SetName(keyName).SetValue(fresh).OnConflictColumns(setting.FieldName).Ignore().Exec(ctx); err != nil {
			return err
		}
		query := tx.Setting.Query().Where(setting.Name(keyName))
		if st.Postgres() {
			query.ForUpdate() // nodes that start at once take turns
		}
		row, err := query.Only(ctx)
		if err != nil {
			return err
		}
		key, err := unsealKey(keyring, row.Value)
		if err != nil {
			return err
		}
		t = newTrail(st, mark(key), log)
		if len(key) == keySize {
			sealed, err := keyring.Seal(t.key, []byte(keyName))
			if err != nil {
				return err
			}
			if err := tx.Setting.Update().Where(setting.Name(keyName)).SetValue(sealed).Exec(ctx); err != nil {
				return err
			}
		}
		if adopted, err = t.adopt(ctx, tx); err != nil || by == nil {
			return err
		}
		for _, id := range adopted {
			if err := t.append(ctx, tx, *by, id, codes.OK, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("begin the audit trail: %w", err)
	}
	return t, adopted, nil
}
