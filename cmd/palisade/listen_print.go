package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/findings/printout"
)

// listenEvent is a line of `palisade listen`: a finding or scan of a message, or a rejected message.
type listenEvent struct {
	Time      string          `json:"time"`
	Kind      string          `json:"kind"` // finding, scan, other, empty; refused, failed
	ID        string          `json:"id"`   // id of the message, shared by all its findings
	Duplicate bool            `json:"duplicate"`
	Status    int             `json:"status"` // status of the response
	Reason    string          `json:"reason,omitempty"`
	Rule      string          `json:"rule,omitempty"`
	Path      string          `json:"path,omitempty"`
	Line      int64           `json:"line,omitempty"`
	Project   string          `json:"project,omitempty"`
	Ref       string          `json:"ref,omitempty"`
	Scan      int64           `json:"scan,omitempty"`
	Payload   json.RawMessage `json:"payload,omitempty"`
}

type eventPrinter interface{ print(listenEvent) }

type jsonEvents struct{ encoder *json.Encoder }

func (p jsonEvents) print(e listenEvent) { _ = p.encoder.Encode(e) }

type textEvents struct{ w io.Writer }

func (p textEvents) print(e listenEvent) {
	_, clock, _ := strings.Cut(e.Time, "T")
	line := fmt.Sprintf("%.8s  %-7s  %s", clock, e.Kind, orDash(e.ID))
	switch e.Kind {
	case "finding":
		line += fmt.Sprintf("  %s  %s:%d  %s %s", orDash(e.Rule), orDash(e.Path), e.Line, orDash(e.Project), orDash(shortRef(e.Ref)))
	case "scan":
		line += "  scan " + strconv.FormatInt(e.Scan, 10)
	case "other":
		line += "  " + printable(string(e.Payload[:min(len(e.Payload), 120)]))
	case "refused", "failed":
		line += fmt.Sprintf("  %d %s", e.Status, printable(e.Reason))
	}
	if e.Duplicate {
		line += "  (duplicate)"
	}
	_, _ = fmt.Fprintln(p.w, line)
}

// listenTally counts messages and events. Findings and scans of duplicates do not count.
type listenTally struct {
	requests, delivered, different, duplicates, failed, badSignature, malformed int

	findings, scans, others int
}

func (t *listenTally) count(kind string) {
	switch kind {
	case "finding":
		t.findings++
	case "scan":
		t.scans++
	case "other":
		t.others++
	}
}

// print writes the summary table, without unexpected rows that are 0.
func (t *listenTally) print(w io.Writer) error {
	table := printout.NewTable(w)
	for _, row := range []struct {
		name   string
		n      int
		always bool
	}{
		{"messages", t.requests, true},
		{"  accepted", t.delivered, true},
		{"    distinct ids", t.different, true},
		{"    duplicates", t.duplicates, true},
		{"  failed on purpose", t.failed, false},
		{"  refused: signature", t.badSignature, false},
		{"  refused: malformed", t.malformed, false},
		{"findings", t.findings, true},
		{"scans", t.scans, true},
		{"other events", t.others, false},
	} {
		if row.n > 0 || row.always {
			_, _ = fmt.Fprintf(table, "%s\t%d\n", row.name, row.n)
		}
	}
	return table.Flush()
}
