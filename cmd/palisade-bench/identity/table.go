package identity

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// barMerges limits the findings matched to a different problem, in per mille of all. With fewer than a thousand
// findings, it is an absolute number.
const barMerges = 1

// WriteTable prints the outcomes and a sum per edit, as Markdown with aligned columns. It reports whether all limits
// hold.
func WriteTable(w io.Writer, outcomes []Outcome) (ok bool, err error) {
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	line := func(cells ...string) {
		_, _ = fmt.Fprintln(table, "| "+strings.Join(cells, "\t| ")+"\t|") // Flush returns the error
	}
	line("edit", "source", "after the edit", "findings", "decisions kept", "bar", "wrong merges", "wrong closes", "wrong reopens",
		"shown as new", "not closed", "")
	line(strings.Split(strings.Repeat("--- ", 12), " ")[:12]...)
	ok = true
	for i, o := range outcomes {
		ok = row(line, o) && ok
		if i == len(outcomes)-1 || outcomes[i+1].Edit.Name != o.Edit.Name {
			ok = row(line, sum(outcomes, o.Edit)) && ok
		}
	}
	return ok, table.Flush()
}

// sum adds the outcomes of an edit.
func sum(outcomes []Outcome, edit Edit) Outcome {
	total := Outcome{Edit: edit, Source: "**all**"}
	for _, o := range outcomes {
		if o.Edit.Name == edit.Name {
			total.Counts.Add(o.Counts)
		}
	}
	return total
}

// row prints an outcome and reports whether its limits hold.
func row(line func(...string), o Outcome) bool {
	how := "carried"
	if o.Scanned {
		how = "scanned"
	}
	if strings.HasPrefix(o.Source, "**") {
		how = ""
	}
	c := o.Counts
	missed := o.Missed()
	verdict := "ok"
	if len(missed) > 0 {
		verdict = "MISS: " + strings.Join(missed, ", ")
	}
	limit := ""
	if o.Edit.Bar > 0 {
		limit = fmt.Sprintf("≥ %s", percent(o.Edit.Bar, 1000))
	}
	kept := "none touched"
	if c.Touched > 0 {
		kept = fmt.Sprintf("%d of %d, %s", c.Kept, c.Touched, percent(c.Kept, c.Touched))
	}
	line(o.Edit.Name, o.Source, how, fmt.Sprint(c.Findings), kept, limit, fmt.Sprint(c.WrongMerges), fmt.Sprint(c.WrongCloses),
		fmt.Sprint(c.WrongReopens), fmt.Sprint(c.AsNew), fmt.Sprint(c.MissedCloses), verdict)
	return len(missed) == 0
}

// Missed returns the limits that do not hold.
func (o Outcome) Missed() []string {
	var missed []string
	c := o.Counts
	if c.Kept*1000 < c.Touched*o.Edit.Bar {
		missed = append(missed, "kept")
	}
	if c.WrongMerges*1000 > max(c.Findings, 1000)*barMerges {
		missed = append(missed, "merges")
	}
	if c.WrongCloses > 0 {
		missed = append(missed, "closes")
	}
	if c.WrongReopens > 0 {
		missed = append(missed, "reopens")
	}
	return missed
}

func percent(n, of int) string {
	text := fmt.Sprintf("%.1f", float64(n)*100/float64(of))
	return strings.TrimSuffix(text, ".0") + " %"
}
