package clone

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Limits of a walk: nested trees can expand without end.
const (
	maxEntries = 1_000_000
	maxDepth   = 200
	maxPath    = 4096 // bytes
)

// File is one regular file of a commit.
type File struct {
	// Path is Git's path: with slashes; its segments may contain any bytes except NUL and slash.
	Path string
	// Size is in bytes; -1 if the host left the file out because of its size.
	Size int64

	checkout *Checkout
	hash     plumbing.Hash
}

// Files calls visit for each regular file in Git's path order. It skips links and submodules and stops at the first
// error.
func (c *Checkout) Files(ctx context.Context, visit func(File) error) error {
	w := walk{checkout: c, visit: visit}
	return w.directory(ctx, c.tree, "", 0)
}

// walk traverses directories. The library's own walker ends without an error at a directory that was not received.
type walk struct {
	checkout *Checkout
	visit    func(File) error
	entries  int
}

func (w *walk) directory(ctx context.Context, tree *object.Tree, prefix string, depth int) error {
	for _, entry := range tree.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.entries++; w.entries > maxEntries || depth > maxDepth {
			return &Error{Text: "the repository has too many files", Permanent: true}
		}
		path := prefix + entry.Name
		if len(path) > maxPath {
			return &Error{Text: fmt.Sprintf("the repository has a path of more than %d bytes", maxPath), Permanent: true}
		}
		switch {
		case entry.Mode == filemode.Dir:
			inside, err := object.GetTree(w.checkout.storage, entry.Hash)
			if err != nil {
				return explain(ctx, err, nil)
			}
			if err := w.directory(ctx, inside, path+"/", depth+1); err != nil {
				return err
			}
		case regular(entry.Mode):
			if err := w.file(ctx, path, entry.Hash); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) file(ctx context.Context, path string, hash plumbing.Hash) error {
	size, err := w.checkout.storage.EncodedObjectSize(hash)
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		size = -1
	case err != nil:
		return explain(ctx, err, nil)
	}
	return w.visit(File{Path: path, Size: size, checkout: w.checkout, hash: hash})
}

// Content reads the file.
func (f File) Content(ctx context.Context) ([]byte, error) {
	blob, err := object.GetBlob(f.checkout.storage, f.hash)
	if err != nil {
		return nil, explain(ctx, err, nil)
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, explain(ctx, err, nil)
	}
	defer func() { _ = reader.Close() }()
	content, err := io.ReadAll(io.LimitReader(reader, f.Size+1))
	if err == nil && int64(len(content)) != f.Size {
		err = errors.New("the file has another size than its header")
	}
	if err != nil {
		return nil, explain(ctx, err, nil)
	}
	return content, nil
}

// Find returns the regular file at a path of Git; found is false if the commit has none there.
func (c *Checkout) Find(ctx context.Context, path string) (f File, found bool, err error) {
	entry, err := c.tree.FindEntry(path)
	if errors.Is(err, object.ErrEntryNotFound) || errors.Is(err, object.ErrDirectoryNotFound) {
		return f, false, nil
	}
	if err != nil || !regular(entry.Mode) {
		return f, false, explain(ctx, err, nil)
	}
	w := walk{checkout: c, visit: func(file File) error { f = file; return nil }}
	err = w.file(ctx, path, entry.Hash)
	return f, err == nil, err
}

// regular reports whether an entry of a tree is a file with content, and no link or submodule.
func regular(mode filemode.FileMode) bool {
	return mode == filemode.Regular || mode == filemode.Executable || mode == filemode.Deprecated
}
