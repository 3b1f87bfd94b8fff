package jsonstream

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// nesting tracks strings and brackets.
type nesting struct {
	depth, deepest    int
	opened            int64 // arrays and objects
	inString, escaped bool
	// seen is the offset of the scanned piece, and quoted the offset of the last string.
	seen, quoted int64
}

// advance scans b up to the end of the outermost string, array or object, and returns the number of bytes. It skips the
// content of strings, which are most of a report.
func (n *nesting) advance(b []byte) int {
	quote, escape := -1, -1 // the next ones, if known
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case n.escaped:
			n.escaped = false
		case n.inString:
			quote = next(b, i, quote, '"')
			escape = next(b[:quote], i, escape, '\\')
			if i = min(quote, escape); i == len(b) {
				return i
			}
			n.escaped, n.inString = escape < quote, escape < quote
			if n.depth == 0 && !n.inString {
				return i + 1
			}
		case c == '"':
			n.inString = true
			n.quoted = n.seen + int64(i)
		case c == '{' || c == '[':
			n.depth++
			n.opened++
			n.deepest = max(n.deepest, n.depth)
		case c == '}' || c == ']':
			if n.depth--; n.depth <= 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

// next returns the index of c in b, at i or later; len(b) if there is none. It searches only if the known index is
// before i.
func next(b []byte, i, known int, c byte) int {
	if known >= i {
		return known
	}
	if n := bytes.IndexByte(b[i:], c); n >= 0 {
		return i + n
	}
	return len(b)
}

// meter is between the file and the decoder in the first pass. It limits total size and nesting on the raw bytes,
// before the decoder recurses into them, shortens long tokens, and makes a long read cancellable.
type meter struct {
	ctx      context.Context
	src      io.Reader
	maxBytes int64
	maxDepth int
	// maxValues limits arrays and objects. Compressed, they are the smallest values relative to the memory that
	// they take.
	maxValues int64

	read int64
	nesting
	shortener
}

func (m *meter) Read(p []byte) (int, error) {
	for {
		n, err := m.readPart(p)
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// readPart is Read, which may have shortened all that it read to nothing.
func (m *meter) readPart(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.src.Read(p[:min(len(p), pieceSize)])
	m.read += int64(n)
	if m.read > m.maxBytes {
		return 0, &LimitError{What: "more bytes than a report may have", Max: m.maxBytes}
	}
	kept, ok := m.filter(p[:n])
	if !ok {
		return 0, &LimitError{What: fmt.Sprintf("arrays and objects are nested too deeply near byte %d", m.read), Max: int64(m.maxDepth)}
	}
	if m.opened > m.maxValues {
		return 0, &LimitError{What: "more arrays and objects than a report may have", Max: m.maxValues}
	}
	return kept, err
}

// scan tracks strings and brackets through b, and reports whether the nesting stays within its limit.
func (m *meter) scan(b []byte) bool {
	for len(b) > 0 && m.deepest <= m.maxDepth {
		end := m.advance(b)
		m.seen += int64(end)
		b = b[end:]
	}
	return m.deepest <= m.maxDepth
}

// budget limits how far the decoder may buffer. The limit is moved ahead of the decoder before each value.
type budget struct {
	src       io.Reader
	delivered int64
	limit     int64
}

func (b *budget) Read(p []byte) (int, error) {
	room := b.limit - b.delivered
	if room <= 0 {
		return 0, errOverBudget
	}
	if int64(len(p)) > room {
		p = p[:room]
	}
	n, err := b.src.Read(p)
	b.delivered += int64(n)
	return n, err
}

// sniff returns the length of a byte order mark. It rejects other encodings, which would otherwise look like broken
// JSON.
func sniff(src io.ReadSeeker) (int64, error) {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("rewind the report: %w", err)
	}
	head := make([]byte, 4)
	n, err := io.ReadFull(src, head)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return 0, fmt.Errorf("read the report: %w", err)
	}
	head = head[:n]
	switch {
	case n == 0:
		return 0, &FormatError{"the file is empty"}
	case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		return 3, nil
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return 0, &FormatError{"the file is UTF-16 (as written by > in PowerShell); only UTF-8 is allowed"}
	case bytes.HasPrefix(head, []byte{0x1F, 0x8B}):
		return 0, &FormatError{"the file is gzip-compressed and was sent without Content-Encoding: gzip"}
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return 0, &FormatError{"the file is a ZIP archive; upload the .sarif file in it"}
	}
	return 0, nil
}

// position converts a byte offset to a line and column. It reads the file again, but only for a broken report.
func position(src io.ReadSeeker, offset int64) (line, column int64, err error) {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return 0, 0, err
	}
	line, column = 1, 1
	buf := make([]byte, 64<<10)
	in := io.LimitReader(src, offset)
	for {
		n, err := in.Read(buf)
		if lines := bytes.Count(buf[:n], []byte{'\n'}); lines > 0 {
			line += int64(lines)
			column = int64(n - bytes.LastIndexByte(buf[:n], '\n'))
		} else {
			column += int64(n)
		}
		if err == io.EOF {
			return line, column, nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}
