package formats

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

const (
	// headSize is how much of a document is read first to recognise its format, in bytes.
	headSize = 64 << 10
	// outlineDepth is how deep an outline reaches.
	outlineDepth = 5
	// outlineItems is how many elements of each list are in the outline. Lists of one format have equal elements.
	outlineItems = 3
	// outlineNames bounds the names of an outline.
	outlineNames = 2000
)

// Outline has the names of a JSON document down to a few levels, and its short texts and numbers. Of an XML document it
// has the names of elements: "bom.components.component".
type Outline struct {
	// Root is the kind of the document: '{', '[', another kind of JSON, or '<' for XML.
	Root jsontext.Kind
	// Namespace is the name space of the root element of an XML document, or empty.
	Namespace string

	lines  bool            // another document follows
	lists  map[string]bool // paths of lists
	paths  [][]string      // in file order, without repetitions
	known  map[string]bool
	values map[string]string
}

// Has reports whether the document has a member, such as "Results[].Target": "[]" stands for any of the first elements
// of a list, "*" for any name of an object. A document that is a list begins with "[]".
func (o *Outline) Has(path string) bool {
	want := split(path)
	return o.known[path] || slices.ContainsFunc(o.paths, func(have []string) bool {
		return slices.EqualFunc(want, have, func(w, h string) bool { return w == h || w == "*" && h != "[]" })
	})
}

// Value is the first text or number at a path without "*", or empty.
func (o *Outline) Value(path string) string { return o.values[path] }

// empty reports whether the document is an empty list, or an object of empty lists.
func (o *Outline) empty() bool {
	if o.Root == '[' {
		return len(o.paths) == 0
	}
	return o.Root == '{' && len(o.paths) > 0 && len(o.lists) == len(o.paths)
}

// split splits "Results[].Target" into Results, [] and Target.
func split(path string) []string {
	return strings.Split(strings.TrimPrefix(strings.ReplaceAll(path, "[]", ".[]"), "."), ".")
}

// sketch reads at most most bytes of a document. whole says that it read all of it.
func sketch(ctx context.Context, src io.ReadSeeker, limits jsonstream.Limits, most int64) (o *Outline, whole bool, err error) {
	o = &Outline{known: map[string]bool{}, lists: map[string]bool{}, values: map[string]string{}}
	limits.MaxBytes = min(limits.MaxBytes, most)
	head, err := beginning(src)
	if err == nil {
		err = checkBody(head)
	}
	if err != nil {
		return nil, false, err
	}
	if startsAsXML(head) {
		return o, true, o.sketchXML(ctx, src, limits)
	}
	s, err := jsonstream.Open(ctx, src, limits)
	if err != nil {
		return nil, false, err
	}
	o.Root = s.Kind()
	if err = o.value(s, "", nil); err == nil {
		o.lines = s.End() != nil
	}
	var limit *jsonstream.LimitError
	if errors.As(err, &limit) && most < 1<<20 {
		return o, false, nil // the rest of the document is not needed yet
	}
	return o, true, s.Locate(err)
}

// value adds the next value at a path.
func (o *Outline) value(s *jsonstream.Stream, path string, names []string) error {
	switch kind := s.Kind(); {
	case len(names) >= outlineDepth || len(o.paths) >= outlineNames:
		return s.Skip()
	case kind == '{':
		return s.Object(func(name string) error {
			at := name
			if path != "" {
				at = path + "." + name
			}
			return o.value(s, at, o.add(at, names, name))
		})
	case kind == '[':
		o.lists[path] = true
		return s.Array(func(i int) error {
			if i >= outlineItems {
				return s.Skip()
			}
			at := path + "[]"
			return o.value(s, at, o.add(at, names, "[]"))
		})
	}
	token, err := s.Token()
	if err != nil {
		return err
	}
	if text := token.String(); len(text) <= 200 && o.values[path] == "" {
		o.values[path] = strings.Clone(text)
	}
	return nil
}

func (o *Outline) add(path string, parents []string, name string) []string {
	names := append(slices.Clip(parents), name)
	if !o.known[path] && len(o.paths) < outlineNames {
		o.known[path] = true
		o.paths = append(o.paths, names)
	}
	return names
}
