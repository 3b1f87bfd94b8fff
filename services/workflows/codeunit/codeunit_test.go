package codeunit

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitShape(t *testing.T) {
	long := File{"long.go", []byte(strings.Repeat("x := 1\n", 30))}
	cut := Split([]File{long, {"empty.go", nil}}, 160)
	if len(cut) != 3 || !bytes.HasPrefix(cut[2].Text, []byte("=== long.go (lines 24-30 of 30)\n24: x := 1\n")) {
		t.Errorf("%d units, the third is %q", len(cut), cut[2].Text)
	}
	units := Split([]File{{"web/b.go", []byte("package web\r\n\nfunc b() {}")}, {"web/a.go", []byte("package web\n")}}, 160)
	want := "=== web/a.go (lines 1-1 of 1)\n1: package web\n=== web/b.go (lines 1-3 of 3)\n1: package web\r\n2: \n3: func b() {}\n"
	if len(units) != 1 || string(units[0].Text) != want || !slices.Equal(units[0].Files, []string{"web/a.go", "web/b.go"}) {
		t.Errorf("got %q %q", units[0].Text, units[0].Files)
	}
	if Split(nil, 100) != nil {
		t.Error("no files make a unit")
	}
}

var (
	heading = regexp.MustCompile(`^=== (.*) \(lines (\d+)-(\d+) of (\d+)\)$`)
	line    = regexp.MustCompile(`(?s)^(\d+): (.*)$`)
)

// All units together contain each line of each file exactly once, and nothing else.
func TestSplitKeepsEveryLineOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 400).Draw(t, "size")
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab=: (\n\n\r1é"))) // includes text that looks like a heading
		contents := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}(/[a-z=() ]{1,4})?`), text, 0, 8).Draw(t, "files")
		var files []File
		want := map[string][]string{}
		for path, content := range contents {
			files = append(files, File{path, []byte(content)})
			for _, l := range linesOf([]byte(content)) {
				want[path] = append(want[path], string(l))
			}
		}
		units := Split(files, size)
		if again := Split(files, size); !reflect.DeepEqual(units, again) {
			t.Fatal("two runs differ")
		}
		got := map[string][]string{}
		for i, unit := range units {
			lines := read(t, unit, got)
			if len(unit.Text) > size && lines > 1 {
				t.Fatalf("unit %d has %d bytes and %d lines, the limit is %d", i, len(unit.Text), lines, size)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		whole(t, units, want, size)
	})
}

// read parses a unit and returns its number of lines.
func read(t *rapid.T, unit Unit, into map[string][]string) (count int) {
	var paths []string
	for l := range strings.SplitSeq(strings.TrimSuffix(string(unit.Text), "\n"), "\n") {
		if m := heading.FindStringSubmatch(l); m != nil {
			paths = append(paths, m[1])
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("neither heading nor line: %q", l)
		}
		path := paths[len(paths)-1]
		if n, _ := strconv.Atoi(m[1]); n != len(into[path])+1 {
			t.Fatalf("%s: line %d follows %d lines", path, n, len(into[path]))
		}
		into[path] = append(into[path], m[2])
		count++
	}
	if !slices.Equal(paths, unit.Files) {
		t.Fatalf("headings %q, files %q", paths, unit.Files)
	}
	return count
}

// whole checks that no file is cut if a unit could hold it.
func whole(t *rapid.T, units []Unit, files map[string][]string, size int) {
	parts := map[string]int{}
	for _, unit := range units {
		for _, path := range unit.Files {
			parts[path]++
		}
	}
	for path, n := range parts {
		needs := headingSize(path, len(files[path]))
		for i, l := range files[path] {
			needs += lineSize(i+1, []byte(l))
		}
		if n > 1 && needs <= size {
			t.Fatalf("%s needs %d of %d bytes and is in %d units", path, needs, size, n)
		}
	}
}
