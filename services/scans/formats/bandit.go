package formats

import (
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// banditJSON is the report of `bandit --format json`.
var banditJSON = Format{Name: "bandit-json", Title: "Bandit JSON", Convert: convertBandit, Recognises: func(o *Outline) bool {
	return o.Has("results[].test_id") && o.Has("results[].issue_text") || o.Has("results") && o.Has("metrics._totals")
}}

type banditIssue struct {
	Code         string                              `json:"code"`
	Filename     string                              `json:"filename"`
	Confidence   string                              `json:"issue_confidence"`
	Severity     string                              `json:"issue_severity"`
	Text         string                              `json:"issue_text"`
	Line         jsonstream.Integer                  `json:"line_number"`
	ColOffset    *jsonstream.Integer                 `json:"col_offset"`
	EndColOffset jsonstream.Integer                  `json:"end_col_offset"`
	Lines        jsonstream.List[jsonstream.Integer] `json:"line_range"`
	MoreInfo     string                              `json:"more_info"`
	TestID       string                              `json:"test_id"`
	TestName     string                              `json:"test_name"`
	CWE          struct {
		ID jsonstream.Integer `json:"id"`
	} `json:"issue_cwe"`
}

type banditError struct {
	Filename string `json:"filename"`
	Reason   string `json:"reason"`
}

func convertBandit(in *Input, w *Writer) error {
	w.Run(Tool{Name: "Bandit"})
	// The measured files are the scanned ones. They are named after the errors but before the results.
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{
			"errors": notNull(w, items(w, func(e *banditError) error { w.Failed(e.Filename, e.Reason); return nil })),
			"metrics": func(s *jsonstream.Stream) error {
				_, err := s.ObjectOf(func(name string) error {
					if name != "_totals" {
						w.Scanned(name)
					}
					return s.Skip()
				})
				return err
			},
		})
	})
	if err != nil {
		return err
	}
	return in.Walk(func(s *jsonstream.Stream) error {
		return report(s, w, members{"results": items(w, func(i *banditIssue) error { return w.Result(i.result()) })}, "results")
	})
}

func (i *banditIssue) result() *Result {
	r := &Result{
		Rule:    Rule{ID: i.TestID, Name: i.TestName, HelpURI: i.MoreInfo, Tags: []string{"security"}},
		Message: i.Text, Severity: i.Severity, Confidence: strings.ToLower(i.Confidence), Path: i.Filename, Line: int(i.Line), EndLine: int(i.Line),
	}
	if i.CWE.ID > 0 {
		r.Rule.CWE = []string{"CWE-" + strconv.Itoa(int(i.CWE.ID))}
	}
	if n := len(i.Lines); n > 0 {
		r.EndLine = max(int(i.Lines[n-1]), r.Line)
	}
	if i.ColOffset != nil && *i.ColOffset >= 0 { // counted from 0
		r.Column = int(*i.ColOffset) + 1
		if i.EndColOffset > 0 {
			r.EndColumn = int(i.EndColOffset) + 1
		}
	}
	r.Snippet = numbered(i.Code, r.Line, r.EndLine)
	return r
}

// numbered returns the lines first to last of a text whose lines begin with their number.
func numbered(code string, first, last int) string {
	var lines []string
	for line := range strings.Lines(code) {
		digits, text, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if n, err := strconv.Atoi(digits); err == nil && n >= first && n <= last {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}
