package formats

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// cargoAudit is the report of `cargo audit --json`.
var cargoAudit = Format{Name: "cargo-audit-json", Title: "cargo audit JSON", Convert: convertCargo, Recognises: func(o *Outline) bool {
	return o.Has("vulnerabilities.list") && (o.Has("database") || o.Has("lockfile") || o.Has("warnings"))
}}

// cargoProblem is a vulnerability, or a warning, which has a kind and may have no advisory.
type cargoProblem struct {
	Kind     string `json:"kind"`
	Advisory struct {
		ID          string           `json:"id"`
		Title       string           `json:"title"`
		Description string           `json:"description"`
		Aliases     jsonstream.Texts `json:"aliases"`
		Categories  jsonstream.Texts `json:"categories"`
		CVSS        string           `json:"cvss"`
		URL         string           `json:"url"`
		References  jsonstream.Texts `json:"references"`
	} `json:"advisory"`
	Versions struct {
		Patched jsonstream.Texts `json:"patched"`
	} `json:"versions"`
	Package struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"package"`
}

func convertCargo(in *Input, w *Writer) error {
	w.Run(Tool{Name: "cargo-audit", Product: ProductSCA})
	problem := items(w, func(p *cargoProblem) error { return cargoResult(w, p) })
	return in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{
			"vulnerabilities": func(s *jsonstream.Stream) error { return fields(s, w, members{"list": notNull(w, problem)}) },
			"warnings": func(s *jsonstream.Stream) error {
				if s.Kind() == '[' {
					return problem(s) // before version 0.13
				}
				return each(w, func(s *jsonstream.Stream, _ string) error { return problem(s) })(s)
			},
		})
	})
}

func cargoResult(w *Writer, p *cargoProblem) error {
	a := &p.Advisory
	if p.Package.Name == "" {
		w.Unreadable(w.at, "names no package")
		return nil
	}
	var fixed []string
	for _, versions := range p.Versions.Patched {
		fixed = append(fixed, from(versions)...)
	}
	out := &Result{
		Rule: Rule{
			ID: cmp.Or(a.ID, p.Kind), Message: a.Title, Description: a.Description, HelpURI: a.URL, Tags: a.Categories, References: a.References,
		},
		Score: a.CVSS, Severity: "high", Path: "Cargo.lock", Logical: p.Package.Name,
		Package: &Package{
			Name: p.Package.Name, Version: p.Package.Version, Fixed: fixed, Ecosystem: "cargo", Advisory: cveOf(a.ID, a.Aliases),
		},
	}
	switch {
	case p.Kind == "":
		out.Message = fmt.Sprintf("%s %s is vulnerable to %s (%s)", p.Package.Name, p.Package.Version, a.ID, a.Title)
	default:
		out.Severity = "medium"
		out.Message = fmt.Sprintf("%s %s has a %s warning", p.Package.Name, p.Package.Version, p.Kind) + optionalText(": ", a.Title, "")
	}
	return w.Result(out)
}

// cveOf is the first CVE of the aliases of an advisory, or the advisory itself.
func cveOf(id string, aliases []string) string {
	for _, alias := range append([]string{id}, aliases...) {
		if strings.HasPrefix(alias, "CVE-") {
			return alias
		}
	}
	return id
}
