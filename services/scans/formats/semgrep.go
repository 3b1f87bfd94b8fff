package formats

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/scanner"
)

// semgrepJSON is the report of `semgrep --json`, and of Opengrep.
var semgrepJSON = Format{Name: "semgrep-json", Title: "Semgrep JSON", Convert: convertSemgrep, Recognises: func(o *Outline) bool {
	return o.Has("results[].check_id") && o.Has("results[].extra") ||
		o.Has("results") && o.Has("errors") && o.Has("paths") && o.Has("version") || o.Has("results") && o.Has("paths.scanned")
}}

type semgrepPosition struct {
	Line   jsonstream.Integer `json:"line"`
	Column jsonstream.Integer `json:"col"`
}

type semgrepPlace struct {
	Path  string          `json:"path"`
	Start semgrepPosition `json:"start"`
	End   semgrepPosition `json:"end"`
}

type semgrepResult struct {
	Check string `json:"check_id"`
	semgrepPlace
	Extra struct {
		Message     string `json:"message"`
		Severity    string `json:"severity"`
		Lines       string `json:"lines"`
		Fingerprint string `json:"fingerprint"`
		Ignored     bool   `json:"is_ignored"`
		Metadata    struct {
			CWE        jsonstream.Texts `json:"cwe"`
			OWASP      jsonstream.Texts `json:"owasp"`
			Confidence string           `json:"confidence"`
			Category   string           `json:"category"`
			Technology jsonstream.Texts `json:"technology"`
			Subclass   jsonstream.Texts `json:"subcategory"`
			Source     string           `json:"source"`
			References jsonstream.Texts `json:"references"`
			ShortLink  string           `json:"shortlink"`
			semgrepAdvisory
		} `json:"metadata"`
		Trace semgrepTrace `json:"dataflow_trace"`
		SCA   *semgrepSCA  `json:"sca_info"`
	} `json:"extra"`
}

// semgrepAdvisory is the part of the metadata of a supply-chain rule that other rules do not have.
type semgrepAdvisory struct {
	Kind        string                                            `json:"sca-kind"`
	ID          string                                            `json:"sca-vuln-database-identifier"`
	Fixes       jsonstream.List[jsonstream.Map[jsonstream.Texts]] `json:"sca-fix-versions"`
	ReachableIf string                                            `json:"sca-reachable-if"`
}

// semgrepSCA is the dependency of a result. Kind is a word, or a list with a word and its details.
type semgrepSCA struct {
	Reachable bool           `json:"reachable"`
	Kind      jsontext.Value `json:"kind"`
	Match     struct {
		Dependency struct {
			Package      string             `json:"package"`
			Version      string             `json:"version"`
			Ecosystem    string             `json:"ecosystem"`
			Transitivity string             `json:"transitivity"`
			Line         jsonstream.Integer `json:"line_number"`
			Lockfile     string             `json:"lockfile_path"`
			Manifest     string             `json:"manifest_path"`
		} `json:"found_dependency"`
		Lockfile string `json:"lockfile"`
	} `json:"dependency_match"`
}

// semgrepError has more members, such as code and spans. Path or rule may be missing.
type semgrepError struct {
	Level string           `json:"level"`
	Path  string           `json:"path"`
	Rule  string           `json:"rule_id"`
	Type  jsonstream.Texts `json:"type"`
}

func convertSemgrep(in *Input, w *Writer) error {
	tool := Tool{Name: "Semgrep OSS"}
	err := in.Walk(func(s *jsonstream.Stream) error { return object(s, members{"version": into(&tool.Version)}) })
	if err != nil {
		return err
	}
	w.Run(tool)
	err = in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"paths": func(s *jsonstream.Stream) error {
			return object(s, members{"scanned": notNull(w, items(w, func(file *string) error { w.Scanned(*file); return w.err }))})
		}})
	})
	if err != nil {
		return err
	}
	return in.Walk(func(s *jsonstream.Stream) error {
		return report(s, w, members{
			"results": items(w, func(r *semgrepResult) error { return w.Result(r.result()) }),
			"errors":  notNull(w, items(w, func(e *semgrepError) error { e.report(w); return nil })),
			"skipped_rules": items(w, func(r *semgrepError) error {
				w.FailedRule(r.Rule, "Semgrep skipped it")
				return nil
			}),
		}, "results")
	})
}

// report says which results may be missing. An error that Semgrep only warns about, such as a file that it could parse
// only partly, may hide results, too.
func (e *semgrepError) report(w *Writer) {
	reason := "Semgrep reported an error"
	if len(e.Type) > 0 {
		reason += ": " + e.Type[0]
	}
	switch {
	case e.Path != "":
		w.Failed(e.Path, reason)
	case e.Rule != "":
		w.FailedRule(e.Rule, reason)
	case strings.EqualFold(e.Level, "error"):
		w.Failed("", reason)
	default:
		w.Warn("%s", reason)
	}
}

// known drops the text that Semgrep writes without a login.
func known(text string) string {
	if text == "requires login" {
		return ""
	}
	return text
}

func (r *semgrepResult) result() *Result {
	x, m := &r.Extra, &r.Extra.Metadata
	out := &Result{
		Rule: Rule{
			ID: r.Check, Message: x.Message, HelpURI: cmp.Or(m.Source, m.ShortLink), CWE: m.CWE, OWASP: m.OWASP, References: m.References,
			Tags: append(append(m.Technology, m.Subclass...), optionalTags(m.Category)...),
		},
		Message: x.Message, Severity: x.Severity, Confidence: m.Confidence, Snippet: known(x.Lines),
		Path: r.Path, Line: int(r.Start.Line), Column: int(r.Start.Column), EndLine: int(r.End.Line), EndColumn: int(r.End.Column),
		Flow: x.Trace.flow(),
	}
	if id := known(x.Fingerprint); id != "" {
		out.Fingerprints = map[string]string{"matchBasedId/v1": id}
	}
	if x.Ignored {
		out.Suppressed = &Suppression{Reason: "ignored by a comment in the code"}
	}
	if x.SCA != nil {
		out.Product, out.Package = ProductSCA, x.SCA.dependency(&m.semgrepAdvisory)
	}
	return out
}

// dependency means what it means in the results of semgrep ci.
func (s *semgrepSCA) dependency(about *semgrepAdvisory) *Package {
	found := &s.Match.Dependency
	match := &storev1.ScannerDependencyMatch{Reachable: s.Reachable, Kind: s.kind()}
	p := &Package{
		Name: found.Package, Version: found.Version, Ecosystem: found.Ecosystem, Transitivity: found.Transitivity, Advisory: about.ID,
		Reachability: scanner.Exposure(match, scanner.Metadata{SCAKind: about.Kind, ReachableIf: about.ReachableIf}),
		ReachableIf:  about.ReachableIf, Malicious: about.Kind == "malicious",
		Lockfile: cmp.Or(s.Match.Lockfile, found.Lockfile), LockfileLine: int(found.Line), Manifest: found.Manifest,
	}
	for _, fixes := range about.Fixes {
		for name, versions := range fixes {
			if strings.EqualFold(name, found.Package) {
				p.Fixed = append(p.Fixed, versions...)
			}
		}
	}
	return p
}

func (s *semgrepSCA) kind() string {
	var parts jsonstream.List[jsontext.Value]
	word := s.Kind
	if jsonstream.Unmarshal(word, &parts, nil) == nil && len(parts) > 0 {
		word = parts[0]
	}
	var kind string
	_ = jsonstream.Unmarshal(word, &kind, nil) // without a kind, reachable decides
	return kind
}

func optionalTags(tag string) []string {
	if tag == "" {
		return nil
	}
	return []string{tag}
}

// semgrepTrace is the way of tainted data. A source or sink is ["CliLoc", [place, code]], or a call with more of them;
// before version 1.0 it was the list [place, code].
type semgrepTrace struct {
	Source jsontext.Value `json:"taint_source"`
	Vars   jsonstream.List[struct {
		Content  string       `json:"content"`
		Location semgrepPlace `json:"location"`
	}] `json:"intermediate_vars"`
	Sink jsontext.Value `json:"taint_sink"`
}

func (t *semgrepTrace) flow() (places []Place) {
	places = append(places, t.end(t.Source)...)
	for _, v := range t.Vars {
		places = append(places, v.Location.place(v.Content))
	}
	return append(places, t.end(t.Sink)...)
}

func (p *semgrepPlace) place(code string) Place {
	return Place{Path: p.Path, Line: int(p.Start.Line), Column: int(p.Start.Column), Snippet: code}
}

// end reads a source or sink leniently: the first place in it.
func (*semgrepTrace) end(v jsontext.Value) []Place {
	for range 4 {
		var parts jsonstream.List[jsontext.Value]
		if jsonstream.Unmarshal(v, &parts, nil) != nil || len(parts) < 2 {
			return nil
		}
		if parts[0].Kind() == '{' {
			var at semgrepPlace
			var code string
			if jsonstream.Unmarshal(parts[0], &at, nil) != nil || at.Path == "" {
				return nil
			}
			_ = jsonstream.Unmarshal(parts[1], &code, nil) // the place is enough
			return []Place{at.place(code)}
		}
		if parts[0].Kind() == '"' {
			v = parts[1]
		} else {
			v = parts[0]
		}
	}
	return nil
}
