package sarif

import (
	"bufio"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeOptions has the leniency that real reports need. Without tracking duplicate names, the decoder also uses
// constant memory.
var decodeOptions = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// stream reads JSON with bounded memory. No value is buffered beyond its size limit.
type stream struct {
	dec    *jsontext.Decoder
	in     *budget
	limits Limits
}

func newStream(src io.Reader, limits Limits) *stream {
	in := &budget{src: bufio.NewReaderSize(src, 64<<10)}
	return &stream{dec: jsontext.NewDecoder(in, decodeOptions), in: in, limits: limits}
}

func (s *stream) offset() int64 { return s.dec.InputOffset() }

func (s *stream) allow(n int64) { s.in.limit = s.dec.InputOffset() + n }

// kind returns the kind of the next token. It returns 0 on errors, which the next read reports.
func (s *stream) kind() jsontext.Kind {
	s.allow(s.limits.MaxTokenBytes)
	return s.dec.PeekKind()
}

func (s *stream) token() (jsontext.Token, error) {
	s.allow(s.limits.MaxTokenBytes)
	return s.dec.ReadToken()
}

// value reads one whole value, which is valid until the next read. A value over the size limit is skipped and ok is
// false.
func (s *stream) value() (v jsontext.Value, ok bool, err error) {
	s.allow(s.limits.MaxResultBytes)
	v, err = s.dec.ReadValue()
	if errors.Is(err, errOverBudget) {
		return nil, false, s.skip()
	}
	return v, err == nil, err
}

// skip skips one value of any size, token by token.
func (s *stream) skip() error {
	depth := s.dec.StackDepth()
	for {
		if _, err := s.token(); err != nil {
			return err
		}
		if s.dec.StackDepth() <= depth {
			return nil
		}
	}
}

// object calls member for each name of the next object. member has to consume the value.
func (s *stream) object(member func(name string) error) error {
	if _, err := s.token(); err != nil {
		return err
	}
	for {
		switch s.kind() {
		case '}':
			_, err := s.token()
			return err
		default:
			name, err := s.token()
			if err != nil {
				return err
			}
			if err := member(name.String()); err != nil {
				return err
			}
		}
	}
}

// array calls element for each element of the next array. element has to consume it. A null is an empty array.
func (s *stream) array(element func(i int) error) error {
	if open, err := s.token(); err != nil || open.Kind() == 'n' {
		return err
	}
	for i := 0; ; i++ {
		if s.kind() == ']' {
			_, err := s.token()
			return err
		}
		if err := element(i); err != nil {
			return err
		}
	}
}

// arrayOf is array for a value that may be of another kind. Such a value is skipped and ok is false.
func (s *stream) arrayOf(element func(i int) error) (ok bool, err error) {
	if k := s.kind(); k != '[' && k != 'n' {
		return false, s.skip()
	}
	return true, s.array(element)
}

// objectOf is object for a value that may be of another kind. Such a value is skipped and ok is false.
func (s *stream) objectOf(member func(name string) error) (ok bool, err error) {
	if s.kind() != '{' {
		return false, s.skip()
	}
	return true, s.object(member)
}

// decode reads the next value into out. problem says why the value could not be used; err is an error of the stream.
func (s *stream) decode(out any) (problem string, err error) {
	v, ok, err := s.value()
	if err != nil {
		return "", err
	}
	if !ok {
		return overSize(s.limits), nil
	}
	if err := json.Unmarshal(v, out, decodeOptions); err != nil {
		return describe(err), nil
	}
	return "", nil
}
