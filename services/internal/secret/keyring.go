package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/palisade/palisade/services/internal/newname"
)

// maxKeyFile limits what is read as a key file, since the path may be wrong. A keyset of many keys has a few KiB.
const maxKeyFile = 64 << 10

// ErrUnseal means that a sealed value is damaged, or was sealed with another key or for another purpose. These cases
// cannot be distinguished.
var ErrUnseal = errors.New("cannot unseal: the value is damaged, or was sealed with another key or for another purpose")

// Keyring seals and unseals with the key of one file. It is safe for concurrent use.
type Keyring struct {
	path string
	aead tink.AEAD
	// stored are the stored keys that were read, by storedKey.
	stored sync.Map
}

// Open loads the key file. If it does not exist and create is true, Open creates it (mode 0600, missing parent
// directories 0700); otherwise the error wraps [fs.ErrNotExist]. Two processes that create the same file get the same
// key. A file that anyone except its owner may read or change is refused.
func Open(path string, create bool) (*Keyring, error) {
	if create {
		awaitContent(path)
	}
	k, err := load(path)
	if !create || !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := createFile(path); err != nil {
		return nil, fmt.Errorf("make key file %s: %w", path, err)
	}
	awaitContent(path)
	return load(path)
}

// awaitContent waits while another process creates the key file on a volume without hard links, where it is empty for a
// moment; see [newname.Give].
func awaitContent(path string) {
	for range 50 {
		if info, err := os.Stat(path); err != nil || info.Size() > 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Path is the file that the key was read from.
func (k *Keyring) Path() string { return k.path }

// Seal encrypts plain. Unseal needs the same aad. It should name the value and its owner, so that a sealed value that
// is copied to another row cannot be opened there.
func (k *Keyring) Seal(plain, aad []byte) ([]byte, error) {
	sealed, err := k.aead.Encrypt(plain, aad)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed, nil
}

// Unseal decrypts what Seal returned for the same aad; any failure is [ErrUnseal].
func (k *Keyring) Unseal(sealed, aad []byte) ([]byte, error) {
	plain, err := k.aead.Decrypt(sealed, aad)
	if err != nil {
		return nil, ErrUnseal // the library's text has no more detail
	}
	return plain, nil
}

func load(path string) (*Keyring, error) {
	data, err := readPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("key file %s is empty: restore it from a backup; remove it only if no server has started with it", path)
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(data)))
	if err != nil {
		// The text of err could quote the file.
		return nil, fmt.Errorf("key file %s is not a Tink keyset in JSON: restore it from a backup", path)
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("key file %s holds no key for sealing (AEAD): restore it from a backup", path)
	}
	return &Keyring{path: path, aead: primitive}, nil
}

// readPrivate checks the open file, not the path, so that what is checked is what is read.
func readPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s may be read or changed by others than its owner (mode %04o): run `chmod 600 %s`", path, mode, path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxKeyFile {
		return nil, fmt.Errorf("%s is larger than %d bytes: it is not a key file", path, maxKeyFile)
	}
	return data, nil
}

// createFile creates a new key. The file appears complete or not at all, and never replaces another: if another process
// was first, its key is used.
func createFile(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data, err := newKeyset()
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".palisade-key-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(data)
	if err == nil {
		// Without it, a power failure could lose the key of everything that is sealed from now on.
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := newname.Give(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

func newKeyset() ([]byte, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&out)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// syncDir makes the new name durable. Windows has no such call.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
