package formats

import (
	"fmt"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// eslintJSON is the report of `eslint --format json` or `--format json-with-metadata`.
var eslintJSON = Format{Name: "eslint-json", Title: "ESLint JSON", Convert: convertESLint, Recognises: func(o *Outline) bool {
	return o.Has("[].filePath") && o.Has("[].messages") || o.Has("results[].filePath") && o.Has("results[].messages") ||
		o.Has("metadata.rulesMeta") && o.Has("results")
}}

// maxLateNames bounds the files whose name follows their messages. ESLint writes names first.
const maxLateNames = 10_000

type eslintMessage struct {
	RuleID                           string             `json:"ruleId"`
	Severity                         jsonstream.Integer `json:"severity"`
	Fatal                            bool               `json:"fatal"`
	Message                          string             `json:"message"`
	Line, Column, EndLine, EndColumn jsonstream.Integer `json:",case:ignore"`
	Suppressions                     jsonstream.List[struct {
		Justification string `json:"justification"`
	}] `json:"suppressions"`
}

type eslintRule struct {
	Docs struct {
		Description string `json:"description"`
		URL         string `json:"url"`
		Category    string `json:"category"`
	} `json:"docs"`
}

type eslintReport struct {
	w         *Writer
	directory string
	rules     map[string]*eslintRule
	late      map[int]string  // the names of files that follow their messages
	missing   map[string]bool // rules that could not run
	own       int             // messages of ESLint about itself
}

func convertESLint(in *Input, w *Writer) error {
	w.Run(Tool{Name: "ESLint"})
	r := &eslintReport{w: w, rules: map[string]*eslintRule{}, late: map[int]string{}, missing: map[string]bool{}}
	if err := in.Walk(r.head); err != nil {
		return err
	}
	w.tool.Directory = r.directory
	err := in.Walk(func(s *jsonstream.Stream) error {
		files := list(w, r.file)
		if s.Kind() == '[' {
			return files(s)
		}
		return report(s, w, members{"results": files}, "results")
	})
	if r.own > 0 {
		w.Warn("messages of ESLint about itself, such as unused disable comments, are not findings: %d", r.own)
	}
	return err
}

// head reads the names of the files, and what may follow the messages that it describes.
func (r *eslintReport) head(s *jsonstream.Stream) error {
	files := func(s *jsonstream.Stream) error {
		_, err := s.ArrayOf(func(i int) error {
			var path string
			after := false
			return object(s, members{
				"messages": func(s *jsonstream.Stream) error { after = true; return s.Skip() },
				"filePath": func(s *jsonstream.Stream) error {
					err := into(&path)(s)
					r.w.Scanned(path)
					if after && len(r.late) < maxLateNames {
						r.late[i] = path
					}
					return err
				},
			})
		})
		return err
	}
	if s.Kind() == '[' {
		return files(s)
	}
	return object(s, members{"results": files, "metadata": func(s *jsonstream.Stream) error {
		return object(s, members{"cwd": into(&r.directory), "rulesMeta": func(s *jsonstream.Stream) error {
			_, err := s.ObjectOf(func(id string) error {
				rule := &eslintRule{}
				if len(r.rules) < maxRules {
					r.rules[id] = rule
				}
				return into(rule)(s)
			})
			return err
		}})
	}})
}

func (r *eslintReport) file(s *jsonstream.Stream, i int) error {
	path := r.late[i]
	messages := notNull(r.w, items(r.w, func(m *eslintMessage) error { return r.message(path, m, false) }))
	suppressed := notNull(r.w, items(r.w, func(m *eslintMessage) error { return r.message(path, m, true) }))
	return object(s, members{"filePath": into(&path), "messages": messages, "suppressedMessages": suppressed})
}

func (r *eslintReport) message(path string, m *eslintMessage, suppressed bool) error {
	switch {
	case m.Fatal || m.RuleID == "" && strings.HasPrefix(m.Message, "Parsing error"):
		r.w.Failed(path, fmt.Sprintf("line %d: %s", m.Line, m.Message))
		return nil
	case m.RuleID == "" && strings.HasPrefix(m.Message, "File ignored"):
		r.w.Failed(path, m.Message)
		return nil
	case m.RuleID == "":
		r.own++
		return nil
	case m.Message == "Definition for rule '"+m.RuleID+"' not found.": // its plugin is not loaded; said for each file
		if !r.missing[m.RuleID] {
			r.missing[m.RuleID] = true
			r.w.FailedRule(m.RuleID, "ESLint has no definition of it: load its plugin")
		}
		return nil
	}
	result := &Result{
		Rule: Rule{ID: m.RuleID}, Message: m.Message, Severity: "warning", Path: path,
		Line: int(m.Line), Column: int(m.Column), EndLine: int(m.EndLine), EndColumn: int(m.EndColumn),
	}
	if m.Severity == 2 {
		result.Severity = "error"
	}
	if rule := r.rules[m.RuleID]; rule != nil {
		result.Rule.Message, result.Rule.HelpURI = rule.Docs.Description, rule.Docs.URL
		if rule.Docs.Category != "" {
			result.Rule.Tags = []string{rule.Docs.Category}
		}
	}
	if suppressed {
		var reasons []string
		for _, s := range m.Suppressions {
			reasons = append(reasons, s.Justification)
		}
		result.Suppressed = &Suppression{Reason: strings.TrimSpace(strings.Join(reasons, " "))}
	}
	return r.w.Result(result)
}
