package access

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"time"

	"entgo.io/ent/dialect/sql"
	jose "github.com/go-jose/go-jose/v4"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/signingkey"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// retention is how long a retired key verifies: until the last token that it signed has expired on every node's clock.
const retention = MaxTTL + 2*leeway

// signingKeysLock names the row that serializes changes of the keys; see [serialize].
const signingKeysLock = "signing_keys_lock"

// signer is a key with its private half.
type signer struct {
	id      string
	private *ecdsa.PrivateKey
}

// EnsureKey creates the first key of a store. When several nodes call it at once, one key is created.
func (i *Issuer) EnsureKey(ctx context.Context) error {
	ctx = tenant.System(ctx)
	exists, err := i.st.Reader.SigningKey.Query().Where(signingkey.RetiredAtIsNil()).Exist(ctx)
	if err != nil || exists {
		return err
	}
	return i.makeFirstKey(ctx)
}

// makeFirstKey checks again under the lock, because another node may have created the key.
func (i *Issuer) makeFirstKey(ctx context.Context) error {
	err := i.st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := serialize(ctx, tx, signingKeysLock); err != nil {
			return err
		}
		exists, err := tx.SigningKey.Query().Where(signingkey.RetiredAtIsNil()).Exist(ctx)
		if err != nil || exists {
			return err
		}
		_, err = i.insertKey(ctx, tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("make the signing key: %w", err)
	}
	return nil
}

// Rotate creates a new key, which signs from now on, and returns its id. Older keys verify until the tokens that they
// signed have expired, and are deleted after that. With revoke, all older keys are deleted: every node refuses their
// tokens from the next request on.
func (i *Issuer) Rotate(ctx context.Context, revoke bool) (keyID string, err error) {
	err = i.st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		if err := serialize(ctx, tx, signingKeysLock); err != nil {
			return err
		}
		now := i.now()
		err := tx.SigningKey.Update().Where(signingkey.RetiredAtIsNil()).SetRetiredAt(store.Micros(now)).Exec(ctx)
		if err != nil {
			return err
		}
		old := tx.SigningKey.Delete()
		if !revoke {
			old.Where(signingkey.RetiredAtLT(store.Micros(now.Add(-retention))))
		}
		_, err = old.Exec(ctx)
		if err != nil {
			return err
		}
		keyID, err = i.insertKey(ctx, tx)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("rotate the signing key: %w", err)
	}
	return keyID, nil
}

func (i *Issuer) insertKey(ctx context.Context, tx *ent.Tx) (keyID string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return "", err
	}
	thumbprint, err := (&jose.JSONWebKey{Key: private.Public()}).Thumbprint(crypto.SHA256) // RFC 7638: key ids are unique
	if err != nil {
		return "", err
	}
	keyID = base64.RawURLEncoding.EncodeToString(thumbprint)
	plain, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", err
	}
	sealed, err := i.key.Seal(plain, signingKeyPurpose(keyID))
	if err != nil {
		return "", err
	}
	return keyID, tx.SigningKey.Create().SetKid(keyID).SetPublicKey(public).SetSealedPrivateKey(sealed).
		SetCreatedAt(store.Micros(i.now())).Exec(ctx)
}

// signingKey reads the newest key from the store each time, because a node must not sign with a key that another node
// has retired.
func (i *Issuer) signingKey(ctx context.Context) (signer, error) {
	row, err := i.st.Reader.SigningKey.Query().Where(signingkey.RetiredAtIsNil()).
		Order(signingkey.ByCreatedAt(sql.OrderDesc()), signingkey.ByID(sql.OrderDesc())).First(ctx)
	if ent.IsNotFound(err) {
		return signer{}, apierr.FailedPrecondition("no signing key exists: start the server once to create it")
	}
	if err != nil {
		return signer{}, err
	}
	plain, err := i.key.Unseal(row.SealedPrivateKey, signingKeyPurpose(row.Kid))
	if err != nil {
		return signer{}, fmt.Errorf("signing key %s: %w", row.Kid, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(plain)
	if err != nil {
		return signer{}, fmt.Errorf("signing key %s: %w", row.Kid, err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return signer{}, fmt.Errorf("signing key %s is a %T, not an ECDSA key", row.Kid, parsed)
	}
	return signer{id: row.Kid, private: private}, nil
}

func signingKeyPurpose(keyID string) []byte { return []byte("signing_key/" + keyID) }

// serialize makes transactions with the same lock run one after the other on every node. The first statement of each
// waits until the transaction before it has ended. SQLite has one writer anyway.
func serialize(ctx context.Context, tx *ent.Tx, lock string) error {
	err := tx.Setting.Create().SetName(lock).SetValue([]byte("lock")).
		OnConflictColumns(setting.FieldName).UpdateValue().Exec(ctx)
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock, err)
	}
	return nil
}

// retiredLongAgo reports whether a key no longer verifies. retiredAt is in microseconds, nil for a key in use.
func retiredLongAgo(retiredAt *int64, now time.Time) bool {
	return retiredAt != nil && now.After(store.Time(*retiredAt).Add(retention))
}
