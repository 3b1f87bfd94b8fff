package formats

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// checkovJSON is the report of `checkov --output json`: an object for each kind of files, or a list of them.
var checkovJSON = Format{Name: "checkov-json", Title: "Checkov JSON", Convert: convertCheckov, Recognises: func(o *Outline) bool {
	return o.Has("check_type") && o.Has("results.failed_checks") || o.Has("[].check_type") && o.Has("[].results.failed_checks") ||
		o.Has("checkov_version") || o.Has("summary.checkov_version") || o.Has("[].summary.checkov_version")
}}

type checkovCheck struct {
	ID          string                                           `json:"check_id"`
	Name        string                                           `json:"check_name"`
	Short       string                                           `json:"short_description"`
	Description string                                           `json:"description"`
	Severity    string                                           `json:"severity"`
	Guideline   string                                           `json:"guideline"`
	FilePath    string                                           `json:"file_path"`
	RepoPath    string                                           `json:"repo_file_path"`
	Lines       jsonstream.List[jsonstream.Integer]              `json:"file_line_range"`
	Resource    string                                           `json:"resource"`
	Code        jsonstream.List[jsonstream.List[jsontext.Value]] `json:"code_block"` // pairs of a number and a line
	Result      struct {
		Comment string `json:"suppress_comment"`
	} `json:"check_result"`
	Vulnerability *checkovVulnerability `json:"vulnerability_details"`
}

type checkovVulnerability struct {
	ID      string           `json:"id"`
	Link    string           `json:"link"`
	CVSS    jsonstream.Texts `json:"cvss"`
	Package string           `json:"package_name"`
	Version string           `json:"package_version"`
	Fix     string           `json:"fix_version"`
	Lowest  string           `json:"lowest_fixed_version"`
	License string           `json:"license"`
	Fixed   jsonstream.Texts `json:"fixed_versions"`
}

func convertCheckov(in *Input, w *Writer) error {
	var version string
	summary := func(s *jsonstream.Stream) error { return object(s, members{"checkov_version": into(&version)}) }
	err := in.Walk(checkovReports(func(s *jsonstream.Stream) error {
		return object(s, members{"summary": summary, "checkov_version": into(&version)})
	}))
	if err != nil {
		return err
	}
	w.Run(Tool{Name: "Checkov", Version: version})
	listed := 0 // files that could not be parsed, of one report
	results := members{
		"failed_checks": items(w, func(c *checkovCheck) error { return w.Result(c.result()) }),
		"skipped_checks": notNull(w, items(w, func(c *checkovCheck) error {
			r := c.result()
			r.Suppressed = &Suppression{Reason: c.Result.Comment}
			return w.Result(r)
		})),
		"parsing_errors": notNull(w, items(w, func(path *string) error {
			listed++
			w.Failed(checkovPath(*path), "it could not be parsed")
			return nil
		})),
	}
	return in.Walk(checkovReports(func(s *jsonstream.Stream) error {
		found, errors := false, jsonstream.Integer(0)
		listed = 0
		err := object(s, members{"results": func(s *jsonstream.Stream) error {
			found = s.Kind() == '{'
			return report(s, w, results, "failed_checks")
		}, "passed": func(s *jsonstream.Stream) error { // a summary of nothing that was scanned
			found = true
			return s.Skip()
		}, "parsing_errors": into(&errors), "summary": func(s *jsonstream.Stream) error {
			return object(s, members{"parsing_errors": into(&errors)})
		}})
		switch {
		case err != nil:
		case !found:
			w.Fail("a report in it has no results")
		case int(errors) > listed:
			w.Fail("Checkov could not parse some files, and does not name them")
		}
		return err
	}))
}

// checkovReports reads one report or a list of reports.
func checkovReports(report func(*jsonstream.Stream) error) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		if s.Kind() == '[' {
			return s.Array(func(int) error { return report(s) })
		}
		return report(s)
	}
}

// checkovPath is a path of a report. Its leading slash is the scanned directory.
func checkovPath(path string) string { return strings.TrimLeft(path, "/") }

func (c *checkovCheck) result() *Result {
	r := &Result{
		Rule:    Rule{ID: c.ID, Name: c.Name, Message: cmp.Or(c.Short, c.Name), Description: c.Description, HelpURI: c.Guideline},
		Message: cmp.Or(c.Short, c.Name), Severity: c.Severity, Path: checkovPath(cmp.Or(c.RepoPath, c.FilePath)), Logical: c.Resource,
		LogicalKind: kindResource,
	}
	if len(c.Lines) == 2 && c.Lines[0] > 0 {
		r.Line, r.EndLine = int(c.Lines[0]), max(int(c.Lines[1]), int(c.Lines[0]))
	}
	var code strings.Builder
	for _, pair := range c.Code {
		if len(pair) == 2 && pair[1].Kind() == '"' {
			line, _ := jsontext.AppendUnquote(nil, pair[1])
			code.Write(line)
		}
	}
	r.Snippet = code.String()
	if v := c.Vulnerability; v != nil {
		r.Product, r.Score = ProductSCA, strings.Join(v.CVSS, "")
		r.Rule.ID, r.Rule.HelpURI = cmp.Or(v.ID, c.ID), cmp.Or(c.Guideline, v.Link)
		if v.License != "" && v.ID == "" {
			r.Rule.ID = "license/" + v.License
		}
		r.Package = &Package{Name: v.Package, Version: v.Version, Fixed: v.fixed()}
		r.Message = strings.TrimSpace(v.Package+" "+v.Version) + ": " + cmp.Or(c.Short, c.Name, v.ID)
	}
	return r
}

func (v *checkovVulnerability) fixed() []string {
	if v.Lowest != "" {
		return []string{v.Lowest}
	}
	if v.Fix != "" {
		return splitVersions(v.Fix)
	}
	return v.Fixed
}
