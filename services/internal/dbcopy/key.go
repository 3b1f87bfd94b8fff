package dbcopy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/palisade/palisade/services/internal/secret"
)

// keyName is the name of the server's key file in the data directory.
const keyName = "palisade.key"

// checkKeys checks the given key file, and the key file that a server on a SQLite target would use.
func checkKeys(ctx context.Context, source *database, keyFile string, to Endpoint) error {
	if err := checkKey(ctx, source, keyFile); err != nil || to.SQLite == "" {
		return err
	}
	targetKey := filepath.Join(filepath.Dir(to.SQLite), keyName)
	if _, err := os.Stat(targetKey); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := checkKey(ctx, source, targetKey); err != nil {
		return fmt.Errorf("the key file next to the target: %w", err)
	}
	return nil
}

// checkKey checks that the key file belongs to the source. Without the right key the target would be useless:
// credentials, signing keys and the audit chain are sealed with it.
func checkKey(ctx context.Context, source *database, keyFile string) error {
	var check []byte
	err := source.db.QueryRowContext(ctx, "SELECT value FROM settings WHERE name = 'key_check'").Scan(&check)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // no server has ever started on it: nothing is sealed
	}
	if err != nil {
		return fmt.Errorf("read the key check of %s: %w", source.location, err)
	}
	keyring, err := secret.Open(keyFile, false)
	if err != nil {
		return fmt.Errorf("%w; the sealed data of the source is useless without its key: set the key file with --key-file", err)
	}
	return keyring.Verify(check)
}
