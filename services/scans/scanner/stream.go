package scanner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits bound what a document may cost.
type Limits struct {
	// MaxBytes is the size of the whole document in bytes, decompressed.
	MaxBytes int64
	// MaxDepth is the deepest nesting of arrays and objects.
	MaxDepth int
	// MaxItemBytes is the size of one finding, or one dependency. A larger one is left out, and told.
	MaxItemBytes int64
	// MaxTextBytes is the size of one string: it cannot be passed over without holding it.
	MaxTextBytes int64
	// MaxPathBytes is the size of all paths and rule ids together, which are held in memory.
	MaxPathBytes int64
	// MaxRules is how many rules findings may name, and MaxRuleBytes the size of their ids and metadata, which whoever
	// stores the findings holds in memory.
	MaxRules     int
	MaxRuleBytes int64
}

// DefaultLimits keep the memory for one document at about 100 MB, nearly all of it for paths and ids of rules.
func DefaultLimits() Limits {
	return Limits{
		MaxBytes: 1 << 30, MaxDepth: 256, MaxItemBytes: 4 << 20, MaxTextBytes: 8 << 20, MaxPathBytes: 32 << 20, MaxRules: 50_000, MaxRuleBytes: 64 << 20,
	}
}

// SyntaxError says that a document is not what a scanner sends.
type SyntaxError struct{ Text string }

func (e *SyntaxError) Error() string { return e.Text }

// LimitError says that a document exceeds one of the [Limits].
type LimitError struct{ Text string }

func (e *LimitError) Error() string { return e.Text }

// decodeOptions are lenient: the scanner's own text may be cut in the middle of a character.
var decodeOptions = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// errOverRoom is what the reader below the decoder answers once a single value is larger than it may be.
var errOverRoom = errors.New("value over its size limit")

// room lets the decoder read up to a position that moves ahead of it, and stops when the caller is gone.
type room struct {
	ctx   context.Context
	src   io.Reader
	read  int64
	until int64
	max   int64
}

func (r *room) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	left := r.until - r.read
	if left <= 0 {
		return 0, errOverRoom
	}
	n, err := r.src.Read(p[:min(int64(len(p)), left)])
	if r.read += int64(n); r.read > r.max {
		return 0, &LimitError{fmt.Sprintf("the document has more than %d bytes; raise max-upload", r.max)}
	}
	return n, err
}

// document walks JSON without holding more than one item of it.
type document struct {
	dec    *jsontext.Decoder
	room   *room
	limits Limits
}

func newDocument(ctx context.Context, src io.Reader, limits Limits) *document {
	r := &room{ctx: ctx, src: src, max: limits.MaxBytes}
	return &document{dec: jsontext.NewDecoder(r, decodeOptions), room: r, limits: limits}
}

func (d *document) allow(n int64) { d.room.until = d.dec.InputOffset() + n }

// kind says what comes next; 0 where reading on fails, so that the next read tells why.
func (d *document) kind() jsontext.Kind {
	d.allow(d.limits.MaxTextBytes)
	return d.dec.PeekKind()
}

func (d *document) token() (jsontext.Token, error) {
	d.allow(d.limits.MaxTextBytes)
	token, err := d.dec.ReadToken()
	if err == nil && d.dec.StackDepth() > d.limits.MaxDepth {
		err = &LimitError{fmt.Sprintf("arrays and objects are nested more than %d deep", d.limits.MaxDepth)}
	}
	return token, err
}

// skip passes over one value without holding it.
func (d *document) skip() error {
	depth := d.dec.StackDepth()
	for {
		if _, err := d.token(); err != nil {
			return err
		}
		if d.dec.StackDepth() <= depth {
			return nil
		}
	}
}

// object calls member for each name of the object that comes next; member has to consume the value. A null is an empty
// object; anything else is passed over.
func (d *document) object(member func(name string) error) error {
	if d.kind() != '{' {
		return d.skip()
	}
	if _, err := d.token(); err != nil {
		return err
	}
	for d.kind() != '}' {
		name, err := d.token()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// array calls element for each element of the array that comes next; element has to consume it. A null is an empty
// array; anything else is passed over.
func (d *document) array(element func(i int) error) error {
	if d.kind() != '[' {
		return d.skip()
	}
	if _, err := d.token(); err != nil {
		return err
	}
	for i := 0; d.kind() != ']'; i++ {
		if err := element(i); err != nil {
			return err
		}
	}
	_, err := d.token()
	return err
}

// item reads the next value into out. problem says why it could not be used; err that the document itself is broken.
func (d *document) item(out any) (problem string, err error) {
	d.allow(d.limits.MaxItemBytes)
	v, err := d.dec.ReadValue()
	if errors.Is(err, errOverRoom) {
		return fmt.Sprintf("it has more than %d bytes", d.limits.MaxItemBytes), d.skip()
	}
	if err != nil {
		return "", err
	}
	if tooDeep(v, d.limits.MaxDepth) {
		return fmt.Sprintf("it is nested more than %d deep", d.limits.MaxDepth), nil
	}
	if err := json.Unmarshal(v, out, decodeOptions); err != nil {
		return "it has not the form of the protocol", nil // the error's own text may quote what is not to be repeated
	}
	return "", nil
}

// whole reads a document that is one object to its end.
func (d *document) whole(member func(name string) error) error {
	if k := d.kind(); k != '{' && k != 0 {
		return &SyntaxError{"the body must be a JSON object"}
	}
	if err := d.object(member); err != nil {
		return d.explain(err)
	}
	if _, err := d.token(); err == nil {
		return &SyntaxError{"the body goes on after its JSON object"}
	} else if !errors.Is(err, io.EOF) {
		return d.explain(err)
	}
	return nil
}

// explain turns a decoder's error into one for people. It never quotes the document.
func (d *document) explain(err error) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, errOverRoom):
		return &LimitError{fmt.Sprintf("a single text near byte %d has more than %d bytes", d.dec.InputOffset(), d.limits.MaxTextBytes)}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &SyntaxError{"the body is not valid JSON: it ends in the middle of a value"}
	case errors.As(err, &syntactic):
		return &SyntaxError{fmt.Sprintf("the body is not valid JSON near byte %d", syntactic.ByteOffset)}
	}
	return err
}

// tooDeep follows strings and brackets through a valid value.
func tooDeep(v []byte, most int) bool {
	depth, inString, escaped := 0, false, false
	for _, c := range v {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// plain makes text that every database can hold: valid UTF-8 without NUL, at most so many bytes.
func plain(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}
