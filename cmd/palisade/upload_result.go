package main

import (
	"fmt"
	"io"
	"sort"

	"github.com/palisade/palisade/services/findings/printout"
)

// shownSkips is the number of skipped results that are printed. For the rest, only the reasons are counted.
const shownSkips = 20

// uploadResult is the response to an uploaded report.
type uploadResult struct {
	ScanID  int64  `json:"scan_id"`
	Project string `json:"project"`
	Ref     string `json:"ref"`

	Created   int64 `json:"created"`
	Updated   int64 `json:"updated"`
	Unchanged int64 `json:"unchanged"`
	Reopened  int64 `json:"reopened"`
	Fixed     int64 `json:"fixed"`
	Removed   int64 `json:"removed"`
	Skipped   int64 `json:"skipped"`
	// HeldCloses is the number of findings that the report would have closed; a warning of the run has the details.
	HeldCloses int64 `json:"held_closes"`
	// Blocked says that remediation policies block. BlockReason names them.
	Blocked     bool   `json:"blocked"`
	BlockReason string `json:"block_reason"`
	// URL is the page about the pull request; empty for other refs.
	URL string `json:"url"`

	Runs                  []uploadRun     `json:"runs"`
	SkippedResults        []skippedResult `json:"skipped_results"`
	SkippedResultsOmitted int64           `json:"skipped_results_omitted"` // number of skipped results that are not listed
}

type uploadRun struct {
	Index       int64    `json:"index"`
	Tool        string   `json:"tool"`
	ToolVersion string   `json:"tool_version"`
	Category    string   `json:"category"`
	Product     string   `json:"product"`
	Results     int64    `json:"results"`
	Accepted    int64    `json:"accepted"`
	Skipped     int64    `json:"skipped"`
	Warnings    []string `json:"warnings"`
	Rejected    string   `json:"rejected"` // why nothing of the run was stored; empty otherwise
}

type skippedResult struct {
	Run    int64  `json:"run"`
	Index  int64  `json:"index"`
	RuleID string `json:"rule_id"`
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

func (r *uploadResult) rejectedRuns() (n int) {
	for _, run := range r.Runs {
		if run.Rejected != "" {
			n++
		}
	}
	return n
}

func (r *uploadResult) print(w io.Writer, file string) error {
	_, err := fmt.Fprintf(w, "%s -> %s %s (scan %d)\n  created %d, updated %d, unchanged %d, reopened %d, fixed %d, removed %d, skipped %d\n",
		printable(file), printable(r.Project), printable(r.Ref), r.ScanID,
		r.Created, r.Updated, r.Unchanged, r.Reopened, r.Fixed, r.Removed, r.Skipped)
	if err != nil {
		return err
	}
	if r.HeldCloses > 0 {
		_, _ = fmt.Fprintf(w, "  %d closes are held: see the warnings, or palisade closes list\n", r.HeldCloses)
	}
	for _, run := range r.Runs {
		run.print(w)
	}
	if r.Blocked {
		_, _ = fmt.Fprintf(w, "  blocked by %s\n", printable(r.BlockReason))
	}
	if r.URL != "" {
		_, _ = fmt.Fprintf(w, "  what it adds: %s\n", printable(r.URL))
	}
	return r.printSkipped(w)
}

func (run uploadRun) print(w io.Writer) {
	name := run.Tool
	if run.ToolVersion != "" {
		name += " " + run.ToolVersion
	}
	if run.Category != "" {
		name += ", category " + run.Category
	}
	if run.Rejected != "" {
		_, _ = fmt.Fprintf(w, "  run %d, %s: REJECTED: %s\n", run.Index, printable(name), printable(run.Rejected))
	} else {
		_, _ = fmt.Fprintf(w, "  run %d, %s (%s): %d results, %d accepted, %d skipped\n",
			run.Index, printable(name), printable(run.Product), run.Results, run.Accepted, run.Skipped)
	}
	for _, warning := range run.Warnings {
		_, _ = fmt.Fprintf(w, "    warning: %s\n", printable(warning))
	}
}

func (r *uploadResult) printSkipped(w io.Writer) error {
	if len(r.SkippedResults) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(w, "  skipped results:")
	table := printout.NewTable(w)
	shown := min(len(r.SkippedResults), shownSkips)
	for _, s := range r.SkippedResults[:shown] {
		_, _ = fmt.Fprintf(table, "    run %d result %d\t%s\t%s\t%s\n", s.Run, s.Index, orDash(s.RuleID), orDash(s.Path), printable(s.Reason))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	reasons := map[string]int{}
	for _, s := range r.SkippedResults[shown:] {
		reasons[s.Reason]++
	}
	for _, reason := range sorted(reasons) {
		_, _ = fmt.Fprintf(w, "    and %d more: %s\n", reasons[reason], printable(reason))
	}
	if len(r.SkippedResults) > shown {
		_, _ = fmt.Fprintln(w, "    (-o json lists each)")
	}
	if r.SkippedResultsOmitted > 0 {
		_, _ = fmt.Fprintf(w, "    and %d more that the server did not list\n", r.SkippedResultsOmitted)
	}
	return nil
}

func sorted(counts map[string]int) []string {
	keys := make([]string, 0, len(counts))
	for key := range counts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return printable(text)
}
