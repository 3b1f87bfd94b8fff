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

// keyName is what the server calls its key file in the data directory.
const keyName = "palisade.key"

// checkKeys checks the key file at hand, and the one that a server on a SQLite target would take.
func checkKeys(ctx context.Context, source *database, keyFile string, to Endpoint) error {
	if err := checkKey(ctx, source, keyFile); err != nil || to.SQLite == "" {
		return err
	}
	beside := filepath.Join(filepath.Dir(to.SQLite), keyName)
	if _, err := os.Stat(beside); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := checkKey(ctx, source, beside); err != nil {
		return fmt.Errorf("the key file beside the target: %w", err)
	}
	return nil
}

// checkKey makes sure that the key file at hand is that of the source: without it the target would be of no use,
// because credentials, signing keys and the audit chain are sealed with it.
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
		return fmt.Errorf("%w; what is sealed in the source is of no use without its key: name the file with --key-file", err)
	}
	return keyring.Verify(check)
}
