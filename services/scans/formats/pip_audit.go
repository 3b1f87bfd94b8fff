package formats

import (
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// pipAudit is the report of `pip-audit --format json`; before version 2.1 it was the bare list of dependencies.
var pipAudit = Format{Name: "pip-audit-json", Title: "pip-audit JSON", Convert: convertPip, Recognises: func(o *Outline) bool {
	return o.Has("dependencies[].vulns") || o.Has("dependencies[].skip_reason") || o.Has("dependencies") && o.Has("fixes") ||
		o.Has("[].vulns") && o.Has("[].name")
}}

type pipDependency struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	SkipReason string `json:"skip_reason"`
	// Vulns is nil if it is missing or null.
	Vulns *jsonstream.List[struct {
		ID          string           `json:"id"`
		Fixed       jsonstream.Texts `json:"fix_versions"`
		Aliases     jsonstream.Texts `json:"aliases"`
		Description string           `json:"description"`
	}] `json:"vulns"`
}

func convertPip(in *Input, w *Writer) error {
	w.Run(Tool{Name: "pip-audit", Product: ProductSCA})
	dependencies := items(w, func(d *pipDependency) error {
		switch {
		case d.SkipReason != "":
			w.FailedPackage(d.Name, d.SkipReason)
			return nil
		case d.Name == "" || d.Vulns == nil:
			w.Unreadable(w.at, "has no name, or neither vulns nor skip_reason")
			return nil
		}
		for _, v := range *d.Vulns {
			title, _, _ := strings.Cut(v.Description, "\n")
			err := w.Result(&Result{
				Rule:    Rule{ID: v.ID, Message: jsonstream.Cut(title, 200), Description: v.Description},
				Message: strings.TrimSpace(d.Name+" "+d.Version) + ": " + jsonstream.Cut(title, 200), Logical: d.Name,
				Package: &Package{Name: d.Name, Version: d.Version, Fixed: v.Fixed, Ecosystem: "pypi", Advisory: cveOf(v.ID, v.Aliases)},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return in.Walk(func(s *jsonstream.Stream) error {
		if s.Kind() == '[' {
			return dependencies(s)
		}
		return report(s, w, members{"dependencies": dependencies}, "dependencies")
	})
}
