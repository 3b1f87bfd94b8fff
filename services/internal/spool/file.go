package spool

import "os"

// File is a file without a name. It is not safe for concurrent use, but for ReadAt. It has no method ReadFrom: that
// would let bytes go by uncounted.
type File struct {
	file    *os.File
	space   Space
	limited bool
	counted int64
	closed  bool
}

// Write implements io.Writer. All bytes must be new: nothing is written twice.
func (f *File) Write(p []byte) (int, error) {
	if err := f.count(len(p)); err != nil {
		return 0, err
	}
	return f.file.Write(p)
}

// WriteAt implements io.WriterAt, for bytes that are new.
func (f *File) WriteAt(p []byte, at int64) (int, error) {
	if err := f.count(len(p)); err != nil {
		return 0, err
	}
	return f.file.WriteAt(p, at)
}

func (f *File) count(n int) error {
	if f.space.spool == nil {
		return nil
	}
	if err := f.space.spool.take(f.space.deploymentID, int64(n), f.limited); err != nil {
		return err
	}
	f.counted += int64(n)
	return nil
}

// Read implements io.Reader.
func (f *File) Read(p []byte) (int, error) { return f.file.Read(p) }

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, at int64) (int, error) { return f.file.ReadAt(p, at) }

// Seek implements io.Seeker.
func (f *File) Seek(offset int64, whence int) (int64, error) { return f.file.Seek(offset, whence) }

// Close gives the room back: the file has no name, and is gone.
func (f *File) Close() error {
	if !f.closed && f.space.spool != nil {
		f.space.spool.give(f.space.deploymentID, f.counted)
	}
	f.closed = true
	return f.file.Close()
}
