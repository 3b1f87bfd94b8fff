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
	// keyName is the setting that stores the key of all chains.
	keyName = "audit_key"
	// keySize is the size of the key in a store without origins.
	keySize = 32
	// markedSize is the size of the key in a store where each deployment has an origin (see mark).
	markedSize = 64
)

var (
	// ErrNoKey means that the chains' key is missing although deployments exist. A new key would make all earlier
	// entries look edited. The key is part of every database backup.
	ErrNoKey = errors.New("the key of the audit trail is missing from the database (table settings, row audit_key) although deployments or " +
		"entries exist: it was removed. Restore that row from a backup; or, to continue without the earlier entries, run: palisade audit begin")
	// ErrKey means that the stored key cannot be decrypted.
	ErrKey = errors.New("the key of the audit trail (table settings, row audit_key) was edited: it cannot be opened with the key file. " +
		"Restore that row from a backup")
)

// mark extends a key to record that the store has origins. It appends zeros, with which HMAC pads keys anyway (RFC
// 2104), so the hashes stay the same, also for nodes of the previous version. The key is stored sealed: only with
// the key file can the mark be removed, or a key without one be created.
func mark(key []byte) []byte {
	return append(bytes.Clone(key[:keySize]), make([]byte, markedSize-keySize)...)
}

// Open opens a store's trail for writing. In an empty store it creates the key. A store from a version without
// origins gets them now. In any other store a missing key is ErrNoKey.
func Open(ctx context.Context, st *store.Store, keyring *secret.Keyring, log *slog.Logger) (*Trail, error) {
	t, err := Read(ctx, st, keyring, log)
	if errors.Is(err, ErrNoKey) {
		var fresh bool
		if fresh, err = isFresh(ctx, st); err == nil && !fresh {
			// Read again: another node may have created the key concurrently. Creating it is the first write of a node.
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
	if err := t.sealIDs(ctx); err != nil {
		return nil, fmt.Errorf("audit trail: %w", err)
	}
	st.OnDeployment(t.onDeployment)
	return t, nil
}

// Read opens a store's trail without changes, for verifying and listing. Errors: ErrNoKey, ErrKey.
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

// isFresh reports whether the store is empty, so that no key can have existed.
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

// BeginTrails is Establish for operators: the first entry of each new chain is the entry of the call.
func BeginTrails(ctx context.Context, st *store.Store, keyring *secret.Keyring, log *slog.Logger, call Call) (adopted []int64, err error) {
	_, adopted, err = establish(ctx, st, keyring, log, &call)
	return adopted, err
}

// Establish creates the key if it is missing, gives an origin to every deployment without one, and returns the ids
// of these deployments. Use it only when nothing can have been removed: for the upgrade of a store, and for
// operators.
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
			query.ForUpdate() // serializes nodes that start together
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
