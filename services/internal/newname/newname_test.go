package newname

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/palisade/palisade/services/internal/newname/nolinks"
)

// TestGive: with and without hard links, the name is given once, and a file is never replaced.
func TestGive(t *testing.T) {
	t.Parallel()
	for _, answer := range append([]syscall.Errno{0}, nolinks.Errors...) {
		dir := t.TempDir()
		name := filepath.Join(dir, "name")
		give := func(content string) error {
			file := filepath.Join(dir, "staged "+content)
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				return err
			}
			if answer == 0 {
				return Give(file, name)
			}
			return nolinks.Run(t, answer, func() error { return Give(file, name) })
		}
		if err := give("first"); err != nil {
			t.Errorf("%d: %v", answer, err)
		}
		if err := give("second"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%d: a second file: %v", answer, err)
		}
		if content, err := os.ReadFile(name); err != nil || string(content) != "first" {
			t.Errorf("%d: %q, %v", answer, content, err)
		}
		missing := func() error { return Give(filepath.Join(dir, "absent"), filepath.Join(dir, "other")) }
		if err := nolinks.Run(t, syscall.EPERM, missing); err == nil {
			t.Error("an absent file got a name")
		}
		if _, err := os.Lstat(filepath.Join(dir, "other")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d: a name for no file: %v", answer, err)
		}
	}
}

// TestGiveOtherErrors: an error that says nothing about hard links is returned.
func TestGiveOtherErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, name := filepath.Join(dir, "staged"), filepath.Join(dir, "name")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := nolinks.Run(t, syscall.EIO, func() error { return Give(file, name) })
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the name is taken: %v", err)
	}
}
