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

// Limits bounds the cost of a document.
type Limits struct {
	// MaxBytes is the size of the whole decompressed document in bytes.
	MaxBytes int64
	// MaxDepth is the deepest nesting of arrays and objects.
	MaxDepth int
	// MaxItemBytes is the size of one finding or dependency. A larger one is dropped and reported.
	MaxItemBytes int64
	// MaxTextBytes is the size of one string, which cannot be skipped without buffering it.
	MaxTextBytes int64
	// MaxPathBytes is the size of all paths and rule ids together, which are held in memory.
	MaxPathBytes int64
	// MaxRules is how many rules findings may name. MaxRuleBytes is the size of their ids and metadata, which are held
	// in memory while the findings are stored.
	MaxRules     int
	MaxRuleBytes int64
}

// DefaultLimits keeps the memory for one document at about 100 MB, nearly all of it for paths and rule ids.
func DefaultLimits() Limits {
	return Limits{
		MaxBytes: 1 << 30, MaxDepth: 256, MaxItemBytes: 4 << 20, MaxTextBytes: 8 << 20, MaxPathBytes: 32 << 20, MaxRules: 50_000, MaxRuleBytes: 64 << 20,
	}
}

// SyntaxError says that a document does not follow the protocol.
type SyntaxError struct{ Text string }

func (e *SyntaxError) Error() string { return e.Text }

// LimitError says that a document exceeds one of the [Limits].
type LimitError struct{ Text string }

func (e *LimitError) Error() string { return e.Text }

// decodeOptions are lenient, because the scanner may cut text in the middle of a character.
var decodeOptions = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// errOverBudget is returned by the reader below the decoder if a value exceeds its size limit.
var errOverBudget = errors.New("value over its size limit")

// budget limits how far the decoder may read ahead, and stops when the request is cancelled.
type budget struct {
	ctx   context.Context
	src   io.Reader
	read  int64
	until int64
	max   int64
}

func (r *budget) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	left := r.until - r.read
	if left <= 0 {
		return 0, errOverBudget
	}
	n, err := r.src.Read(p[:min(int64(len(p)), left)])
	if r.read += int64(n); r.read > r.max {
		return 0, &LimitError{fmt.Sprintf("the document has more than %d bytes; raise max-upload", r.max)}
	}
	return n, err
}

// document reads JSON without buffering more than one item.
type document struct {
	dec    *jsontext.Decoder
	budget *budget
	limits Limits
}

func newDocument(ctx context.Context, src io.Reader, limits Limits) *document {
	r := &budget{ctx: ctx, src: src, max: limits.MaxBytes}
	return &document{dec: jsontext.NewDecoder(r, decodeOptions), budget: r, limits: limits}
}

func (d *document) allow(n int64) { d.budget.until = d.dec.InputOffset() + n }

// kind returns the kind of the next token. It returns 0 on errors, which the next read reports.
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

// skip skips one value without buffering it.
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

// object calls member for each name of the next object. member has to consume the value. A null is an empty object;
// anything else is skipped.
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

// array calls element for each element of the next array. element has to consume it. A null is an empty array; anything
// else is skipped.
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

// item reads the next value into out. problem says why the value could not be used; err says that the document is
// broken.
func (d *document) item(out any) (problem string, err error) {
	d.allow(d.limits.MaxItemBytes)
	v, err := d.dec.ReadValue()
	if errors.Is(err, errOverBudget) {
		return fmt.Sprintf("it has more than %d bytes", d.limits.MaxItemBytes), d.skip()
	}
	if err != nil {
		return "", err
	}
	if tooDeep(v, d.limits.MaxDepth) {
		return fmt.Sprintf("it is nested more than %d deep", d.limits.MaxDepth), nil
	}
	if err := json.Unmarshal(v, out, decodeOptions); err != nil {
		return "it does not follow the protocol", nil // the error's own text may quote a secret
	}
	return "", nil
}

// root reads a document that consists of one object.
func (d *document) root(member func(name string) error) error {
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

// explain converts a decoder's error to an error for people. It never quotes the document.
func (d *document) explain(err error) error {
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.Is(err, errOverBudget):
		return &LimitError{fmt.Sprintf("a single text near byte %d has more than %d bytes", d.dec.InputOffset(), d.limits.MaxTextBytes)}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &SyntaxError{"the body is not valid JSON: it ends in the middle of a value"}
	case errors.As(err, &syntactic):
		return &SyntaxError{fmt.Sprintf("the body is not valid JSON near byte %d", syntactic.ByteOffset)}
	}
	return err
}

// tooDeep reports whether a valid value is nested too deeply.
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

// plain makes a text storable in every database: valid UTF-8 without NUL, at most most bytes.
func plain(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}
