package formats

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

// osvScanner is the report of `osv-scanner --format json`, versions 1 and 2.
var osvScanner = Format{Name: "osv-scanner-json", Title: "OSV-Scanner JSON", Convert: convertOSV, Recognises: func(o *Outline) bool {
	return o.Has("results[].packages") || o.Has("results") && o.Has("experimental_config")
}}

// osvPackage is the head of an element of packages, which may follow its vulnerabilities.
type osvPackage struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Ecosystem string `json:"ecosystem"`
	Commit    string `json:"commit"`

	source string
	// groups has the groups by the vulnerability that is written for all of the group.
	groups map[string]osvGroup
	// others are the other vulnerabilities of the groups.
	others map[string]bool
}

// osvGroup is one vulnerability under several ids. own are its vulnerabilities; ids has their aliases, too. The best is
// first.
type osvGroup struct {
	own    []string
	ids    []string
	score  string
	called bool
}

type osvReport struct {
	in       *Input
	w        *Writer
	packages []osvPackage
	read     int
	image    string
}

func convertOSV(in *Input, w *Writer) error {
	r := &osvReport{in: in, w: w}
	tool := Tool{Name: "osv-scanner", Product: ProductSCA}
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"results": func(s *jsonstream.Stream) error {
			_, err := s.ArrayOf(func(int) error { return r.source(s) })
			return err
		}})
	})
	if err != nil {
		return err
	}
	if r.image != "" {
		tool.Category = sarif.ImageName(r.image)
	}
	w.Run(tool)
	packages := list(w, func(s *jsonstream.Stream, _ int) error {
		p := &r.packages[r.read]
		r.read++
		return fields(s, w, members{
			"vulnerabilities":    notNull(w, items(w, func(v *osvVulnerability) error { return r.vulnerability(p, v) })),
			"license_violations": items(w, func(name *string) error { return r.license(p, *name) }),
		})
	})
	return in.Walk(func(s *jsonstream.Stream) error {
		return report(s, w, members{"results": list(w, func(s *jsonstream.Stream, _ int) error {
			return fields(s, w, members{"packages": notNull(w, packages)})
		})}, "results")
	})
}

// source reads the heads of the packages of one source.
func (r *osvReport) source(s *jsonstream.Stream) error {
	first := len(r.packages)
	var source struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	err := object(s, members{"source": into(&source), "packages": func(s *jsonstream.Stream) error {
		_, err := s.ArrayOf(func(int) error { return r.head(s) })
		return err
	}})
	for i := first; i < len(r.packages); i++ {
		r.packages[i].source = source.Path
	}
	if source.Type == "docker" {
		r.image = source.Path
	}
	return errors.Join(err, r.in.keep(len(source.Path)))
}

// head reads the head of a package.
func (r *osvReport) head(s *jsonstream.Stream) error {
	p := osvPackage{groups: map[string]osvGroup{}, others: map[string]bool{}}
	var groups []osvGroup
	withdrawn := map[string]bool{}
	err := object(s, members{
		"package": into(&p),
		"groups": func(s *jsonstream.Stream) error {
			_, err := s.ArrayOf(func(int) error {
				g, err := r.group(s)
				if len(g.own) > 0 {
					groups = append(groups, g)
				}
				return err
			})
			return err
		},
		"vulnerabilities": func(s *jsonstream.Stream) error {
			_, err := s.ArrayOf(func(int) error {
				var id, since string
				if err := object(s, members{"id": into(&id), "withdrawn": into(&since)}); err != nil || since == "" {
					return err
				}
				withdrawn[id] = true
				return r.in.keep(len(id) + 16)
			})
			return err
		},
	})
	for _, g := range groups {
		p.add(g, withdrawn)
	}
	r.packages = append(r.packages, p)
	return errors.Join(err, r.in.keep(len(p.Name)+len(p.Version)+len(p.Ecosystem)+100))
}

// add adds a group, which is written with the best vulnerability that was not withdrawn.
func (p *osvPackage) add(g osvGroup, withdrawn map[string]bool) {
	own := slices.DeleteFunc(g.own, func(id string) bool { return withdrawn[id] })
	for i, id := range own {
		if i == 0 {
			p.groups[id] = g
		} else {
			p.others[id] = true
		}
	}
}

func (r *osvReport) group(s *jsonstream.Stream) (osvGroup, error) {
	var g struct {
		IDs      jsonstream.Texts `json:"ids"`
		Aliases  jsonstream.Texts `json:"aliases"`
		Severity string           `json:"max_severity"`
		Analysis jsonstream.Map[struct {
			Called bool `json:"called"`
		}] `json:"experimentalAnalysis"`
	}
	if err := into(&g)(s); err != nil || len(g.IDs) == 0 {
		return osvGroup{}, err
	}
	called := len(g.Analysis) == 0
	for _, analysis := range g.Analysis {
		called = called || analysis.Called
	}
	all := append(slices.Clone(g.IDs), g.Aliases...)
	all = SortAdvisories(all)
	slices.SortFunc(g.IDs, compareOSV)
	size := 200 + 50*len(g.IDs)
	for _, id := range all {
		size += len(id) + 16
	}
	return osvGroup{own: g.IDs, ids: all, score: g.Severity, called: called}, r.in.keep(size)
}

// vulnerability writes one result for each group.
func (r *osvReport) vulnerability(p *osvPackage, v *osvVulnerability) error {
	if v.Withdrawn != "" {
		return nil
	}
	g, known := p.groups[v.ID]
	if !known {
		if p.others[v.ID] {
			return nil
		}
		g = osvGroup{ids: append([]string{v.ID}, v.Aliases...), called: true}
		slices.SortFunc(g.ids, compareOSV)
	}
	problem := Vulnerability{
		ID: v.ID, IDs: g.ids, Upstream: v.Upstream, Summary: v.Summary, Details: v.Details, CWE: v.Database.CWE, References: v.pages(), Fixed: v.fixed(p.Name, p.Ecosystem),
	}
	problem.Severity, problem.Score = v.severity()
	problem.Score = cmp.Or(g.score, problem.Score)
	out := problem.Result(&Package{Name: p.Name, Version: p.version(), Ecosystem: p.Ecosystem})
	out.Path = r.path(p)
	if !g.called {
		out.Suppressed = &Suppression{Reason: "the code does not call the vulnerable function, according to OSV-Scanner"}
	}
	if g.ids[0] == "" {
		out.Rule, out.Message, out.Path = Rule{}, "", ""
	}
	return r.w.Result(out)
}

// license writes a license that the user does not allow.
func (r *osvReport) license(p *osvPackage, name string) error {
	return r.w.Result(&Result{
		Rule:    Rule{ID: "license/" + name, Message: "License " + name + " is not allowed", Tags: []string{"license"}},
		Message: fmt.Sprintf("Package '%s@%s' has the license %s, which is not allowed.", p.Name, p.version(), name), Path: r.path(p),
		Logical: p.Name, Package: &Package{Name: p.Name, Version: p.version(), Ecosystem: p.Ecosystem},
	})
}

func (p *osvPackage) version() string { return cmp.Or(p.Version, p.Commit) }

// path is the lockfile. The source of the packages of an image is the image.
func (r *osvReport) path(p *osvPackage) string {
	if p.source == r.image {
		return ""
	}
	return p.source
}
