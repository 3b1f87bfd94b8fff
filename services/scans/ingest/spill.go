package ingest

import (
	"fmt"

	"github.com/palisade/palisade/services/internal/spool"
)

// spill holds data that is written once and read later: in memory up to a limit, then in an unnamed file. The first
// error is kept in failed, and later reads return zeros. Callers check failed at the end.
type spill struct {
	space spool.Space
	// room is how many more bytes stay in memory.
	room   int
	parts  []spilledPart
	open   []byte // the part that is being written
	file   *spool.File
	inFile int64
	failed error
}

// spilledPart is in memory or in the file.
type spilledPart struct {
	bytes []byte
	at    int64
	size  int
}

// partSize is the approximate size of a part in bytes.
const partSize = 256 << 10

// newSpill returns an empty spill: room bytes stay in memory, the rest goes to a file.
func newSpill(space spool.Space, room int) *spill { return &spill{space: space, room: room} }

// seal ends the part that is being written.
func (s *spill) seal() {
	if len(s.open) == 0 || s.failed != nil {
		return
	}
	part := spilledPart{size: len(s.open)}
	if s.room -= len(s.open); s.room >= 0 {
		part.bytes = append(make([]byte, 0, len(s.open)), s.open...)
	} else {
		part.at = s.inFile
		s.failed = s.write(s.open)
	}
	s.parts, s.open = append(s.parts, part), s.open[:0]
}

func (s *spill) write(part []byte) (err error) {
	if s.file == nil {
		if s.file, err = s.space.Work("import"); err != nil {
			return err
		}
	}
	n, err := s.file.WriteAt(part, s.inFile)
	s.inFile += int64(n)
	return err
}

// part returns a sealed part. If the part is in the file, it is read into buffer, and valid until buffer is reused.
func (s *spill) part(n int, buffer *[]byte) []byte {
	part := s.parts[n]
	if part.bytes != nil {
		return part.bytes
	}
	if cap(*buffer) < part.size {
		*buffer = make([]byte, max(part.size, partSize+partSize/4))
	}
	s.read((*buffer)[:part.size], part.at)
	return (*buffer)[:part.size]
}

// at reads some bytes of a sealed part.
func (s *spill) at(n, offset int, into []byte) {
	part := s.parts[n]
	if part.bytes != nil {
		copy(into, part.bytes[offset:])
		return
	}
	s.read(into, part.at+int64(offset))
}

func (s *spill) read(into []byte, at int64) {
	if s.failed == nil {
		if _, err := s.file.ReadAt(into, at); err != nil {
			s.failed = fmt.Errorf("read spilled results: %w", err)
		}
	}
	if s.failed != nil {
		clear(into)
	}
}

// close frees the memory and the file.
func (s *spill) close() {
	if s.file != nil {
		_ = s.file.Close() // an unnamed file that is no longer read
	}
	*s = spill{space: s.space}
}
