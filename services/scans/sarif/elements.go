package sarif

import (
	"bufio"
	"cmp"
	"io"
)

// elements reads the values of an array that has been read as JSON before: where each ends is all there is to find out,
// so that it is taken apart only once.
type elements struct {
	in *bufio.Reader
	// most is how many bytes of a value are kept.
	most  int64
	value []byte
}

// newElements begins at the bracket that opens the array.
func newElements(src io.Reader, limits Limits) (*elements, error) {
	e := &elements{in: bufio.NewReaderSize(src, 64<<10), most: limits.MaxResultBytes}
	_, err := e.in.Discard(1)
	return e, err
}

// next returns the next value, valid until the call after. ok is false, and there is nothing of the value, where it is
// too large. Behind the last one the error is io.EOF.
func (e *elements) next() (value []byte, ok bool, err error) {
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

// start goes to the first byte of the next value.
func (e *elements) start() (first byte, err error) {
	for {
		c, err := e.in.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case c == ']': // which stays, for whoever asks again
			return 0, cmp.Or(e.in.UnreadByte(), io.EOF)
		case c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != ',':
			return c, e.in.UnreadByte()
		}
	}
}

// end is where a value ends that begins with first, or has begun with it and goes on in b; -1 if it does not end in b.
func (n *nesting) end(b []byte, first byte) int {
	if first != '"' && first != '{' && first != '[' {
		for i, c := range b {
			if c == ',' || c == ']' || c == ' ' || c == '\t' || c == '\n' || c == '\r' {
				return i
			}
		}
		return -1
	}
	end := n.pass(b)
	if n.depth > 0 || n.inString {
		return -1
	}
	return end
}

// unexpected is the error of a source that ends within a value.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
