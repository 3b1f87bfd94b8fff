package formats

import (
	"bufio"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// maxTag is the size of one tag in bytes. The names of open elements are kept, and attributes take more memory than
// text.
const maxTag = 64 << 10

// XMLError says why a document is not XML that can be read. Line is 1-based.
type XMLError struct {
	Line int
	Msg  string
}

func (e *XMLError) Error() string {
	return fmt.Sprintf("the report is not XML that can be read: %s (line %d)", e.Msg, e.Line)
}

// xmlStream reads an XML document within limits: in constant memory, token by token.
type xmlStream struct {
	raw    *xml.Decoder
	in     *xmlBytes
	limits jsonstream.Limits

	doctype  bool       // a DOCTYPE was found
	elements int64      // that were opened
	open     []xml.Name // of the open elements, with prefixes in place of name spaces
}

func openXML(ctx context.Context, src io.ReadSeeker, limits jsonstream.Limits) (*xmlStream, error) {
	if _, err := src.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind the report: %w", err)
	}
	in := &xmlBytes{src: bufio.NewReaderSize(&xmlMeter{ctx: ctx, src: src, left: limits.MaxBytes, max: limits.MaxBytes}, 64<<10)}
	if mark, _ := in.src.Peek(3); string(mark) == "\xEF\xBB\xBF" {
		_, _ = in.src.Discard(3)
	}
	x := &xmlStream{raw: xml.NewDecoder(in), in: in, limits: limits}
	x.raw.CharsetReader = func(charset string, rest io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "us-ascii") || strings.EqualFold(charset, "ascii") {
			return rest, nil
		}
		return nil, x.invalid(fmt.Sprintf("its encoding is %q; convert it to UTF-8", jsonstream.Cut(jsonstream.Clean(charset), 40)))
	}
	return x, nil
}

// next reads a token. It is valid until the next one is read. The end of the document before the end of the root
// element is an error.
func (x *xmlStream) next() (xml.Token, error) {
	if err := x.in.allow(x.raw.InputOffset(), x.limits.MaxTokenBytes); err != nil {
		return nil, err
	}
	token, err := x.raw.RawToken()
	if err != nil {
		return nil, x.located(err)
	}
	switch token := token.(type) {
	case xml.Directive:
		x.doctype = true
		if x.elements > 0 {
			return nil, x.invalid("a directive after the start of the root element")
		}
	case xml.StartElement:
		return token, x.push(token.Name)
	case xml.EndElement:
		return token, x.pop(token.Name)
	case xml.CharData:
		if len(x.open) == 0 && strings.TrimSpace(string(token)) != "" {
			return nil, x.invalid("text outside of the root element")
		}
	}
	return token, nil
}

func (x *xmlStream) push(name xml.Name) error {
	if len(x.open) == 0 && x.elements > 0 {
		return x.invalid("a second root element")
	}
	x.open = append(x.open, name)
	x.elements++
	if len(x.open) > x.limits.MaxDepth {
		return &jsonstream.LimitError{What: fmt.Sprintf("elements are nested too deeply near line %d", x.line()), Max: int64(x.limits.MaxDepth)}
	}
	if x.elements > x.limits.MaxValues {
		return &jsonstream.LimitError{What: "more elements than a report may have", Max: x.limits.MaxValues}
	}
	return nil
}

func (x *xmlStream) pop(name xml.Name) error {
	last := len(x.open) - 1
	if last < 0 || x.open[last] != name {
		return x.invalid("the tag that ends an element has another name than the tag that starts it")
	}
	x.open = x.open[:last]
	return nil
}

// end checks that nothing follows the root element.
func (x *xmlStream) end() error {
	for {
		switch _, err := x.next(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (x *xmlStream) line() int {
	line, _ := x.raw.InputPos()
	return line
}

func (x *xmlStream) invalid(msg string) error { return &XMLError{Line: x.line(), Msg: msg} }

// located converts an error of the decoder to a typed error. After the root element, the end of the document is io.EOF.
func (x *xmlStream) located(err error) error {
	var syntax *xml.SyntaxError
	var own *XMLError
	switch {
	case err == io.EOF && x.elements > 0 && len(x.open) == 0:
		return err
	case x.in.err != nil:
		return x.in.err
	case errors.As(err, &own):
		return own
	case errors.As(err, &syntax) && syntax.Msg != "unexpected EOF":
		return x.invalid(jsonstream.Cut(jsonstream.Clean(syntax.Msg), 200))
	case err == io.EOF || syntax != nil:
		return x.invalid("the file ends before its root element does")
	}
	return x.invalid(jsonstream.Cut(jsonstream.Clean(strings.TrimPrefix(err.Error(), "xml: ")), 200))
}

// xmlBytes reads bytes for a decoder, up to the limit of a token.
type xmlBytes struct {
	src   *bufio.Reader
	read  int64
	limit int64
	max   int64 // of the current token, for the error
	err   error // of src or the limit
}

// allow limits the token at an offset. The decoder may hold its first byte already, which is the "<" after a text.
func (b *xmlBytes) allow(offset, max int64) error {
	held := int(b.read - offset)
	next, err := b.src.Peek(2 - held)
	if err != nil && err != io.EOF {
		return err
	}
	tag := held == 1 || len(next) > 0 && next[0] == '<'
	markup := len(next) > 0 && next[len(next)-1] == '!' // a comment or CDATA
	if tag && !markup {
		max = min(max, maxTag)
	}
	b.limit, b.max = offset+max, max
	return nil
}

// ReadByte implements [io.ByteReader], so that the decoder reads no more than it needs.
func (b *xmlBytes) ReadByte() (byte, error) {
	if b.read > b.limit {
		b.err = &jsonstream.LimitError{What: "a text or a tag has too many bytes", Max: b.max}
		return 0, b.err
	}
	c, err := b.src.ReadByte()
	if err == nil {
		b.read++
	} else if err != io.EOF {
		b.err = err
	}
	return c, err
}

// Read implements [io.Reader], which the decoder needs for a declared encoding.
func (b *xmlBytes) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := b.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}

// xmlMeter limits the size of a document, and makes a long read cancellable.
type xmlMeter struct {
	ctx       context.Context
	src       io.Reader
	left, max int64
}

func (m *xmlMeter) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.src.Read(p)
	if m.left -= int64(n); m.left < 0 {
		return 0, &jsonstream.LimitError{What: "more bytes than a report may have", Max: m.max}
	}
	return n, err
}
