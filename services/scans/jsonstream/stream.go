package jsonstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Options has the leniency that real reports need. Without tracking duplicate names, the decoder also uses constant
// memory.
var Options = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// Limits bounds the cost of a document.
type Limits struct {
	// MaxBytes is the size of the whole document in bytes. A larger document is refused.
	MaxBytes int64
	// MaxDepth is the deepest nesting of arrays and objects. A deeper document is refused.
	MaxDepth int
	// MaxValues is the number of arrays and objects. A document with more is refused.
	MaxValues int64
	// MaxValueBytes is the size of a value that is read as a whole. A larger one is skipped.
	MaxValueBytes int64
	// MaxTokenBytes is about the size of one string or number. The rest of a larger one is left out, and a value that is
	// read as a whole is skipped because of it.
	MaxTokenBytes int64
}

// Stream reads a JSON document with bounded memory. No value is buffered beyond its size limit.
type Stream struct {
	dec   *jsontext.Decoder
	in    *budget
	meter *meter
	src   io.ReadSeeker
	// Fixed gets the parts that Decode converts or ignores, and values that it cannot use, if its caller does not want
	// them. It may be nil.
	Fixed  func(pointer string, fix Fix)
	base   int64 // offset of the decoder's start in the file: the length of a byte order mark
	limits Limits
}

// Open starts to read src from its start, regardless of its current offset. An error is a [*FormatError] or an error of
// src.
func Open(ctx context.Context, src io.ReadSeeker, limits Limits) (*Stream, error) {
	base, err := sniff(src)
	if err != nil {
		return nil, err
	}
	if _, err := src.Seek(base, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind the report: %w", err)
	}
	m := &meter{
		ctx: ctx, src: src, maxBytes: limits.MaxBytes, maxDepth: limits.MaxDepth, maxValues: limits.MaxValues,
		shortener: shortener{maxToken: limits.MaxTokenBytes},
	}
	in := &budget{src: bufio.NewReaderSize(m, pieceSize)}
	return &Stream{dec: jsontext.NewDecoder(in, Options), in: in, meter: m, src: src, base: base, limits: limits}, nil
}

// Offset is the position in the file after the last token, in bytes.
func (s *Stream) Offset() int64 { return s.base + s.meter.original(s.dec.InputOffset()) }

// Bytes is how much of the file has been read.
func (s *Stream) Bytes() int64 { return s.base + s.meter.read }

// Pointer is the JSON pointer of the last token.
func (s *Stream) Pointer() string { return string(s.dec.StackPointer()) }

// OverSize says that a value exceeds its size limit.
func (s *Stream) OverSize() string { return OverSize(s.limits.MaxValueBytes) }

func (s *Stream) allow(n int64) { s.in.limit = s.dec.InputOffset() + n }

// allowToken allows one token, which [shortener] limits to one piece more than the limit.
func (s *Stream) allowToken() { s.allow(s.limits.MaxTokenBytes + 2*pieceSize) }

// Kind returns the kind of the next token. It returns 0 on errors, which the next read reports.
func (s *Stream) Kind() jsontext.Kind {
	s.allowToken()
	return s.dec.PeekKind()
}

func (s *Stream) Token() (jsontext.Token, error) {
	s.allowToken()
	return s.dec.ReadToken()
}

// Value reads one whole value, which is valid until the next read. A value over the size limit is skipped and ok is
// false.
func (s *Stream) Value() (v jsontext.Value, ok bool, err error) {
	s.allow(s.limits.MaxValueBytes)
	start := s.dec.InputOffset()
	v, err = s.dec.ReadValue()
	if errors.Is(err, errOverBudget) {
		return nil, false, s.Skip()
	}
	return v, err == nil && !s.meter.shortened(start, s.dec.InputOffset()), err
}

// Skip skips one value of any size, token by token.
func (s *Stream) Skip() error {
	depth := s.dec.StackDepth()
	for {
		if _, err := s.Token(); err != nil {
			return err
		}
		if s.dec.StackDepth() <= depth {
			return nil
		}
	}
}

// Object calls member for each name of the next object. member has to consume the value.
func (s *Stream) Object(member func(name string) error) error {
	if _, err := s.Token(); err != nil {
		return err
	}
	for {
		switch s.Kind() {
		case '}':
			_, err := s.Token()
			return err
		default:
			name, err := s.Token()
			if err != nil {
				return err
			}
			if err := member(name.String()); err != nil {
				return err
			}
		}
	}
}

// Array calls element for each element of the next array. element has to consume it. A null is an empty array.
func (s *Stream) Array(element func(i int) error) error {
	if open, err := s.Token(); err != nil || open.Kind() == 'n' {
		return err
	}
	for i := 0; ; i++ {
		if s.Kind() == ']' {
			_, err := s.Token()
			return err
		}
		if err := element(i); err != nil {
			return err
		}
	}
}

// ArrayOf is Array for a value that may be of another kind. Such a value is skipped and ok is false.
func (s *Stream) ArrayOf(element func(i int) error) (ok bool, err error) {
	if k := s.Kind(); k != '[' && k != 'n' {
		return false, s.Skip()
	}
	return true, s.Array(element)
}

// ObjectOf is Object for a value that may be of another kind. Such a value is skipped and ok is false.
func (s *Stream) ObjectOf(member func(name string) error) (ok bool, err error) {
	if s.Kind() != '{' {
		return false, s.Skip()
	}
	return true, s.Object(member)
}

// Decode reads the next value into out, like [Unmarshal]. problem says why the value could not be used; err is an error
// of the stream.
func (s *Stream) Decode(out any, fixed func(Fix)) (problem string, err error) {
	v, ok, err := s.Value()
	if err != nil {
		return "", err
	}
	reports := fixed == nil && s.Fixed != nil
	if reports {
		fixed = func(f Fix) { s.Fixed(s.Pointer(), f) }
	}
	if !ok {
		problem = s.OverSize()
	} else if err := Unmarshal(v, out, fixed); err != nil {
		problem = Describe(err)
	}
	if problem != "" && reports {
		s.Fixed(s.Pointer(), Fix{Problem: problem + ": ignored"})
	}
	return problem, nil
}

// More reports whether another document follows, as in JSON lines. It is false at the end and on errors, which End
// reports.
func (s *Stream) More() bool { return s.Kind() != 0 }

// End checks that nothing follows the document.
func (s *Stream) End() error {
	s.allowToken()
	_, err := s.dec.ReadToken()
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	}
	return &jsontext.SyntacticError{ByteOffset: s.dec.InputOffset(), Err: errTrailing}
}
