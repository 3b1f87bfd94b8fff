// Package printout escapes foreign text (rule ids, paths, messages) for terminals and spreadsheets. It is the only
// package that writes CSV files and tables.
package printout

import (
	"encoding/csv"
	"io"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf8"
)

// Text makes non-printing characters visible. Control characters could rewrite the terminal or break a table, and
// bidirectional controls could hide text.
func Text(text string) string { return visible(text, "") }

func visible(text, keep string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || strings.ContainsRune(keep, r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}

// Cell is Text for spreadsheets: no program takes the result for a formula. A cell that starts like a formula is one,
// quoted or not, and some programs ignore leading spaces. The apostrophe is OWASP's advice ("CSV Injection").
func Cell(text string) string {
	shown := Text(text)
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(text, func(r rune) bool { return r == ' ' || r == '\u00a0' }))
	if strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) {
		return "'" + shown
	}
	return shown
}

// CSV writes a file for spreadsheets.
type CSV struct {
	out *csv.Writer
	err error
}

// NewCSV writes to w.
func NewCSV(w io.Writer) *CSV { return &CSV{out: csv.NewWriter(w)} }

// Row writes cells, each escaped. After the first error it does nothing.
func (c *CSV) Row(cells ...string) error {
	safe := make([]string, len(cells))
	for i, cell := range cells {
		safe[i] = Cell(cell)
	}
	if c.err == nil {
		c.err = c.out.Write(safe)
	}
	return c.err
}

// End flushes, and returns the first error.
func (c *CSV) End() error {
	if c.out.Flush(); c.err == nil {
		c.err = c.out.Error()
	}
	return c.err
}

// Table aligns columns; a tab ends a cell, and a newline ends a row. Other non-printing characters are made visible,
// except the program's own colours.
type Table struct{ out *tabwriter.Writer }

// NewTable writes to w.
func NewTable(w io.Writer) *Table { return &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// colour matches a sequence that only sets a colour.
var colour = regexp.MustCompile("\x1b\\[(0|3[0-9])m")

// Write implements io.Writer. A cell must be in one call.
func (t *Table) Write(text []byte) (int, error) {
	var b strings.Builder
	last := 0
	for _, at := range colour.FindAllIndex(text, -1) {
		b.WriteString(visible(string(text[last:at[0]]), "\t\n"))
		b.Write(text[at[0]:at[1]])
		last = at[1]
	}
	b.WriteString(visible(string(text[last:]), "\t\n"))
	if _, err := io.WriteString(t.out, b.String()); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Flush writes the table.
func (t *Table) Flush() error { return t.out.Flush() }
