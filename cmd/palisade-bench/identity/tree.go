package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Tree is the code of one commit.
type Tree struct {
	// Module is the path of the Go module; empty for other code.
	Module string
	// Files are the tracked files, by slash-separated path.
	Files map[string][]Line
	// Other are the files that are only copied: go.mod, test data, assets.
	Other map[string][]byte
}

// Line is a line of code, without its newline.
type Line struct {
	Text string
	// From is the position of the line in the tree before the edit; zero for a new line.
	From Place
	// Copy is true for a second copy of the line in From.
	Copy bool
	// shifts are the changes inside the line, in order.
	shifts []shift
}

// Place is a line in a file; lines count from 1.
type Place struct {
	File string
	Line int
}

// shift moves all columns after at (1-based, in bytes) by delta.
type shift struct{ at, delta int }

// column returns the present column for a column before the edit.
func (l Line) column(before int) int {
	for _, s := range l.shifts {
		if before >= s.at {
			before = max(s.at, before+s.delta)
		}
	}
	return before
}

// LoadModule reads the code of a Go module.
func LoadModule(dir, module string) (*Tree, error) {
	t := &Tree{Module: module, Files: map[string][]Line{}, Other: map[string][]byte{}}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if rel = filepath.ToSlash(rel); strings.HasSuffix(rel, ".go") {
			t.Files[rel] = splitLines(rel, string(content))
		} else {
			t.Other[rel] = content
		}
		return nil
	})
	return t, err
}

func splitLines(file, text string) []Line {
	texts := strings.Split(text, "\n")
	lines := make([]Line, len(texts))
	for i, text := range texts {
		lines[i] = Line{Text: text, From: Place{file, i + 1}}
	}
	return lines
}

// UnknownCode is a tree with only the paths and the minimum lengths of files: enough to carry the results of a scanner
// that quotes no code.
func UnknownCode(lines map[string]int) *Tree {
	t := &Tree{Files: map[string][]Line{}, Other: map[string][]byte{}}
	for file, n := range lines {
		made := make([]Line, n)
		for i := range made {
			made[i] = Line{From: Place{file, i + 1}}
		}
		t.Files[file] = made
	}
	return t
}

// Clone copies the tree as deeply as edits change it.
func (t *Tree) Clone() *Tree {
	c := &Tree{Module: t.Module, Files: make(map[string][]Line, len(t.Files)), Other: maps.Clone(t.Other)}
	for file, lines := range t.Files {
		c.Files[file] = slices.Clone(lines)
	}
	return c
}

// Paths returns the tracked files, sorted.
func (t *Tree) Paths() []string { return slices.Sorted(maps.Keys(t.Files)) }

// Text returns a tracked file as one string.
func (t *Tree) Text(file string) string { return joinLines(t.Files[file]) }

func joinLines(lines []Line) string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Text
	}
	return strings.Join(texts, "\n")
}

// Digest is equal for equal files under equal paths.
func (t *Tree) Digest() string {
	hash := sha256.New()
	add := func(text string) {
		_ = binary.Write(hash, binary.LittleEndian, int64(len(text))) // a hash never fails
		_, _ = hash.Write([]byte(text))
	}
	for _, file := range t.Paths() {
		add(file)
		add(t.Text(file))
	}
	for _, file := range slices.Sorted(maps.Keys(t.Other)) {
		add(file)
		add(string(t.Other[file]))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Write writes the files below dir.
func (t *Tree) Write(dir string) error {
	write := func(file string, content []byte) error {
		name := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		return os.WriteFile(name, content, 0o600)
	}
	for file := range t.Files {
		if err := write(file, []byte(t.Text(file))); err != nil {
			return err
		}
	}
	for file, content := range t.Other {
		if err := write(file, content); err != nil {
			return err
		}
	}
	return nil
}

// Position is the present position of an old line.
type Position struct {
	Place
	Text string
	line Line
}

// LineMap maps lines of the tree before an edit to their present positions.
type LineMap struct {
	now    map[Place]Position
	copies map[Place][]Position
}

// NewLineMap computes the map of an edited tree. A line in two places is an error unless one is a copy: such an edit
// has no defined truth.
func NewLineMap(edited *Tree) (*LineMap, error) {
	m := &LineMap{now: map[Place]Position{}, copies: map[Place][]Position{}}
	for _, file := range edited.Paths() {
		for i, line := range edited.Files[file] {
			position := Position{Place: Place{file, i + 1}, Text: line.Text, line: line}
			switch {
			case line.From == Place{}:
			case line.Copy:
				m.copies[line.From] = append(m.copies[line.From], position)
			default:
				if duplicate, double := m.now[line.From]; double {
					return nil, fmt.Errorf("line %s:%d is both at %s:%d and at %s:%d", line.From.File, line.From.Line, duplicate.File, duplicate.Line, file, i+1)
				}
				m.now[line.From] = position
			}
		}
	}
	return m, nil
}

// Now returns the position of an old line; false: it is gone.
func (m *LineMap) Now(before Place) (Position, bool) {
	position, there := m.now[before]
	return position, there
}

// Copies returns the copies of an old line.
func (m *LineMap) Copies(of Place) []Position { return m.copies[of] }
