package formats

import (
	"encoding/xml"
	"errors"
	"fmt"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// WalkXML reads the document from its start. read gets the root element. A DOCTYPE is refused: no entity is expanded
// and nothing is fetched. Errors of the document are an [*XMLError] or a [*jsonstream.LimitError].
func (in *Input) WalkXML(read xmlReader) error {
	x, err := openXML(in.ctx, in.src, in.limits)
	if err != nil {
		return err
	}
	root, err := x.root()
	if err != nil {
		return err
	}
	if x.doctype {
		return x.invalid("it has a DOCTYPE, which is refused: remove it")
	}
	if err := x.within(root, read); err != nil {
		return err
	}
	return x.end()
}

// xmlReader reads an open element. It may leave a part of it, which is skipped.
type xmlReader func(x *xmlStream, e *xml.StartElement) error

// root reads up to the root element.
func (x *xmlStream) root() (*xml.StartElement, error) {
	for {
		token, err := x.next()
		if err != nil {
			return nil, err
		}
		if e, ok := token.(xml.StartElement); ok {
			return &e, nil
		}
	}
}

// within reads an open element up to its end.
func (x *xmlStream) within(e *xml.StartElement, read xmlReader) error {
	depth := len(x.open)
	if err := read(x, e); err != nil {
		return err
	}
	return x.skipTo(depth - 1)
}

// skipTo skips tokens until only depth elements are open.
func (x *xmlStream) skipTo(depth int) error {
	for len(x.open) > depth {
		if _, err := x.next(); err != nil {
			return err
		}
	}
	return nil
}

// xmlChildren are the known children of an element by their local names. Others are skipped.
type xmlChildren map[string]xmlReader

// children reads the children of the element whose start was read last, up to its end.
func (x *xmlStream) children(known xmlChildren) error {
	for depth := len(x.open); len(x.open) >= depth; {
		token, err := x.next()
		if err != nil {
			return err
		}
		e, isStart := token.(xml.StartElement)
		if !isStart {
			continue
		}
		if read := known[e.Name.Local]; read != nil {
			err = x.within(&e, read)
		} else {
			err = x.skipTo(depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decode reads an open element into out, as package encoding/xml does. Names are local names, without name spaces.
// Fields should be texts: one of another type makes the whole element unusable if it has another content. problem says
// why the element could not be used.
func (x *xmlStream) decode(e *xml.StartElement, out any) (problem string, err error) {
	depth := len(x.open)
	tokens := &xmlElement{x: x, start: e, until: x.raw.InputOffset() + x.limits.MaxValueBytes}
	err = xml.NewTokenDecoder(tokens).Decode(out)
	switch {
	case tokens.err == errLarge:
		problem = fmt.Sprintf("has more than %d bytes or %d elements", x.limits.MaxValueBytes, maxElements)
	case tokens.err != nil:
		return "", tokens.err
	case err != nil:
		problem = "has a field of a wrong type"
	}
	return problem, x.skipTo(depth - 1)
}

// maxElements is how many elements one decoded element may have. Otherwise a few megabytes of "<a/>" would become
// hundreds of megabytes of structs.
const maxElements = 20_000

var errLarge = errors.New("element over its limits")

// xmlElement provides the tokens of one element.
type xmlElement struct {
	x     *xmlStream
	start *xml.StartElement // not delivered yet
	until int64             // the offset at which the element exceeds its limit
	n     int               // elements
	err   error             // of the document
}

// Token implements [xml.TokenReader].
func (r *xmlElement) Token() (token xml.Token, err error) {
	if e := r.start; e != nil {
		r.start = nil
		return *e, nil
	}
	if r.x.raw.InputOffset() > r.until || r.n > maxElements {
		r.err = errLarge
		return nil, r.err
	}
	token, r.err = r.x.next()
	if _, ok := token.(xml.StartElement); ok {
		r.n++
	}
	return token, r.err
}

// pointer names the open elements and the line, for people.
func (x *xmlStream) pointer() string {
	var path strings.Builder
	for _, name := range x.open {
		path.WriteString("/" + jsonstream.Cut(jsonstream.Clean(name.Local), 40))
	}
	return fmt.Sprintf("%s (line %d)", path.String(), x.line())
}

// xmlItem reads an element as a T. An element that cannot be decoded is unreadable.
func xmlItem[T any](w *Writer, use func(*T) error) xmlReader {
	return func(x *xmlStream, e *xml.StartElement) error {
		at := x.pointer()
		var value T
		problem, err := x.decode(e, &value)
		if err != nil {
			return err
		}
		if problem != "" {
			w.Unreadable(at, problem)
			return nil
		}
		return use(&value)
	}
}

// xmlInto reads an element that the report can do without.
func xmlInto[T any](out *T) xmlReader {
	return func(x *xmlStream, e *xml.StartElement) error {
		_, err := x.decode(e, out)
		return err
	}
}

// xmlAttr is an attribute of an element by its local name, or empty.
func xmlAttr(e *xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space != "xmlns" {
			return a.Value
		}
	}
	return ""
}

// xmlNamespace is the name space of a root element, or empty.
func xmlNamespace(e *xml.StartElement) string {
	declaration := xml.Name{Local: "xmlns"}
	if e.Name.Space != "" {
		declaration = xml.Name{Space: "xmlns", Local: e.Name.Space}
	}
	for _, a := range e.Attr {
		if a.Name == declaration {
			return a.Value
		}
	}
	return ""
}
