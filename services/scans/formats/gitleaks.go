package formats

import (
	"cmp"
	"fmt"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// gitleaksJSON is the report of `gitleaks --report-format json`: a list of secrets, since version 8 and in version 7.
var gitleaksJSON = Format{
	Name: "gitleaks-json", Title: "gitleaks JSON", Convert: convertGitleaks, Recognises: func(o *Outline) bool {
		return o.Has("[].RuleID") && (o.Has("[].Secret") || o.Has("[].Fingerprint")) || o.Has("[].offender") && o.Has("[].rule")
	},
}

// GitleaksLeak is a secret in a report. It has the members of version 8, and after these the ones of version 7. Author,
// date, message of the commit and Fingerprint, which has the line, are not read.
type GitleaksLeak struct {
	RuleID, Description, Match, Secret, File, SymlinkFile, Commit string
	Tags                                                          jsonstream.Texts
	StartLine, EndLine, StartColumn, EndColumn                    jsonstream.Integer

	OldRule   string             `json:"rule"`
	Offender  string             `json:"offender"`
	OldFile   string             `json:"file"`
	OldCommit string             `json:"commit"`
	OldLine   jsonstream.Integer `json:"lineNumber"`
}

func convertGitleaks(in *Input, w *Writer) error {
	w.Run(Tool{Name: "gitleaks", Product: ProductSecrets})
	return in.Walk(items(w, func(l *GitleaksLeak) error { return w.Result(l.Result()) }))
}

// Result is the secret as a result.
func (l *GitleaksLeak) Result() *Result {
	rule, commit := cmp.Or(l.RuleID, l.OldRule), cmp.Or(l.Commit, l.OldCommit)
	file := cmp.Or(l.SymlinkFile, l.File, l.OldFile)
	if rule == "" && file == "" {
		return &Result{}
	}
	message := fmt.Sprintf("%s has detected secret for file %s", rule, file)
	if commit != "" {
		message += " at commit " + commit
	}
	return &Result{
		Rule:    Rule{ID: rule, Name: l.Description, Message: l.Description, Tags: l.Tags},
		Message: message + ".", Path: file, HistoricalCommit: commit, Snippet: cmp.Or(l.Secret, l.Match, l.Offender),
		Line: int(cmp.Or(l.StartLine, l.OldLine)), EndLine: int(l.EndLine), Column: int(l.StartColumn), EndColumn: int(l.EndColumn),
	}
}
