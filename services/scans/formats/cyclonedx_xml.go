package formats

import (
	"encoding/xml"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// cycloneDXML is a CycloneDX document in XML. It has the same parts as in JSON.
var cycloneDXML = Format{Name: "cyclonedx-xml", Title: "CycloneDX XML", Convert: convertCycloneDXML, Recognises: func(o *Outline) bool {
	return o.Root == '<' && strings.Contains(o.Namespace, "cyclonedx.org/schema/bom")
}}

func convertCycloneDXML(in *Input, w *Writer) error {
	r := &cdxReader{w: w}
	err := in.WalkXML(func(x *xmlStream, root *xml.StartElement) error {
		r.head.serial = xmlAttr(root, "serialNumber")
		return x.children(xmlChildren{
			"metadata": r.metadataXML, "components": r.listXML(func(c *cdxComponent) error { return r.component(c, false) }),
			"vulnerabilities": func(x *xmlStream, _ *xml.StartElement) error {
				r.listed = true
				return x.children(xmlChildren{"vulnerability": func(x *xmlStream, _ *xml.StartElement) error {
					return x.children(xmlChildren{"analysis": func(*xmlStream, *xml.StartElement) error {
						r.decided = true
						return nil
					}})
				}})
			},
		})
	})
	if err != nil {
		return err
	}
	r.start()
	err = in.WalkXML(func(x *xmlStream, _ *xml.StartElement) error {
		return x.children(xmlChildren{
			"dependencies": xmlEach("dependency", r.relationsXML), "vulnerabilities": xmlEach("vulnerability", r.vulnerabilityXML),
		})
	})
	if err != nil {
		return err
	}
	return r.bom.write(w, r.about())
}

// xmlEach reads the children of one name.
func xmlEach(name string, read xmlReader) xmlReader {
	return func(x *xmlStream, _ *xml.StartElement) error { return x.children(xmlChildren{name: read}) }
}

// xmlList reads the children of one name into a list. What cannot be decoded is left out.
func xmlList[T any](name string, out *jsonstream.List[T]) xmlReader {
	return xmlEach(name, func(x *xmlStream, e *xml.StartElement) error {
		var value T
		problem, err := x.decode(e, &value)
		if err == nil && problem == "" && len(*out) < maxChildren {
			*out = append(*out, value)
		}
		return err
	})
}

func (r *cdxReader) metadataXML(x *xmlStream, _ *xml.StartElement) error {
	return x.children(xmlChildren{
		"timestamp": xmlInto(&r.head.at), "authors": xmlList("author", &r.head.authors), "supplier": xmlInto(&r.head.supplier),
		"tools": func(x *xmlStream, _ *xml.StartElement) error {
			return x.children(xmlChildren{
				"tool":       r.toolXML, // until 1.4
				"components": xmlEach("component", r.toolXML),
			})
		},
		"component": r.readXML(func(c *cdxComponent) error {
			if r.head.root.Name == "" {
				r.head.root = *c
			}
			return r.component(c, true)
		}),
	})
}

func (r *cdxReader) toolXML(x *xmlStream, e *xml.StartElement) error {
	var tool cdxTool
	_, err := x.decode(e, &tool)
	if len(r.head.tools) == 0 {
		r.head.tools = jsonstream.List[cdxTool]{tool}
	}
	return err
}

func (r *cdxReader) listXML(use func(*cdxComponent) error) xmlReader {
	return xmlEach("component", r.readXML(use))
}

// readXML reads a component, and the ones within it.
func (r *cdxReader) readXML(use func(*cdxComponent) error) xmlReader {
	return func(x *xmlStream, e *xml.StartElement) error {
		c := cdxComponent{Ref: xmlAttr(e, "bom-ref"), Type: xmlAttr(e, "type")}
		err := x.children(xmlChildren{
			"group": xmlInto(&c.Group), "name": xmlInto(&c.Name), "version": xmlInto(&c.Version), "purl": xmlInto(&c.PURL),
			"properties": xmlList("property", &c.properties), "evidence": xmlInto(&c.evidence),
			"licenses": func(x *xmlStream, _ *xml.StartElement) error {
				keep := func(read func(l *cdxLicense) any) xmlReader {
					return func(x *xmlStream, e *xml.StartElement) error {
						var l cdxLicense
						_, err := x.decode(e, read(&l))
						if len(c.licenses) < maxChildren {
							c.licenses = append(c.licenses, l)
						}
						return err
					}
				}
				return x.children(xmlChildren{
					"license":    keep(func(l *cdxLicense) any { return &l.License }),
					"expression": keep(func(l *cdxLicense) any { return &l.Expression }),
				})
			},
			"components": r.listXML(use),
		})
		if err != nil {
			return err
		}
		return use(&c)
	}
}

// relationsXML reads which components a component requires.
func (r *cdxReader) relationsXML(x *xmlStream, e *xml.StartElement) error {
	ref, requires := xmlAttr(e, "ref"), []string(nil)
	err := x.children(xmlChildren{"dependency": func(_ *xmlStream, e *xml.StartElement) error {
		if requires = append(requires, xmlAttr(e, "ref")); len(requires) > maxParts {
			return errManyPackages
		}
		return nil
	}})
	if err != nil {
		return err
	}
	return r.requires(ref, requires)
}

func (r *cdxReader) vulnerabilityXML(x *xmlStream, _ *xml.StartElement) error {
	var v cdxVulnerability
	at := x.pointer()
	err := x.children(xmlChildren{
		"id": xmlInto(&v.ID), "source": xmlInto(&v.Source), "references": xmlList("reference", &v.References), "ratings": xmlList("rating", &v.Ratings),
		"cwes": xmlList("cwe", &v.CWEs), "description": xmlInto(&v.Description), "detail": xmlInto(&v.Detail),
		"recommendation": xmlInto(&v.Recommendation), "advisories": xmlList("advisory", &v.Advisories),
		"updated": xmlInto(&v.Updated), "analysis": xmlInto(&v.Analysis),
		"affects": xmlEach("target", xmlItem(r.w, v.affect)),
	})
	if err != nil {
		return err
	}
	return r.report(&v, at)
}
