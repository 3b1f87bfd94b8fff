package ingest

import (
	"fmt"

	"github.com/palisade/palisade/services/internal/spool"
)

// spill holds what is written once and read later: in memory while it is little, then in a file without a name. An
// error stays, and whoever has written or read asks for it at the end: until then everything reads as zeros.
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

// spilledPart is in memory, or else in the file.
type spilledPart struct {
	bytes []byte
	at    int64
	size  int
}

// partSize is about how large a part becomes, in bytes.
const partSize = 256 << 10

// newSpill makes an empty one: room bytes stay in memory, and more go to a file.
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

// part returns a sealed part, in buffer if it is in the file; the answer is valid as long as buffer is not used again.
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
			s.failed = fmt.Errorf("read what was put aside: %w", err)
		}
	}
	if s.failed != nil {
		clear(into)
	}
}

// close gives everything back.
func (s *spill) close() {
	if s.file != nil {
		_ = s.file.Close() // it has no name, and nobody reads it any more
	}
	*s = spill{space: s.space}
}
