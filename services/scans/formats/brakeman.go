package formats

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// brakemanJSON is the report of `brakeman --format json`.
var brakemanJSON = Format{Name: "brakeman-json", Title: "Brakeman JSON", Convert: convertBrakeman, Recognises: func(o *Outline) bool {
	return o.Has("warnings[].warning_code") || o.Has("ignored_warnings[].warning_code") || o.Has("scan_info.brakeman_version")
}}

type brakemanWarning struct {
	Type        string                              `json:"warning_type"`
	Code        *jsonstream.Integer                 `json:"warning_code"`
	Fingerprint string                              `json:"fingerprint"`
	Check       string                              `json:"check_name"`
	Message     string                              `json:"message"`
	File        string                              `json:"file"`
	Line        jsonstream.Integer                  `json:"line"`
	Link        string                              `json:"link"`
	Source      string                              `json:"code"`
	Confidence  string                              `json:"confidence"`
	CWE         jsonstream.List[jsonstream.Integer] `json:"cwe_id"`
	Note        string                              `json:"note"`
	RenderPath  jsonstream.List[jsontext.Value]     `json:"render_path"`
	Location    brakemanLocation                    `json:"location"`
}

type brakemanLocation struct {
	Class    string `json:"class"`
	Method   string `json:"method"`
	Template string `json:"template"`
	Model    string `json:"model"`
}

type brakemanStep struct {
	Class  string             `json:"class"`
	Method string             `json:"method"`
	File   string             `json:"file"`
	Line   jsonstream.Integer `json:"line"`
}

type brakemanError struct {
	Error    string `json:"error"`
	Location string `json:"location"`
}

func convertBrakeman(in *Input, w *Writer) error {
	var info struct {
		Version   string `json:"brakeman_version"`
		Directory string `json:"app_path"`
	}
	err := in.Walk(func(s *jsonstream.Stream) error { return object(s, members{"scan_info": into(&info)}) })
	if err != nil {
		return err
	}
	w.Run(Tool{Name: "Brakeman", Version: info.Version, Directory: info.Directory})
	return in.Walk(func(s *jsonstream.Stream) error {
		return report(s, w, members{
			"warnings": items(w, func(b *brakemanWarning) error { return w.Result(b.result()) }),
			"ignored_warnings": notNull(w, items(w, func(b *brakemanWarning) error {
				r := b.result()
				r.Suppressed = &Suppression{Reason: b.Note}
				return w.Result(r)
			})),
			"errors": notNull(w, items(w, func(e *brakemanError) error {
				file, _ := strings.CutPrefix(e.Location, "Could not parse ")
				if file == e.Location {
					file = "" // a place in the code of Brakeman
				}
				w.Failed(file, e.Error)
				return nil
			})),
		}, "warnings")
	})
}

// brakemanSeverity is the level that Brakeman's SARIF report derives from its confidence. Brakeman has no severities.
var brakemanSeverity = map[string]string{"High": "error", "Medium": "warning", "Weak": "note"}

func (b *brakemanWarning) result() *Result {
	r := &Result{
		Rule:     Rule{Name: strings.Trim(b.Check+"/"+b.Type, "/"), Message: b.Type, HelpURI: b.Link, Tags: []string{b.Check}},
		Severity: cmp.Or(brakemanSeverity[b.Confidence], "warning"), Confidence: strings.ToLower(b.Confidence),
		Path: b.File, Line: int(b.Line), Logical: b.Location.name(), Snippet: b.Source,
	}
	if r.Confidence == "weak" {
		r.Confidence = "low"
	}
	if b.Code != nil {
		r.Rule.ID = fmt.Sprintf("BRAKE%04d", *b.Code) // as in Brakeman's SARIF report
	}
	if r.Message = b.Message; r.Message != "" && !strings.HasSuffix(r.Message, ".") {
		r.Message += "."
	}
	if b.Fingerprint != "" {
		r.Fingerprints = map[string]string{"brakeman/v1": b.Fingerprint}
	}
	for _, id := range b.CWE {
		r.Rule.CWE = append(r.Rule.CWE, "CWE-"+strconv.Itoa(int(id)))
	}
	for _, raw := range b.RenderPath {
		var step brakemanStep // a text in old versions
		if jsonstream.Unmarshal(raw, &step, nil) == nil && step.File != "" {
			at := brakemanLocation{Class: step.Class, Method: step.Method}
			r.Related = append(r.Related, Place{Path: step.File, Line: int(step.Line), Message: at.name()})
		}
	}
	return r
}

func (l *brakemanLocation) name() string {
	if l.Class != "" && l.Method != "" {
		return l.Class + "#" + l.Method
	}
	return cmp.Or(l.Class, l.Template, l.Model)
}
