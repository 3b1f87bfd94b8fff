package formats

import (
	"cmp"
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// npmAudit is the report of `npm audit --json` since npm 7. An error instead of the report is recognised, too.
var npmAudit = Format{Name: "npm-audit-json", Title: "npm audit JSON", Convert: convertNPM, Recognises: func(o *Outline) bool {
	return o.Has("auditReportVersion") || o.Has("error.code") && o.Has("error.summary")
}}

// pnpmAudit is the report of `pnpm audit --json`, which is the one of npm 6.
var pnpmAudit = Format{Name: "pnpm-audit-json", Title: "pnpm audit JSON", Convert: convertPNPM, Recognises: func(o *Outline) bool {
	return o.Has("advisories.*.module_name") || o.Has("advisories") && o.Has("metadata.vulnerabilities")
}}

// npmPackage is a package with vulnerabilities of its own, or of a package that it depends on.
type npmPackage struct {
	// Via has an advisory, or the name of a package, which has the advisory.
	Via jsonstream.List[jsontext.Value] `json:"via"`
	// Fix is true or false, or the package to update, which is often another one.
	Fix jsontext.Value `json:"fixAvailable"`
}

type npmAdvisory struct {
	Source   jsonstream.Texts `json:"source"`
	Title    string           `json:"title"`
	URL      string           `json:"url"`
	Severity string           `json:"severity"`
	CWE      jsonstream.Texts `json:"cwe"`
	CVSS     npmCVSS          `json:"cvss"`
	Range    string           `json:"range"`
}

type npmCVSS struct {
	Score float64 `json:"score"`
}

// text is empty for 0, which means unknown.
func (c npmCVSS) text() string {
	if c.Score <= 0 {
		return ""
	}
	return strconv.FormatFloat(c.Score, 'f', 1, 64)
}

func convertNPM(in *Input, w *Writer) error {
	w.Run(Tool{Name: "npm audit", Product: ProductSCA})
	found, described := false, map[string]bool{}
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"vulnerabilities": func(s *jsonstream.Stream) error {
			_, err := s.ObjectOf(func(name string) error {
				described[name] = true
				return errors.Join(in.keep(len(name)), s.Skip())
			})
			return err
		}})
	})
	if err != nil {
		return err
	}
	err = in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{
			"error": func(s *jsonstream.Stream) error {
				var e struct {
					Code    string `json:"code"`
					Summary string `json:"summary"`
				}
				err := into(&e)(s)
				w.Fail(strings.TrimSpace("npm audit failed: " + e.Code + " " + e.Summary))
				return err
			},
			"vulnerabilities": func(s *jsonstream.Stream) error {
				found = true
				return each(w, func(s *jsonstream.Stream, name string) error {
					return item(s, w, func(p *npmPackage) error { return npmPackageResults(w, name, p, described) })
				})(s)
			},
		})
	})
	if !found && err == nil {
		w.Fail("the report has no list of vulnerabilities")
	}
	return err
}

// npmPackageResults writes the advisories of a package. described are the packages of the report.
func npmPackageResults(w *Writer, name string, p *npmPackage, described map[string]bool) error {
	if len(p.Via) == 0 {
		w.Unreadable(w.at, "has no advisory (via)")
	}
	var update struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if p.Fix.Kind() == '{' {
		_ = jsonstream.Unmarshal(p.Fix, &update, nil) // the report can do without it
	}
	for _, via := range p.Via {
		if via.Kind() == '"' { // the other package has the advisory
			var other string
			if jsonstream.Unmarshal(via, &other, nil) != nil || !described[other] {
				w.Unreadable(w.at, "has the advisory of a package (via) that the report does not describe")
			}
			continue
		}
		err := decoded(w, via, func(a *npmAdvisory) error {
			fixed := below(a.Range)
			if len(fixed) == 0 && update.Name == name {
				fixed = []string{update.Version}
			}
			return w.Result(&Result{
				Rule:    Rule{ID: advisoryOf(a.URL, a.Source), Message: a.Title, HelpURI: a.URL, CWE: a.CWE},
				Message: strings.TrimSpace(name+" "+a.Range) + optionalText(": ", a.Title, ""), Severity: a.Severity, Score: a.CVSS.text(),
				Path: "package-lock.json", Logical: name, Package: &Package{Name: name, Fixed: fixed, Ecosystem: "npm"},
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// advisoryOf is the GHSA identifier at the end of an address, or the number of npm.
func advisoryOf(url string, number []string) string {
	if id := path.Base(url); strings.HasPrefix(id, "GHSA-") {
		return id
	}
	if len(number) > 0 {
		return "npm:" + number[0]
	}
	return ""
}

type pnpmAdvisory struct {
	ID       jsonstream.Texts             `json:"id"`
	GHSA     string                       `json:"github_advisory_id"`
	Module   string                       `json:"module_name"`
	Title    string                       `json:"title"`
	Overview string                       `json:"overview"`
	URL      string                       `json:"url"`
	Severity string                       `json:"severity"`
	CWE      jsonstream.Texts             `json:"cwe"`
	CVEs     jsonstream.Texts             `json:"cves"`
	CVSS     npmCVSS                      `json:"cvss"`
	Patched  string                       `json:"patched_versions"`
	Findings jsonstream.List[pnpmFinding] `json:"findings"`
}

type pnpmFinding struct {
	Version string `json:"version"`
}

func convertPNPM(in *Input, w *Writer) error {
	w.Run(Tool{Name: "pnpm audit", Product: ProductSCA})
	use := func(a *pnpmAdvisory) error {
		if a.Module == "" {
			w.Unreadable(w.at, "names no package")
			return nil
		}
		out := &Result{
			Rule:     Rule{ID: cmp.Or(a.GHSA, advisoryOf(a.URL, a.ID)), Message: a.Title, Description: a.Overview, HelpURI: a.URL, CWE: a.CWE},
			Severity: a.Severity, Score: a.CVSS.text(), Path: "pnpm-lock.yaml", Logical: a.Module,
		}
		if len(a.Findings) == 0 {
			a.Findings = append(a.Findings, pnpmFinding{})
		}
		for _, f := range a.Findings {
			out.Message = strings.TrimSpace(a.Module+" "+f.Version) + optionalText(": ", a.Title, "")
			out.Package = &Package{
				Name: a.Module, Version: f.Version, Fixed: from(a.Patched), Ecosystem: "npm", Advisory: strings.Join(a.CVEs, ", "),
			}
			if err := w.Result(out); err != nil {
				return err
			}
		}
		return nil
	}
	return in.Walk(func(s *jsonstream.Stream) error {
		return report(s, w, members{"advisories": each(w, func(s *jsonstream.Stream, _ string) error { return item(s, w, use) })}, "advisories")
	})
}
