package jsonstream

import "sort"

// shortener leaves out the rest of a string or number that is too long for the decoder, which holds each token in
// memory. It remembers where, so that offsets in the shortened document can be converted to offsets in the file.
//
// It looks at a token only at the start of a piece of the file, so that usual tokens cost nothing. A token may be one
// piece longer than the limit.
type shortener struct {
	maxToken  int64
	delivered int64 // bytes that were passed on
	cuts      []cut
	// cutting says that the rest of the current string is left out, and escape that the next byte of it is escaped.
	cutting, escape bool
	// digits is how many digits are directly before the current piece.
	digits int64
}

// pieceSize is how much of a file is read at once.
const pieceSize = 64 << 10

// cut says that n bytes of the file before an offset of the shortened document were left out.
type cut struct{ at, n int64 }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// filter shortens b in place and scans the rest. It returns the length of the rest, and whether the nesting stays
// within its limit.
func (m *meter) filter(b []byte) (kept int, ok bool) {
	from, to := m.surplus(b)
	if from == to {
		kept, ok = len(b), m.scan(b)
	} else {
		ok = m.scan(b[:from])
		m.drop(int64(from), int64(to-from))
		kept = from + copy(b[from:], b[to:])
		ok = ok && m.scan(b[from:kept])
	}
	m.countDigits(b[:kept])
	m.delivered += int64(kept)
	return kept, ok
}

// surplus returns the part of b that belongs to a token over the limit; it is empty if there is none.
func (m *meter) surplus(b []byte) (from, to int) {
	switch {
	case m.cutting:
		return 0, m.stringEnd(b)
	case m.inString && m.seen-m.quoted > m.maxToken:
		if from = m.boundary(b); from == len(b) {
			return 0, 0
		}
		m.cutting = true
		return from, from + m.stringEnd(b[from:])
	case !m.inString && m.digits > m.maxToken:
		for to < len(b) && isDigit(b[to]) {
			to++
		}
	}
	return 0, to
}

// boundary returns the first place in b, which continues a string, that is not within an escape sequence.
func (m *meter) boundary(b []byte) (at int) {
	if m.escaped && len(b) > 0 {
		at = 1
	}
	for hex := 0; at < len(b) && hex < 4 && isHex(b[at]); hex++ {
		at++
	}
	return at
}

// stringEnd returns the index of the quote that ends the string in b, or the length of b.
func (s *shortener) stringEnd(b []byte) int {
	for i, c := range b {
		switch {
		case s.escape:
			s.escape = false
		case c == '\\':
			s.escape = true
		case c == '"':
			s.cutting = false
			return i
		}
	}
	return len(b)
}

// drop records that n bytes are left out after from more bytes.
func (s *shortener) drop(from, n int64) {
	at := s.delivered + from
	if last := len(s.cuts) - 1; last >= 0 && s.cuts[last].at == at {
		s.cuts[last].n += n
		return
	}
	s.cuts = append(s.cuts, cut{at, n})
}

// countDigits counts the digits at the end of b.
func (m *meter) countDigits(b []byte) {
	n := 0
	for n < len(b) && isDigit(b[len(b)-1-n]) {
		n++
	}
	if n < len(b) {
		m.digits = 0
	}
	m.digits += int64(n)
}

// original converts an offset of the shortened document to the offset in the file.
func (s *shortener) original(at int64) int64 {
	for _, c := range s.cuts[:sort.Search(len(s.cuts), func(i int) bool { return s.cuts[i].at > at })] {
		at += c.n
	}
	return at
}

// shortened reports whether something was left out between two offsets of the shortened document.
func (s *shortener) shortened(from, to int64) bool {
	return len(s.cuts) > 0 && s.original(to)-s.original(from) != to-from
}
