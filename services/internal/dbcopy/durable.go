package dbcopy

import (
	"errors"
	"os"
)

// syncFile makes the content of a file, or the names in a directory, survive a power cut.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
