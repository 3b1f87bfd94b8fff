package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// sample has one figure per round, in the order of the rounds.
type sample []float64

func (s sample) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// over divides round by round: what affects both rounds of the same number, such as a busy machine, cancels out.
func (s sample) over(other sample) sample {
	ratios := make(sample, 0, len(s))
	for i := range min(len(s), len(other)) {
		if other[i] > 0 {
			ratios = append(ratios, s[i]/other[i])
		}
	}
	return ratios
}

// scaled multiplies each figure.
func scaled(s sample, by float64) sample {
	out := make(sample, len(s))
	for i, v := range s {
		out[i] = v * by
	}
	return out
}

// row is a row of the table.
type row struct {
	what  string
	value sample                     // of all rounds
	unit  func(value float64) string // formats a value
	note  string                     // latencies, sizes

	power bool   // ratio is an exponent
	ratio sample // empty for the baseline itself
	base  string // baseline of the ratio
	bar   *bar   // nil for informational rows
}

// bar is the limit of a ratio or of a value.
type bar struct {
	limit   float64
	atLeast bool   // else at most
	power   bool   // of an exponent
	always  bool   // in every round; else in the median
	unit    string // of the value; empty for a ratio, a space for a plain number
}

func atMost(limit float64) *bar  { return &bar{limit: limit} }
func atLeast(limit float64) *bar { return &bar{limit: limit, atLeast: true} }

// atMostPower is an upper limit of an exponent.
func atMostPower(limit float64) *bar { return &bar{limit: limit, power: true} }

// within is an upper limit of a value.
func within(limit float64, unit string) *bar { return &bar{limit: limit, unit: unit} }

// always is within for every round.
func always(limit float64, unit string) *bar { return &bar{limit: limit, unit: unit, always: true} }

func (b *bar) holds(ratio float64) bool {
	if b.atLeast {
		return ratio >= b.limit
	}
	return ratio <= b.limit
}

func (b *bar) String() string {
	switch {
	case b.unit != "":
		return strings.TrimSpace(fmt.Sprintf("≤ %.4g %s", b.limit, b.unit))
	case b.power:
		return fmt.Sprintf("≤ ^%.4g", b.limit)
	case b.atLeast:
		return fmt.Sprintf("≥ %.4g×", b.limit)
	}
	return fmt.Sprintf("≤ %.4g×", b.limit)
}

func (r row) missed() bool {
	if r.bar == nil {
		return false
	}
	judged := r.ratio
	if r.bar.unit != "" {
		judged = r.value
	}
	if len(judged) == 0 {
		return true
	}
	if r.bar.always {
		return !r.bar.holds(slices.Max(judged))
	}
	return !r.bar.holds(judged.median())
}

// section is a table of the report.
type section struct {
	title string
	rows  []row
}

// writeSections prints the tables with headings, and reports whether all limits hold.
func writeSections(w io.Writer, title string, sections []section) (ok bool, err error) {
	if _, err := fmt.Fprintf(w, "%s\n", title); err != nil {
		return false, err
	}
	ok = true
	for _, s := range sections {
		good, err := writeTable(w, "\n### "+s.title, s.rows)
		if err != nil {
			return false, err
		}
		ok = ok && good
	}
	return ok, nil
}

// writeTable prints the rows as Markdown with aligned columns, and reports whether all limits hold.
func writeTable(w io.Writer, title string, rows []row) (ok bool, err error) {
	if _, err := fmt.Fprintf(w, "%s\n\n", title); err != nil {
		return false, err
	}
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	line := func(cells ...string) {
		_, _ = fmt.Fprintln(table, "| "+strings.Join(cells, "\t| ")+"\t|") // Flush returns the error
	}
	line("what", "median (min to max)", "ratio (min to max)", "against", "bar", "", "notes")
	line("---", "---", "---", "---", "---", "---", "---")
	ok = true
	for _, r := range rows {
		ratio, limit, verdict := "", "", ""
		if r.power && len(r.ratio) > 0 {
			ratio = fmt.Sprintf("^%.2f", r.ratio.median())
		} else if len(r.ratio) > 0 {
			ratio = spread(r.ratio, func(v float64) string { return short(v) + "×" })
		}
		if r.bar != nil {
			limit, verdict = r.bar.String(), "ok"
		}
		if r.missed() {
			verdict, ok = "MISS", false
		}
		line(r.what, spread(r.value, r.unit), ratio, r.base, limit, verdict, r.note)
	}
	return ok, table.Flush()
}

func spread(s sample, unit func(float64) string) string {
	if len(s) == 0 {
		return ""
	}
	if len(s) == 1 {
		return unit(s[0])
	}
	return fmt.Sprintf("%s (%s to %s)", unit(s.median()), short(slices.Min(s)), short(slices.Max(s)))
}

// short formats three digits of a small number and the integer part of a large one.
func short(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Formats of values.
func cpuMicros(v float64) string     { return fmt.Sprintf("%.0f µs CPU", v) }
func cpuMicrosFine(v float64) string { return fmt.Sprintf("%.2f µs CPU", v) }
func waitedMicros(v float64) string  { return fmt.Sprintf("%.0f µs", v) }
func megabytes(v float64) string     { return fmt.Sprintf("%.0f MB", v) }
func gigabytes(v float64) string     { return fmt.Sprintf("%.2f GB", v) }
func plainNumber(v float64) string   { return fmt.Sprintf("%.0f", v) }
func perSecondOf(v float64) string   { return fmt.Sprintf("%.0f/s", v) }
func millis(v float64) string        { return fmt.Sprintf("%.1f ms", v) }
func rowsPerSecond(v float64) string { return fmt.Sprintf("%.0f rows/s", v) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// machine describes the machine.
func machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}
