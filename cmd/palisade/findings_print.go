package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/findings/printout"
)

// finding has the columns of the table and the CSV file, for all issue types.
type finding struct {
	ID            int64  `json:"id"`
	Severity      string `json:"severity"`
	Confidence    string `json:"confidence"`
	Status        string `json:"status"`
	State         string `json:"state"`
	TriageState   string `json:"triage_state"`
	TriageReason  string `json:"triage_reason"`
	RuleName      string `json:"rule_name"`
	RuleMessage   string `json:"rule_message"`
	Ref           string `json:"ref"`
	RelevantSince string `json:"relevant_since"`
	CreatedAt     string `json:"created_at"`
	URL           string `json:"line_of_code_url"`
	Repository    struct {
		Name string `json:"name"`
	} `json:"repository"`
	Location struct {
		FilePath string `json:"file_path"`
		Line     int64  `json:"line"`
		Logical  string `json:"logical_location"`
	} `json:"location"`
	Dependency struct {
		Package string `json:"package"`
		Version string `json:"version"`
	} `json:"found_dependency"`
}

// place returns the file, line and logical location, or the package of a supply-chain finding without any of them.
func (f finding) place() string {
	at := f.Location
	switch {
	case at.Logical != "" && (at.FilePath == "" || at.FilePath == at.Logical):
		return at.Logical
	case at.FilePath != "" && at.Line > 0:
		return inside(at.FilePath+":"+strconv.FormatInt(at.Line, 10), at.Logical)
	case at.FilePath != "":
		return inside(at.FilePath, at.Logical)
	case f.Dependency.Package != "":
		return f.Dependency.Package + "@" + f.Dependency.Version
	}
	return "-"
}

// inside adds the name of a logical location to a place.
func inside(place, logical string) string {
	if logical == "" {
		return place
	}
	return place + " (" + logical + ")"
}

// findingsPrinter writes findings as they arrive. raw is the finding as the server sent it.
type findingsPrinter interface {
	add(raw json.RawMessage, f finding) error
	end() error
}

type tablePrinter struct {
	table  *printout.Table
	colour bool
	rows   int
}

func newTablePrinter(w io.Writer, colour bool) *tablePrinter {
	return &tablePrinter{table: printout.NewTable(w), colour: colour}
}

// severityColours are escape sequences of equal length, because the table counts their bytes as visible.
var severityColours = map[string]string{"critical": "\x1b[35m", "high": "\x1b[31m", "medium": "\x1b[33m", "low": "\x1b[36m", "": "\x1b[39m"}

func (p *tablePrinter) paint(severity, text string) string {
	if !p.colour {
		return text
	}
	colour, known := severityColours[severity]
	if !known {
		colour = severityColours[""]
	}
	return colour + text + "\x1b[0m"
}

func (p *tablePrinter) add(_ json.RawMessage, f finding) error {
	if p.rows == 0 {
		_, _ = fmt.Fprintf(p.table, "%s\tSTATUS\tRULE\tLOCATION\tPROJECT\tREF\tID\tSINCE\n", p.paint("", "SEVERITY"))
	}
	p.rows++
	since, _, _ := strings.Cut(f.RelevantSince, "T")
	_, err := fmt.Fprintf(p.table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", p.paint(f.Severity, orDash(f.Severity)), orDash(f.Status),
		orDash(f.RuleName), printable(f.place()), orDash(f.Repository.Name), orDash(shortRef(f.Ref)), f.ID, orDash(since))
	return err
}

func (p *tablePrinter) end() error { return p.table.Flush() }

// shortRef removes the prefix of branches; other refs stay unchanged.
func shortRef(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// jsonPrinter writes {"findings":[…]}, one finding per line, exactly as the server sent it.
type jsonPrinter struct {
	w    io.Writer
	rows int
}

func (p *jsonPrinter) add(raw json.RawMessage, _ finding) error {
	separator := ",\n"
	if p.rows == 0 {
		separator = "{\"findings\":[\n"
	}
	p.rows++
	_, err := fmt.Fprintf(p.w, "%s%s", separator, raw)
	return err
}

func (p *jsonPrinter) end() error {
	text := "\n]}\n"
	if p.rows == 0 {
		text = "{\"findings\":[]}\n"
	}
	_, err := io.WriteString(p.w, text)
	return err
}

type csvPrinter struct {
	csv *printout.CSV
}

func newCSVPrinter(w io.Writer) *csvPrinter {
	p := &csvPrinter{csv: printout.NewCSV(w)}
	_ = p.csv.Row("id", "severity", "confidence", "status", "state", "triage_state", "triage_reason", "rule",
		"path", "line", "package", "version", "project", "ref", "relevant_since", "created_at", "url", "message") // end returns the first error
	return p
}

func (p *csvPrinter) add(_ json.RawMessage, f finding) error {
	line := ""
	if f.Location.Line > 0 {
		line = strconv.FormatInt(f.Location.Line, 10)
	}
	return p.csv.Row(strconv.FormatInt(f.ID, 10), f.Severity, f.Confidence, f.Status, f.State, f.TriageState, f.TriageReason,
		f.RuleName, f.Location.FilePath, line, f.Dependency.Package, f.Dependency.Version, f.Repository.Name, f.Ref,
		f.RelevantSince, f.CreatedAt, f.URL, f.RuleMessage)
}

func (p *csvPrinter) end() error { return p.csv.End() }
