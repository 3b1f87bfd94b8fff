package formats

import (
	"cmp"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// spdx is an SPDX 2.2 or 2.3 document in JSON. It has dependencies only.
var spdx = Format{Name: "spdx-json", Title: "SPDX JSON", Convert: convertSPDX, Recognises: func(o *Outline) bool {
	return strings.HasPrefix(o.Value("spdxVersion"), "SPDX-2") || o.Has("SPDXID") && o.Has("packages")
}}

type spdxPackage struct {
	ID        string `json:"SPDXID"`
	Name      string `json:"name"`
	Version   string `json:"versionInfo"`
	Concluded string `json:"licenseConcluded"`
	Declared  string `json:"licenseDeclared"`
	Purpose   string `json:"primaryPackagePurpose"`
	Refs      jsonstream.List[struct {
		Type    string `json:"referenceType"`
		Locator string `json:"referenceLocator"`
	}] `json:"externalRefs"`
}

type spdxRelationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// spdxReader converts one document.
type spdxReader struct {
	bom  bom
	name string
	// described has hashes of the ids of what the document is about.
	described map[uint64]bool
	// contained has the packages in it, required the packages that others require.
	contained, required map[int32]bool
}

func convertSPDX(in *Input, w *Writer) error {
	r := &spdxReader{described: map[uint64]bool{}, contained: map[int32]bool{}, required: map[int32]bool{}}
	var creation struct {
		Creators jsonstream.List[string] `json:"creators"`
	}
	// What the document is about may follow the packages, so it is read first.
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{
			"name": into(&r.name), "creationInfo": into(&creation), "relationships": r.relationships(r.describes),
			"documentDescribes": func(s *jsonstream.Stream) error {
				_, err := s.ArrayOf(func(int) error {
					var id string
					if err := into(&id)(s); err != nil {
						return err
					}
					return r.describe(id)
				})
				return err
			},
		})
	})
	if err != nil {
		return err
	}
	w.Facts(spdxTool(creation.Creators))
	if err := in.Walk(func(s *jsonstream.Stream) error { return object(s, members{"packages": items(w, r.keep)}) }); err != nil {
		return err
	}
	if err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"relationships": r.relationships(r.relate)})
	}); err != nil {
		return err
	}
	if err := r.relateContained(); err != nil {
		return err
	}
	return r.bom.write(w, "sbom:"+cmp.Or(r.bom.about(), r.name, "SPDX"))
}

// relationships reads the relations between elements.
func (r *spdxReader) relationships(use func(*spdxRelationship) error) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		_, err := s.ArrayOf(func(int) error {
			var of spdxRelationship
			if err := into(&of)(s); err != nil {
				return err
			}
			return use(&of)
		})
		return err
	}
}

const spdxDocument = "SPDXRef-DOCUMENT"

func (r *spdxReader) describes(of *spdxRelationship) error {
	switch {
	case of.Type == "DESCRIBES" && of.From == spdxDocument:
		return r.describe(of.To)
	case of.Type == "DESCRIBED_BY" && of.To == spdxDocument:
		return r.describe(of.From)
	}
	return nil
}

func (r *spdxReader) describe(id string) error {
	if r.described[xxhash.Sum64String(id)] = true; len(r.described) > maxParts {
		return errManyPackages
	}
	return nil
}

// keep keeps a package. A document that describes several packages is about all of them, and not about a product that
// requires them.
func (r *spdxReader) keep(p *spdxPackage) error {
	kept := part{name: jsonstream.Cut(p.Name, 512), version: jsonstream.Cut(p.Version, 256), isPackage: true}
	kept.isRoot = len(r.described) == 1 && r.described[xxhash.Sum64String(p.ID)]
	for _, ref := range p.Refs {
		if ref.Type == "purl" && kept.purl == "" {
			kept.purl = jsonstream.Cut(ref.Locator, 1024)
		}
	}
	switch p.Purpose {
	case "CONTAINER", "OPERATING-SYSTEM", "FILE", "SOURCE", "ARCHIVE":
		kept.isPackage = kept.purl != ""
	}
	for _, license := range [...]string{p.Concluded, p.Declared} {
		if license != "NOASSERTION" && license != "NONE" && len(kept.licenses) == 0 {
			kept.licenses = withText(kept.licenses, jsonstream.Cut(license, 255))
		}
	}
	return r.bom.add(jsonstream.Cut(p.ID, 1024), kept)
}

// relate keeps that a package requires another one.
func (r *spdxReader) relate(of *spdxRelationship) error {
	from, to := of.From, of.To
	if strings.HasSuffix(of.Type, "DEPENDENCY_OF") || of.Type == "CONTAINED_BY" {
		from, to = to, from
	}
	parent, known := r.bom.refs[from]
	child, alsoKnown := r.bom.refs[to]
	switch {
	case !known || !alsoKnown:
	case of.Type == "CONTAINS", of.Type == "CONTAINED_BY":
		if r.bom.parts[parent].isRoot {
			r.contained[child] = true
		}
	case of.Type == "DEPENDS_ON", strings.HasSuffix(of.Type, "DEPENDENCY_OF"):
		r.required[child] = true
		return r.bom.relate(parent, child)
	}
	return nil
}

// relateContained makes the packages direct that the product contains and that no other package requires, if the
// document only says what the product contains.
func (r *spdxReader) relateContained() error {
	if r.bom.edges == 0 || len(r.bom.roots) != 1 || len(r.bom.parts[r.bom.roots[0]].children) > 0 {
		return nil
	}
	for child := range r.contained {
		if r.required[child] {
			continue
		}
		if err := r.bom.relate(r.bom.roots[0], child); err != nil {
			return err
		}
	}
	return nil
}

// spdxTool is the tool among the creators: "Tool: syft-1.50.0".
func spdxTool(creators []string) Tool {
	for _, creator := range creators {
		name, isTool := strings.CutPrefix(creator, "Tool:")
		if name = strings.TrimSpace(name); !isTool || name == "" {
			continue
		}
		if i := strings.LastIndexByte(name, '-'); i > 0 && i+1 < len(name) && strings.ContainsAny(name[i+1:i+2], "0123456789v") {
			return Tool{Name: name[:i], Version: name[i+1:], Product: ProductSCA}
		}
		return Tool{Name: name, Product: ProductSCA}
	}
	return Tool{Name: "SPDX", Product: ProductSCA}
}
