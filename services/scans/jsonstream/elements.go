package jsonstream

import (
	"bufio"
	"cmp"
	"io"
)

// Elements reads the values of an array of validated JSON. It only finds the end of each value, so that each value is
// decoded only once. The elements of an array in the array are values, too.
type Elements struct {
	in *bufio.Reader
	// most is the maximal size of a value in bytes.
	most  int64
	value []byte
	inner int // how many arrays in the array are open
}

// NewElements starts at the bracket that opens the array.
func NewElements(src io.Reader, maxValueBytes int64) (*Elements, error) {
	e := &Elements{in: bufio.NewReaderSize(src, pieceSize), most: maxValueBytes}
	_, err := e.in.Discard(1)
	return e, err
}

// NewMember starts at the end of a name of an object. Its only value is the value of the name.
func NewMember(src io.Reader, maxValueBytes int64) *Elements {
	return &Elements{in: bufio.NewReaderSize(src, 4<<10), most: maxValueBytes}
}

// Next returns the next value, which is valid until the next call. ok is false for a value that is too large; it is not
// returned. After the last value the error is io.EOF.
func (e *Elements) Next() (value []byte, ok bool, err error) {
	first, err := e.start()
	if err != nil {
		return nil, false, err
	}
	e.value = e.value[:0]
	var n nesting
	size := int64(0)
	for ended := false; !ended; {
		if _, err := e.in.Peek(1); err != nil {
			return nil, false, unexpected(err)
		}
		b, _ := e.in.Peek(e.in.Buffered())
		if end := n.end(b, first); end >= 0 {
			b, ended = b[:end], true
		}
		if size += int64(len(b)); size <= e.most {
			e.value = append(e.value, b...)
		}
		if _, err := e.in.Discard(len(b)); err != nil {
			return nil, false, err
		}
	}
	return e.value, size <= e.most, nil
}

// start moves to the first byte of the next value.
func (e *Elements) start() (first byte, err error) {
	for {
		c, err := e.in.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case c == '[':
			e.inner++
		case c == ']' && e.inner > 0:
			e.inner--
		case c == ']': // stays unread, for repeated calls
			return 0, cmp.Or(e.in.UnreadByte(), io.EOF)
		case c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != ',' && c != ':':
			return c, e.in.UnreadByte()
		}
	}
}

// end returns the end of a value in b, or -1 if it continues after b. first is the first byte of the value, which may
// be in an earlier buffer.
func (n *nesting) end(b []byte, first byte) int {
	if first != '"' && first != '{' && first != '[' {
		for i, c := range b {
			if c == ',' || c == ']' || c == ' ' || c == '\t' || c == '\n' || c == '\r' {
				return i
			}
		}
		return -1
	}
	end := n.advance(b)
	if n.depth > 0 || n.inString {
		return -1
	}
	return end
}

// unexpected converts io.EOF within a value to io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
