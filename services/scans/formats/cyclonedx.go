package formats

import (
	"cmp"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

// cycloneDX is a CycloneDX document in JSON, version 1.2 to 1.7: a bill of materials, its vulnerabilities, or decisions
// about them (VEX).
var cycloneDX = Format{Name: "cyclonedx-json", Title: "CycloneDX JSON", Convert: convertCycloneDX, Recognises: func(o *Outline) bool {
	return strings.EqualFold(o.Value("bomFormat"), "CycloneDX") || strings.Contains(o.Value("$schema"), "cyclonedx.org/schema/bom")
}}

// cdxReader converts one document, in JSON or XML.
type cdxReader struct {
	w    *Writer
	bom  bom
	head cdxHead
	// What the document has: a list of vulnerabilities, components, and a decision.
	listed, components, decided bool
	doc                         vexDocument
}

func convertCycloneDX(in *Input, w *Writer) error {
	r := &cdxReader{w: w}
	// References may precede what they refer to, so everything but the vulnerabilities and relations is read first.
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{
			"serialNumber": into(&r.head.serial), "metadata": r.metadata, "components": r.list(func(c *cdxComponent) error { return r.component(c, false) }),
			"vulnerabilities": func(s *jsonstream.Stream) error {
				r.listed = s.Kind() != 'n'
				_, err := s.ArrayOf(func(int) error {
					return object(s, members{"analysis": func(s *jsonstream.Stream) error {
						r.decided = true
						return s.Skip()
					}})
				})
				return err
			},
		})
	})
	if err != nil {
		return err
	}
	r.start()
	err = in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"dependencies": r.relations, "vulnerabilities": list(w, func(s *jsonstream.Stream, _ int) error { return r.vulnerability(s) })})
	})
	if err != nil {
		return err
	}
	return r.bom.write(w, r.about())
}

func (r *cdxReader) metadata(s *jsonstream.Stream) error {
	return object(s, members{
		"timestamp": into(&r.head.at), "authors": into(&r.head.authors), "supplier": into(&r.head.supplier),
		"tools": func(s *jsonstream.Stream) error {
			if s.Kind() == '[' { // until 1.4
				return into(&r.head.tools)(s)
			}
			return object(s, members{"components": into(&r.head.tools)})
		},
		"component": r.read(func(c *cdxComponent) error {
			if r.head.root.Name == "" {
				r.head.root = *c
			}
			return r.component(c, true)
		}),
	})
}

// list reads a list of components.
func (r *cdxReader) list(use func(*cdxComponent) error) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		_, err := s.ArrayOf(func(int) error { return r.read(use)(s) })
		return err
	}
}

// read reads a component, and then the ones within it.
func (r *cdxReader) read(use func(*cdxComponent) error) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		var c cdxComponent
		err := object(s, members{
			"bom-ref": into(&c.Ref), "type": into(&c.Type), "group": into(&c.Group), "name": into(&c.Name), "version": into(&c.Version),
			"purl": into(&c.PURL), "licenses": into(&c.licenses), "properties": into(&c.properties), "evidence": into(&c.evidence),
			"components": r.list(use),
		})
		if err != nil {
			return err
		}
		return use(&c)
	}
}

// component keeps a component. own says that it is, or is a part of, what the document is about.
func (r *cdxReader) component(c *cdxComponent, own bool) error {
	r.components = r.components || !own
	isPackage := c.PURL != ""
	switch c.Type {
	case "library", "framework":
		isPackage = true
	case "application", "container", "platform", "operating-system", "firmware", "":
	default: // files, data, keys: only a package URL makes them packages
		if !isPackage && !own {
			return nil
		}
	}
	p := part{
		name: jsonstream.Cut(joinName(c.Group, c.Name), 512), version: jsonstream.Cut(c.Version, 256), purl: jsonstream.Cut(c.PURL, 1024),
		place: jsonstream.Cut(c.place(), 1024), isPackage: isPackage, isRoot: own,
	}
	for _, l := range c.licenses[:min(len(c.licenses), 20)] {
		p.licenses = withText(p.licenses, jsonstream.Cut(cmp.Or(l.Expression, l.License.ID, l.License.Name), 255))
	}
	return r.bom.add(jsonstream.Cut(c.Ref, 1024), p)
}

func joinName(group, name string) string {
	if group == "" {
		return name
	}
	return group + "/" + name
}

// place is the file that a component comes from, where tools write it.
func (c *cdxComponent) place() string {
	for _, at := range c.evidence.Occurrences {
		if at.Location != "" {
			return at.Location
		}
	}
	for _, p := range c.properties {
		switch {
		case p.Name == "SrcFile", p.Name == "aquasecurity:trivy:FilePath",
			strings.HasPrefix(p.Name, "syft:location:") && strings.HasSuffix(p.Name, ":path"):
			return strings.TrimLeft(p.Value, "/")
		}
	}
	return ""
}

// start opens the run. Without components, decisions are all that a document says: it lists vulnerabilities that
// somebody looked into, and not all that a tool found.
func (r *cdxReader) start() {
	tool := Tool{Name: "CycloneDX", Product: ProductSCA}
	if len(r.head.tools) > 0 && r.head.tools[0].Name != "" {
		tool.Name, tool.Version = r.head.tools[0].Name, r.head.tools[0].Version
	}
	if r.head.root.Type == "container" && r.head.root.Name != "" {
		tool.Category = sarif.ImageName(r.head.root.Name)
	}
	r.doc = vexDocument{author: r.head.supplier.Name, id: r.head.serial, at: timeOf(r.head.at)}
	if len(r.head.authors) > 0 {
		r.doc.author = cmp.Or(r.head.authors[0].Name, r.doc.author)
	}
	r.doc.author = cmp.Or(r.doc.author, tool.Name)
	if r.listed && !r.onlyDecisions() {
		r.w.Run(tool)
	} else {
		r.w.Facts(tool)
	}
}

func (r *cdxReader) onlyDecisions() bool { return r.decided && !r.components }

// about names what the document is about, for packages of an unknown file.
func (r *cdxReader) about() string {
	name := cmp.Or(r.bom.about(), "CycloneDX")
	if r.head.root.Type == "container" {
		return sarif.ImageName(name)
	}
	return "sbom:" + name
}

// relations reads which components require which others.
func (r *cdxReader) relations(s *jsonstream.Stream) error {
	_, err := s.ArrayOf(func(int) error {
		var ref string
		var requires []string
		err := object(s, members{"ref": into(&ref), "dependsOn": func(s *jsonstream.Stream) error {
			_, err := s.ArrayOf(func(int) error {
				var to string
				err := into(&to)(s)
				if requires = append(requires, to); len(requires) > maxParts {
					return errManyPackages
				}
				return err
			})
			return err
		}})
		if err != nil {
			return err
		}
		return r.requires(ref, requires)
	})
	return err
}

func (r *cdxReader) requires(ref string, others []string) error {
	from, known := r.bom.refs[ref]
	if !known {
		return nil
	}
	for _, other := range others {
		to, known := r.bom.refs[other]
		if !known {
			continue
		}
		if err := r.bom.relate(from, to); err != nil {
			return err
		}
	}
	return nil
}

// vulnerability reads a vulnerability with all that it affects.
func (r *cdxReader) vulnerability(s *jsonstream.Stream) error {
	if s.Kind() != '{' {
		if err := s.Skip(); err != nil {
			return err
		}
		r.w.Unreadable(s.Pointer(), "is not an object")
		return nil
	}
	var v cdxVulnerability
	w := r.w
	err := object(s, members{
		"id": into(&v.ID), "source": into(&v.Source), "references": into(&v.References), "ratings": into(&v.Ratings),
		"cwes": into(&v.CWEs), "description": into(&v.Description), "detail": into(&v.Detail),
		"recommendation": into(&v.Recommendation), "advisories": into(&v.Advisories), "updated": into(&v.Updated),
		"analysis": into(&v.Analysis),
		"affects": list(w, func(s *jsonstream.Stream, _ int) error {
			return item(s, w, func(a *cdxAffected) error { return v.affect(a) })
		}),
	})
	if err != nil {
		return err
	}
	return r.report(&v, s.Pointer())
}

func (v *cdxVulnerability) affect(a *cdxAffected) error {
	if len(v.affects) >= maxDecisions {
		return errManyProducts
	}
	a.Ref = jsonstream.Cut(a.Ref, 1024)
	v.affects = append(v.affects, *a)
	return nil
}
