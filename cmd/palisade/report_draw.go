package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"
	"golang.org/x/term"

	"github.com/palisade/palisade/services/findings/printout"
)

// reportTable is a report as rows (buckets, or products of the funnel) and numeric columns.
type reportTable struct {
	head  []string // headings before the numbers
	names []string // headings of the numbers
	rows  []reportRow
}

type reportRow struct {
	label  []string
	values []int64
}

// readReport parses the response of the API. Without fields, the columns are the keys of the map "open", the largest of
// the last bucket first.
func readReport(answer json.RawMessage, fields []string) (*reportTable, error) {
	var body struct {
		Buckets   []map[string]json.RawMessage `json:"buckets"`
		ByProduct map[string]map[string]int64  `json:"byProduct"`
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, fmt.Errorf("unexpected report: %w", err)
	}
	if body.ByProduct != nil {
		return funnelTable(answer, body.ByProduct, fields)
	}
	t := &reportTable{head: []string{"since", "until"}, names: fields}
	numbers := make([]map[string]int64, len(body.Buckets))
	for i, b := range body.Buckets {
		var period struct{ Since, Until time.Time }
		err := json.Unmarshal(b["timePeriod"], &period)
		numbers[i] = map[string]int64{}
		for _, field := range fields {
			var n int64
			err = cmp.Or(err, json.Unmarshal(b[field], &n))
			numbers[i][field] = n
		}
		if fields == nil {
			err = cmp.Or(err, json.Unmarshal(b["open"], &numbers[i]))
		}
		if err != nil {
			return nil, fmt.Errorf("unexpected bucket in the report: %w", err)
		}
		t.rows = append(t.rows, reportRow{label: []string{dateOf(period.Since), dateOf(period.Until)}})
	}
	if fields == nil {
		t.names = largestFirst(numbers)
	}
	for i := range t.rows {
		for _, name := range t.names {
			t.rows[i].values = append(t.rows[i].values, numbers[i][name])
		}
	}
	return t, nil
}

// largestFirst sorts all names by their number in the last bucket, then by name.
func largestFirst(buckets []map[string]int64) []string {
	all := map[string]bool{}
	for _, b := range buckets {
		for name := range b {
			all[name] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		last := buckets[len(buckets)-1]
		return cmp.Or(cmp.Compare(last[b], last[a]), cmp.Compare(a, b))
	})
}

func funnelTable(answer json.RawMessage, byProduct map[string]map[string]int64, fields []string) (*reportTable, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(answer, &all); err != nil {
		return nil, err
	}
	byProduct["all"] = map[string]int64{}
	for _, field := range fields {
		var n int64
		if err := json.Unmarshal(all[field], &n); err != nil {
			return nil, fmt.Errorf("unexpected funnel: %w", err)
		}
		byProduct["all"][field] = n
	}
	t := &reportTable{head: []string{"product"}, names: fields}
	for _, product := range slices.Sorted(maps.Keys(byProduct)) {
		row := reportRow{label: []string{product}}
		for _, field := range fields {
			row.values = append(row.values, byProduct[product][field])
		}
		t.rows = append(t.rows, row)
	}
	return t, nil
}

// dateOf formats midnight as a date.
func dateOf(t time.Time) string {
	if t = t.UTC(); t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02T15:04:05Z")
}

func (r reportRow) cells() []string {
	cells := slices.Clone(r.label)
	for _, n := range r.values {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return cells
}

func (t *reportTable) writeCSV(w io.Writer) error {
	out := printout.NewCSV(w)
	_ = out.Row(append(slices.Clone(t.head), t.names...)...)
	for _, r := range t.rows {
		_ = out.Row(r.cells()...) // End returns the first error
	}
	return out.End()
}

func (t *reportTable) writeTable(w io.Writer) error {
	out := printout.NewTable(w)
	for i, name := range append(slices.Clone(t.head), t.names...) {
		if i > 0 {
			_, _ = fmt.Fprint(out, "\t")
		}
		_, _ = fmt.Fprint(out, printable(name))
	}
	_, _ = fmt.Fprintln(out)
	for _, r := range t.rows {
		for i, cell := range r.cells() {
			if i > 0 {
				_, _ = fmt.Fprint(out, "\t")
			}
			_, _ = fmt.Fprint(out, cell)
		}
		_, _ = fmt.Fprintln(out) // Flush returns the first error
	}
	return out.Flush()
}

// maxLines is the number of series in a chart: more are hard to distinguish.
const maxLines = 6

var lineColours = []asciigraph.AnsiColor{
	asciigraph.Blue, asciigraph.Green, asciigraph.Red, asciigraph.Yellow, asciigraph.Magenta, asciigraph.Cyan,
}

// draw writes a chart with a line for each of the first maxLines series.
func (t *reportTable) draw(std streams, unit string) error {
	if len(t.rows) == 0 || len(t.names) == 0 {
		_, err := fmt.Fprintln(std.out, "No findings.")
		return err
	}
	shown := t.names[:min(len(t.names), maxLines)]
	lines, legends := make([][]float64, len(shown)), make([]string, len(shown))
	var lowest, highest int64
	for i, name := range shown {
		for _, r := range t.rows {
			lines[i] = append(lines[i], float64(r.values[i]))
			lowest, highest = min(lowest, r.values[i]), max(highest, r.values[i])
		}
		last := t.rows[len(t.rows)-1].values[i]
		legends[i] = fmt.Sprintf("%s %d", printable(name), last)
		if len(lines[i]) == 1 {
			lines[i] = append(lines[i], lines[i][0]) // a single bucket is a level line
		}
	}
	width := 80
	if f, isFile := std.out.(*os.File); isFile {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			width = columns
		}
	}
	options := []asciigraph.Option{
		// All numbers are integers: with more rows than the range of values, some values would be shown twice.
		asciigraph.Height(int(max(1, min(14, highest-lowest)))), asciigraph.Width(max(20, min(width, 140)-12)), asciigraph.Precision(0), asciigraph.LowerBound(0),
		asciigraph.Caption(fmt.Sprintf("%s, %s to %s", unit, t.rows[0].label[0], t.rows[len(t.rows)-1].label[1])),
	}
	if std.colour(std.out) {
		options = append(options, asciigraph.SeriesColors(lineColours[:len(shown)]...), asciigraph.SeriesLegends(legends...))
		_, err := fmt.Fprintln(std.out, asciigraph.PlotMany(lines, options...))
		return err
	}
	// Without colours each series has its own mark; asciigraph's legends require colours.
	marks := make([]asciigraph.CharSet, len(shown))
	for i := range marks {
		marks[i] = asciigraph.CreateCharSet(plainMarks[i])
		legends[i] = plainMarks[i] + " " + legends[i]
	}
	options = append(options, asciigraph.SeriesChars(marks...))
	_, err := fmt.Fprintf(std.out, "%s\n\n      %s\n", asciigraph.PlotMany(lines, options...), strings.Join(legends, "   "))
	return err
}

// plainMarks distinguish maxLines series.
var plainMarks = []string{"●", "○", "■", "□", "▲", "△"}
