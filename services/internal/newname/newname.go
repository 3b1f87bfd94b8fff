// Package newname gives new files their names and modes, also on volumes without hard links or modes of files. It never
// replaces a file.
package newname

import (
	"errors"
	"os"
	"syscall"
)

// Give gives a complete file a new name in a directory of the same volume. The error wraps [fs.ErrExist] if something
// has the name. Unlike a rename, a hard link never replaces a file. Volumes without hard links (CIFS, exFAT, many of
// FUSE) get an empty file with the new name first, which the file then replaces. There, and only there, the file has
// lost its old name afterwards, and another process may see the empty file for a moment.
func Give(file, name string) error {
	err := os.Link(file, name)
	if err == nil || !unsupported(err) {
		return err
	}
	if _, err := os.Stat(file); err != nil {
		return err // nothing to name: the name stays free
	}
	reserved, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = reserved.Close()
	if err == nil {
		err = os.Rename(file, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// MakePrivate lets only the owner read and write a file, if its volume has modes of files.
func MakePrivate(file string) error {
	err := os.Chmod(file, 0o600)
	if unsupported(err) {
		return nil
	}
	return err
}

// unsupported reports whether a volume has refused what it does not have, such as hard links or modes of files. File
// systems answer EPERM, EOPNOTSUPP or ENOSYS.
func unsupported(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, errors.ErrUnsupported)
}
