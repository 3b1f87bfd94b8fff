package printout

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

func TestCSV(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\t=1": `'\t=1`, "\r=1": `'\r=1`, "  =1": "'  =1", "＝1": "'＝1",
		"\x1b[2J": `\x1b[2J`, "a\u202eb": `a\u202eb`, "a\u2066b\u200bc": `a\u2066b\u200bc`, "plain": "plain", "": "", "Grüße 世界": "Grüße 世界",
	} {
		var b strings.Builder
		c := NewCSV(&b)
		_ = c.Row(cell, "x")
		if err := c.End(); err != nil || b.String() != want+",x\n" {
			t.Errorf("%q is written as %q, %v; want %q", cell, b.String(), err, want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	table := NewTable(&b)
	_, _ = fmt.Fprintf(table, "A\tB\n%s\t%s\n", "\x1b[31mred\x1b[0m", "x\x1b[2J\x1b]0;t\x07\u202ey")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "A             B\n\x1b[31mred\x1b[0m  x\\x1b[2J\\x1b]0;t\\a\\u202ey\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestOnlyWriter: no other product code writes CSV files or tables. The load program prints only its own numbers.
func TestOnlyWriter(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../../..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "ent" || name == "gen" || name == "data" || name == "bin" || name == "cmd/palisade-bench" || name != "." && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || name == "services/findings/printout/printout.go":
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imported := range file.Imports {
			if p := imported.Path.Value; p == `"encoding/csv"` || p == `"text/tabwriter"` {
				t.Errorf("%s imports %s: use services/findings/printout, which makes text of others safe", name, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
