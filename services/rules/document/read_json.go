package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sort"
	"strconv"
)

// jsonReader parses JSON token by token, which keeps line numbers, key order and number digits.
type jsonReader struct {
	*parser
	decoder *json.Decoder
	// breaks are the offsets of line breaks.
	breaks []int
}

func (p *parser) readJSON(source []byte) *value {
	r := &jsonReader{parser: p, decoder: json.NewDecoder(bytes.NewReader(source))}
	r.decoder.UseNumber()
	for i, c := range source {
		if c == '\n' {
			r.breaks = append(r.breaks, i)
		}
	}
	if len(bytes.TrimSpace(source)) == 0 {
		p.problem(1, "the file is empty")
		return nil
	}
	root := r.next(0)
	if root == nil {
		return nil
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		p.problem(r.line(), "something follows the end of the JSON")
		return nil
	}
	return root
}

// line is the line of the end of the last token.
func (r *jsonReader) line() int { return r.lineAt(int(r.decoder.InputOffset())) }

func (r *jsonReader) lineAt(offset int) int {
	return sort.SearchInts(r.breaks, offset) + 1
}

// next parses a value; nil after a problem.
func (r *jsonReader) next(depth int) *value {
	token, err := r.decoder.Token()
	if err != nil {
		r.syntaxError(err)
		return nil
	}
	out := &value{line: r.line()}
	if !r.countValues(out.line, depth, 1) {
		return nil
	}
	switch token := token.(type) {
	case bool:
		out.kind, out.text = boolean, strconv.FormatBool(token)
	case json.Number:
		out.kind, out.text = number, token.String()
	case string:
		out.kind, out.text = text, token
	case json.Delim:
		out.kind = array
		if token == '{' {
			out.kind = object
		}
		return r.children(out, depth)
	}
	return out
}

func (r *jsonReader) children(out *value, depth int) *value {
	known := map[string]bool{}
	for r.decoder.More() {
		if out.kind == object {
			key, err := r.decoder.Token()
			if err != nil {
				r.syntaxError(err)
				return nil
			}
			name, _ := key.(string)
			if known[name] {
				r.problem(r.line(), "the key %q is there twice", clip(name))
				return nil
			}
			known[name] = true
			out.keys = append(out.keys, name)
		}
		item := r.next(depth + 1)
		if item == nil {
			return nil
		}
		out.items = append(out.items, item)
	}
	if _, err := r.decoder.Token(); err != nil {
		r.syntaxError(err)
		return nil
	}
	return out
}

func (r *jsonReader) syntaxError(err error) {
	line := r.line()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = r.lineAt(int(syntax.Offset) - 1)
	}
	what := err.Error()
	if errors.Is(err, io.EOF) {
		what = "it ends too early"
	}
	r.problem(line, "this is not JSON: %s", what)
}
