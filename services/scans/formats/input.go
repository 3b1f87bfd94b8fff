package formats

import (
	"context"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Input is a document that is being converted. A reader may walk it several times, for example to read the names of
// the tool and its targets before the results.
type Input struct {
	ctx    context.Context
	src    io.ReadSeeker
	limits jsonstream.Limits
	kept   int
	w      *Writer
}

// maxKept bounds what a reader keeps of the heads of a document, in bytes.
const maxKept = 24 << 20

// keep accounts for a head of n bytes of text that is kept in memory while the rest is read.
func (in *Input) keep(n int) error {
	if in.kept += n + 100; in.kept > maxKept {
		return &jsonstream.LimitError{What: "the names of targets, packages and vulnerabilities have too many bytes", Max: maxKept}
	}
	return nil
}

// Walk reads the document from its start. Errors of the document are typed as in package jsonstream.
func (in *Input) Walk(read func(*jsonstream.Stream) error) error {
	s, err := jsonstream.Open(in.ctx, in.src, in.limits)
	if err != nil {
		return err
	}
	s.Fixed = in.w.Fixed
	if err := read(s); err != nil {
		return s.Locate(err)
	}
	return s.Locate(s.End())
}

// WalkAll is Walk for a document of several values in a row, such as JSON lines.
func (in *Input) WalkAll(read func(*jsonstream.Stream) error) error {
	return in.Walk(func(s *jsonstream.Stream) error {
		for s.More() {
			if err := read(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// members are the known members of an object. Others are skipped.
type members map[string]func(*jsonstream.Stream) error

// read reads a member if it is known.
func (known members) read(s *jsonstream.Stream, name string) error {
	if read := known[name]; read != nil {
		return read(s)
	}
	return s.Skip()
}

// report is object for a report that has these lists. A missing or null one is not empty: the tool did not look, or the
// report is not whole. Then no finding is closed.
func report(s *jsonstream.Stream, w *Writer, known members, lists ...string) error {
	known, missing := maps.Clone(known), slices.Clone(lists)
	for _, name := range lists {
		read := known[name]
		known[name] = func(s *jsonstream.Stream) error {
			if s.Kind() != 'n' {
				missing = slices.DeleteFunc(missing, func(other string) bool { return other == name })
			}
			return read(s)
		}
	}
	err := object(s, known)
	if len(missing) > 0 && err == nil {
		w.Fail("the report has no list " + missing[0])
	}
	return err
}

// notNull reads a part that may be missing. null is unreadable.
func notNull(w *Writer, read func(*jsonstream.Stream) error) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		if s.Kind() != 'n' {
			return read(s)
		}
		err := s.Skip()
		w.Unreadable(s.Pointer(), "is null")
		return err
	}
}

// object reads the members of the next value that are known. A value of another kind is ignored, with a warning; parts
// with problems use fields instead.
func object(s *jsonstream.Stream, known members) error {
	kind := s.Kind()
	ok, err := s.ObjectOf(func(name string) error { return known.read(s, name) })
	if !ok && err == nil && kind != 'n' && s.Fixed != nil {
		s.Fixed(s.Pointer(), jsonstream.Fix{Problem: "is " + jsonstream.KindName(kind) + ", want an object: ignored"})
	}
	return err
}

// fields reads the members of the next value that are known. A value of another kind is unreadable.
func fields(s *jsonstream.Stream, w *Writer, known members) error {
	return each(w, known.read)(s)
}

// list reads the elements of the next value. null is an empty list; a value of another kind is unreadable.
func list(w *Writer, element func(s *jsonstream.Stream, i int) error) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		at, kind := s.Pointer(), s.Kind()
		ok, err := s.ArrayOf(func(i int) error { return element(s, i) })
		if !ok && err == nil {
			w.Unreadable(at, "is "+jsonstream.KindName(kind)+", want an array")
		}
		return err
	}
}

// each reads the members of the next value, whose names are data. A value of another kind is unreadable.
func each(w *Writer, member func(s *jsonstream.Stream, name string) error) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		kind := s.Kind()
		ok, err := s.ObjectOf(func(name string) error { return member(s, name) })
		if !ok && err == nil {
			w.Unreadable(s.Pointer(), "is "+jsonstream.KindName(kind)+", want an object")
		}
		return err
	}
}

// items reads the elements of the next value, each as a T. An element that cannot be decoded is unreadable.
func items[T any](w *Writer, use func(*T) error) func(*jsonstream.Stream) error {
	return list(w, func(s *jsonstream.Stream, _ int) error { return item(s, w, use) })
}

// item reads the next value as a T. A value that cannot be decoded is unreadable.
func item[T any](s *jsonstream.Stream, w *Writer, use func(*T) error) error {
	v, ok, err := s.Value()
	w.at = s.Pointer()
	switch {
	case err != nil:
		return err
	case !ok:
		w.Unreadable(w.at, s.OverSize())
		return nil
	}
	return decoded(w, v, use)
}

// decoded decodes a value that has been read already. A value that cannot be decoded is unreadable.
func decoded[T any](w *Writer, v jsontext.Value, use func(*T) error) error {
	if v.Kind() == 'n' || len(v) == 0 {
		w.Unreadable(w.at, "is null")
		return nil
	}
	var value T
	var fixes []jsonstream.Fix
	if err := jsonstream.Unmarshal(v, &value, func(f jsonstream.Fix) { fixes = append(fixes, f) }); err != nil {
		w.Unreadable(w.at, jsonstream.Describe(err))
		return nil
	}
	for _, fix := range fixes {
		w.Fixed(w.at, fix)
	}
	return use(&value)
}

// into reads a part that the report can do without, with a warning about what is converted or ignored (see
// [Writer.Fixed]). What cannot be used is left empty.
func into[T any](out *T) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		_, err := s.Decode(out, nil)
		return err
	}
}

// uri escapes a path, so that reading it as a URI reference gives the path back.
func uri(path string) string {
	path = strings.ReplaceAll(path, `\`, "/")
	if strings.Contains(path, "://") {
		return path
	}
	escaped := (&url.URL{Path: path}).EscapedPath()
	return strings.TrimPrefix(escaped, "./")
}

// optionalText is a text with something before and after it, or nothing.
func optionalText(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}
