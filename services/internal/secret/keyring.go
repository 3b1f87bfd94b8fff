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

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// maxKeyFile bounds what is read as a key file: a keyset of many keys has a few KiB, and the path may be wrong.
const maxKeyFile = 64 << 10

// ErrUnseal says that a sealed value is damaged, was sealed with another key or for another purpose; which of them
// cannot be told.
var ErrUnseal = errors.New("cannot unseal: the value is damaged, or was sealed with another key or for another purpose")

// Keyring seals and unseals with the key of one file. It is safe for concurrent use.
type Keyring struct {
	path string
	aead tink.AEAD
}

// Open loads the key file. A file that does not exist is made when create is true (mode 0600, missing parent
// directories 0700) and is an error otherwise that wraps [fs.ErrNotExist]; two processes that create the same file end
// up with the same key. A file that others than its owner may read or change is refused.
func Open(path string, create bool) (*Keyring, error) {
	k, err := load(path)
	if !create || !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := createFile(path); err != nil {
		return nil, fmt.Errorf("make key file %s: %w", path, err)
	}
	return load(path)
}

// Path is the file that the key was read from.
func (k *Keyring) Path() string { return k.path }

// Seal encrypts plain. The same aad must be given to Unseal: name in it what the value is and whom it belongs to, so
// that a sealed value that is copied to another row does not open there.
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
		return nil, ErrUnseal // the library's text says no more
	}
	return plain, nil
}

func load(path string) (*Keyring, error) {
	data, err := readPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(data)))
	if err != nil {
		// The text of err could quote the file.
		return nil, fmt.Errorf("key file %s is no Tink keyset in JSON: restore it from a backup", path)
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
		return nil, fmt.Errorf("%s is larger than %d bytes: it is no key file", path, maxKeyFile)
	}
	return data, nil
}

// createFile makes a new key. The file appears complete under its name or not at all, and never replaces one: a hard
// link fails when another process was faster, and then that one's key is right.
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
		// Without this a power cut could lose the key of what is sealed with it from now on.
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
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
