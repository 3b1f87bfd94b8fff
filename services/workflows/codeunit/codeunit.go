// Package codeunit divides the files of a repository into units for a reader with a limited context. It is
// deterministic: the same files give the same units.
package codeunit

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// File is one text file.
type File struct {
	// Path is shown unchanged. It must not contain a line break.
	Path string
	// Content is UTF-8 text.
	Content []byte
}

// Unit is one portion of the files.
type Unit struct {
	// Text is the unit's content: for each piece of a file a heading "=== path (lines 1-40 of 120)", then its lines with
	// their numbers, such as "17: return nil". The number prefix keeps a line from looking like a heading.
	Text []byte
	// Files lists the paths in the unit, in order.
	Files []string
}

// Split divides files into units of at most size bytes. A file stays whole if it fits into a unit, and is cut at line
// ends otherwise. Only a single line longer than size makes a larger unit. Each line is in exactly one unit, in the
// order of paths and lines. Empty files are left out.
func Split(files []File, size int) []Unit {
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	s := splitter{size: size}
	for _, f := range files {
		if lines := linesOf(f.Content); len(lines) > 0 {
			s.add(f.Path, lines)
		}
	}
	s.close()
	return s.units
}

type splitter struct {
	size  int
	unit  Unit
	units []Unit
}

func (s *splitter) add(path string, lines [][]byte) {
	whole := headingSize(path, len(lines))
	for i, line := range lines {
		whole += lineSize(i+1, line)
	}
	if len(s.unit.Text)+whole > s.size {
		s.close()
	}
	for first := 0; first < len(lines); {
		last, used := first, len(s.unit.Text)+headingSize(path, len(lines))
		for last < len(lines) {
			used += lineSize(last+1, lines[last])
			if used > s.size && last > first {
				break
			}
			last++
			if used > s.size {
				break // a single line that no unit can hold
			}
		}
		s.write(path, lines, first, last)
		if first = last; first < len(lines) {
			s.close()
		}
	}
}

func (s *splitter) write(path string, lines [][]byte, first, last int) {
	text := s.unit.Text
	text = append(append(text, "=== "...), path...)
	text = strconv.AppendInt(append(text, " (lines "...), int64(first+1), 10)
	text = strconv.AppendInt(append(text, '-'), int64(last), 10)
	text = strconv.AppendInt(append(text, " of "...), int64(len(lines)), 10)
	text = append(text, ")\n"...)
	for i := first; i < last; i++ {
		text = append(strconv.AppendInt(text, int64(i+1), 10), ": "...)
		text = append(append(text, lines[i]...), '\n')
	}
	s.unit.Text = text
	s.unit.Files = append(s.unit.Files, path)
}

func (s *splitter) close() {
	if len(s.unit.Text) > 0 {
		s.units = append(s.units, s.unit)
	}
	s.unit = Unit{}
}

// linesOf splits a text at line feeds. A trailing line feed does not begin a line.
func linesOf(content []byte) [][]byte {
	if len(content) == 0 {
		return nil
	}
	return bytes.Split(bytes.TrimSuffix(content, []byte("\n")), []byte("\n"))
}

func lineSize(number int, line []byte) int { return digits(number) + len(": \n") + len(line) }

// headingSize is the size of the longest heading that a piece of the file can have.
func headingSize(path string, lines int) int {
	return len("===  (lines - of )\n") + len(path) + 3*digits(lines)
}

func digits(n int) int { return len(strconv.Itoa(n)) }
