package spool

import "os"

// File is an unnamed temporary file. It is not safe for concurrent use, except ReadAt. It has no ReadFrom method,
// which would write bytes without counting them.
type File struct {
	file    *os.File
	space   Space
	limited bool
	counted int64
	closed  bool
}

// Write implements io.Writer. It must not overwrite bytes, because each write is counted.
func (f *File) Write(p []byte) (int, error) {
	if err := f.count(len(p)); err != nil {
		return 0, err
	}
	return f.file.Write(p)
}

// WriteAt implements io.WriterAt. It must not overwrite bytes.
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

// Close removes the file and releases its bytes.
func (f *File) Close() error {
	if !f.closed && f.space.spool != nil {
		f.space.spool.release(f.space.deploymentID, f.counted, f.limited)
	}
	f.closed = true
	return f.file.Close()
}
