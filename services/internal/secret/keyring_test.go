package secret

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/internal/newname/nolinks"
)

func newKeyring(t *testing.T) *Keyring {
	t.Helper()
	k, err := Open(filepath.Join(t.TempDir(), "palisade.key"), true)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOpenCreatesAPrivateFileOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "data", "palisade.key")
	if _, err := Open(path, false); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Fatalf("open of a missing file: %v", err)
	}
	first, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	assertMode(t, path, 0o600)
	assertMode(t, filepath.Dir(path), 0o700)
	second, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	assertOpens(t, second, first)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Fatalf("files beside the key: %v, %v", entries, err)
	}
}

func TestOpenAtOnceMakesOneKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "palisade.key")
	keyrings := make([]*Keyring, 8)
	var group sync.WaitGroup
	for i := range keyrings {
		group.Go(func() {
			k, err := Open(path, true)
			if err != nil {
				t.Error(err)
			}
			keyrings[i] = k
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	for _, k := range keyrings[1:] {
		assertOpens(t, k, keyrings[0])
	}
}

// TestOpenWithoutHardLinks: on such a volume, too, processes that start together get one key.
func TestOpenWithoutHardLinks(t *testing.T) {
	for _, answer := range nolinks.Errors {
		path := filepath.Join(t.TempDir(), "data", "palisade.key")
		keyrings := make([]*Keyring, 4)
		var group sync.WaitGroup
		for i := range keyrings {
			group.Go(func() {
				err := nolinks.Run(t, answer, func() (err error) {
					keyrings[i], err = Open(path, true)
					return err
				})
				if err != nil {
					t.Errorf("%s: %v", answer, err)
				}
			})
		}
		group.Wait()
		if t.Failed() {
			return
		}
		for _, k := range keyrings[1:] {
			assertOpens(t, k, keyrings[0])
		}
		assertMode(t, path, 0o600)
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Errorf("files beside the key: %v, %v", entries, err)
		}
	}
}

func TestOpenRefusesWhatOthersCanRead(t *testing.T) {
	k := newKeyring(t)
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o644, 0o777} {
		if err := os.Chmod(k.Path(), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(k.Path(), true); err == nil || !strings.Contains(err.Error(), "chmod 600 "+k.Path()) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if err := os.Chmod(k.Path(), 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(k.Path(), false); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
}

func TestOpenRefusesWhatIsNoKey(t *testing.T) {
	const marker = "correct-horse"
	const hmacKeyset = `{"primaryKeyId":1,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.HmacKey",` +
		`"value":"EgQIAxAQGiCqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqg==","keyMaterialType":"SYMMETRIC"},"status":"ENABLED","keyId":1,"outputPrefixType":"TINK"}]}`
	for name, content := range map[string]string{
		"empty":         "",
		"text":          marker,
		"other JSON":    `{"` + marker + `":true}`,
		"key for MACs":  hmacKeyset,
		"far too large": strings.Repeat("x", maxKeyFile+1),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "palisade.key")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path, true)
			if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), marker) {
				t.Errorf("got %v", err)
			}
			if kept, _ := os.ReadFile(path); string(kept) != content {
				t.Error("the file was changed")
			}
		})
	}
	if _, err := Open(t.TempDir(), true); err == nil {
		t.Error("a directory was taken for a key file")
	}
}

func TestOpenSaysWhyItCannotCreate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(file, "palisade.key")
	if _, err := Open(path, true); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
}

func TestSealOpensForItsPurposeOnly(t *testing.T) {
	k, other := newKeyring(t), newKeyring(t)
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		purpose := rapid.SliceOf(rapid.Byte()).Draw(t, "purpose")
		sealed, err := k.Seal(plain, purpose)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := k.Unseal(sealed, purpose); err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("unsealed %x, %v", got, err)
		}
		if len(plain) >= 4 && bytes.Contains(sealed, plain) {
			t.Fatal("the sealed value shows the plain one")
		}
		if _, err := other.Unseal(sealed, purpose); !errors.Is(err, ErrUnseal) {
			t.Fatalf("another key: %v", err)
		}
		if _, err := k.Unseal(sealed, append(purpose, 'x')); !errors.Is(err, ErrUnseal) {
			t.Fatalf("another purpose: %v", err)
		}
		damaged := bytes.Clone(sealed)
		damaged[rapid.IntRange(0, len(damaged)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := k.Unseal(damaged, purpose); !errors.Is(err, ErrUnseal) {
			t.Fatalf("damaged: %v", err)
		}
	})
}

func TestForgedValuesAreRefused(t *testing.T) {
	k, err := Open(filepath.Join(t.TempDir(), "palisade.key"), true)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := k.Seal([]byte("plain"), []byte("purpose"))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		// A value with a valid beginning reaches more code than a random one.
		value := append(bytes.Clone(sealed[:rapid.IntRange(0, len(sealed)).Draw(t, "kept")]), rapid.SliceOf(rapid.Byte()).Draw(t, "rest")...)
		if got, err := k.Unseal(value, []byte("forged")); err == nil {
			t.Fatalf("a forged value unsealed to %x", got)
		}
	})
}

func assertMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != want {
		t.Errorf("%s has mode %04o, want %04o", path, info.Mode().Perm(), want)
	}
}

// assertOpens checks that both have the same key.
func assertOpens(t *testing.T, k, sealer *Keyring) {
	t.Helper()
	sealed, err := sealer.Seal([]byte("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Unseal(sealed, nil); err != nil {
		t.Error("the keys differ")
	}
}
