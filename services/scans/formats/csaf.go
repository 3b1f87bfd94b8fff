package formats

import (
	"cmp"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// csaf is a CSAF 2.0 document: a VEX document or a security advisory. It has decisions only.
var csaf = Format{Name: "csaf", Title: "CSAF 2.0", Convert: convertCSAF, Recognises: func(o *Outline) bool {
	return o.Has("document.csaf_version") || o.Has("document.category") && o.Has("document.tracking")
}}

// csafProduct is a name of a product with its package URL.
type csafProduct struct {
	ID     string `json:"product_id"`
	Helper struct {
		PURL  string                  `json:"purl"`
		PURLs jsonstream.List[string] `json:"purls"`
	} `json:"product_identification_helper"`
}

type csafRelationship struct {
	Reference string      `json:"product_reference"`
	Full      csafProduct `json:"full_product_name"`
}

// csafNote is a flag with a justification, or a threat with its details, about some products.
type csafNote struct {
	Label    string `json:"label"`
	Category string `json:"category"`
	Details  string `json:"details"`

	products, groups []string
}

// csafReader converts one document.
type csafReader struct {
	w   *Writer
	doc vexDocument
	// purls has the package URLs of products, parts the products that others contain, groups their groups.
	purls, parts map[string]string
	groups       map[string][]string
	kept         int
}

func convertCSAF(in *Input, w *Writer) error {
	r := &csafReader{w: w, purls: map[string]string{}, parts: map[string]string{}, groups: map[string][]string{}}
	w.Facts(Tool{Name: "CSAF", Product: ProductSCA})
	// Products may follow the vulnerabilities, so they are read first.
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"document": r.document, "product_tree": r.tree})
	})
	if err != nil {
		return err
	}
	return in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"vulnerabilities": list(w, func(s *jsonstream.Stream, _ int) error { return r.vulnerability(s) })})
	})
}

func (r *csafReader) document(s *jsonstream.Stream) error {
	var publisher struct {
		Name string `json:"name"`
	}
	var tracking struct {
		ID      string `json:"id"`
		Current string `json:"current_release_date"`
		First   string `json:"initial_release_date"`
	}
	err := object(s, members{"publisher": into(&publisher), "tracking": into(&tracking)})
	r.doc = vexDocument{author: publisher.Name, id: tracking.ID, at: timeOf(tracking.Current, tracking.First)}
	return err
}

// tree reads a product tree, or a branch of it.
func (r *csafReader) tree(s *jsonstream.Stream) error {
	return object(s, members{
		"branches":           list(r.w, func(s *jsonstream.Stream, _ int) error { return r.tree(s) }),
		"full_product_names": items(r.w, r.product),
		"product":            func(s *jsonstream.Stream) error { return item(s, r.w, r.product) },
		"relationships": items(r.w, func(of *csafRelationship) error {
			if of.Full.ID != "" && of.Reference != "" {
				r.parts[of.Full.ID] = of.Reference
			}
			return r.product(&of.Full)
		}),
		"product_groups": list(r.w, func(s *jsonstream.Stream, _ int) error {
			var id string
			var products []string
			err := object(s, members{"group_id": into(&id), "product_ids": r.ids(&products)})
			r.groups[id] = products
			return err
		}),
	})
}

func (r *csafReader) product(p *csafProduct) error {
	if r.kept++; r.kept > maxDecisions {
		return errManyProducts
	}
	purl := p.Helper.PURL
	if purl == "" && len(p.Helper.PURLs) > 0 { // CSAF 2.1
		purl = p.Helper.PURLs[0]
	}
	if p.ID != "" && purl != "" {
		r.purls[p.ID] = jsonstream.Cut(purl, 1024)
	}
	return nil
}

// ids reads a list of ids of products or groups.
func (r *csafReader) ids(all *[]string) func(*jsonstream.Stream) error {
	return list(r.w, func(s *jsonstream.Stream, _ int) error {
		var id string
		if err := into(&id)(s); err != nil {
			return err
		}
		if r.kept++; r.kept > 10*maxDecisions {
			return errManyProducts
		}
		*all = append(*all, strings.Clone(id))
		return nil
	})
}

// purl is the package URL of a product. Of a product that is a part of another one it is the part's.
func (r *csafReader) purl(id string) string {
	for range 10 {
		part := r.parts[id]
		if part == "" {
			break
		}
		if r.purls[part] == "" && r.purls[id] != "" {
			break
		}
		id = part
	}
	return r.purls[id]
}

func (r *csafReader) vulnerability(s *jsonstream.Stream) error {
	var names []string
	var cve string
	var notes []*csafNote
	byStatus := map[string]*[]string{}
	err := object(s, members{
		"cve": into(&cve),
		"ids": items(r.w, func(id *struct {
			Text string `json:"text"`
		}) error {
			names = withText(names, id.Text)
			return nil
		}),
		"flags": r.notes(&notes), "threats": r.notes(&notes),
		"product_status": func(s *jsonstream.Stream) error {
			_, err := s.ObjectOf(func(name string) error {
				status := vexStatus(name)
				if status == "" {
					return s.Skip() // such as "recommended"
				}
				if byStatus[status] == nil {
					byStatus[status] = new([]string)
				}
				return r.ids(byStatus[status])(s)
			})
			return err
		},
	})
	if err != nil {
		return err
	}
	if names = withText(names, cve); len(names) == 0 {
		r.w.Unreadable(s.Pointer(), "names no vulnerability")
		return nil
	}
	return r.decide(names, byStatus, notes)
}

func (r *csafReader) decide(names []string, byStatus map[string]*[]string, notes []*csafNote) error {
	justification, detail := map[string]string{}, map[string]string{}
	for _, note := range notes {
		lists := [][]string{note.products}
		for _, group := range note.groups {
			lists = append(lists, r.groups[group])
		}
		for _, products := range lists {
			if r.kept += len(products); r.kept > 10*maxDecisions {
				return errManyProducts
			}
			for _, product := range products {
				justification[product] = cmp.Or(justification[product], note.Label)
				if note.Category == "impact" {
					detail[product] = cmp.Or(detail[product], note.Details)
				}
			}
		}
	}
	for _, status := range [...]string{NotAffected, FixedStatus, Investigating, Affected} { // of contradictions the last one counts
		if byStatus[status] == nil {
			continue
		}
		for _, product := range *byStatus[status] {
			err := r.w.Decision(Decision{
				Vulnerabilities: names, PURL: r.purl(product), Status: status, Justification: justification[product], Detail: detail[product],
				Author: r.doc.author, Document: r.doc.id, At: r.doc.at,
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// notes reads flags and threats.
func (r *csafReader) notes(notes *[]*csafNote) func(*jsonstream.Stream) error {
	return list(r.w, func(s *jsonstream.Stream, _ int) error {
		n := &csafNote{}
		err := object(s, members{
			"label": into(&n.Label), "category": into(&n.Category), "details": into(&n.Details),
			"product_ids": r.ids(&n.products), "group_ids": r.ids(&n.groups),
		})
		if len(*notes) < 1000 {
			n.Details = jsonstream.Cut(n.Details, 1024)
			*notes = append(*notes, n)
		}
		return err
	})
}
