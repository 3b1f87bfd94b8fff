package formats

import (
	"strings"
	"time"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// openVEX is an OpenVEX document, version 0.0.1 to 0.2. It has decisions only.
var openVEX = Format{Name: "openvex", Title: "OpenVEX", Convert: convertOpenVEX, Recognises: func(o *Outline) bool {
	return o.Has("statements") && (strings.Contains(o.Value("@context"), "openvex") || o.Has("statements[].vulnerability") && o.Has("statements[].status"))
}}

// vexDocument is what all statements of a document share.
type vexDocument struct {
	author, id string
	at         time.Time
}

// openStatement is the part of a statement that is not about its products.
type openStatement struct {
	names                                    []string
	status, justification, impact, at, later string
}

func convertOpenVEX(in *Input, w *Writer) error {
	var doc vexDocument
	var at, later string
	w.Facts(Tool{Name: "OpenVEX", Product: ProductSCA})
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{
			"@id": into(&doc.id), "author": into(&doc.author), "timestamp": into(&at), "last_updated": into(&later),
		})
	})
	if err != nil {
		return err
	}
	doc.at = timeOf(later, at)
	return in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"statements": list(w, func(s *jsonstream.Stream, _ int) error { return openVEXStatement(s, w, &doc) })})
	})
}

func openVEXStatement(s *jsonstream.Stream, w *Writer, doc *vexDocument) error {
	var t openStatement
	var products []string
	if s.Kind() != '{' {
		if err := s.Skip(); err != nil {
			return err
		}
		w.Unreadable(s.Pointer(), "is not an object")
		return nil
	}
	err := object(s, members{
		"vulnerability": vulnerabilityNames(&t.names), "status": into(&t.status), "justification": into(&t.justification),
		"impact_statement": into(&t.impact), "timestamp": into(&t.at), "last_updated": into(&t.later),
		"products": list(w, func(s *jsonstream.Stream, _ int) error { return vexProduct(s, w, &products) }),
	})
	if err != nil {
		return err
	}
	status := vexStatus(t.status)
	switch {
	case status == "":
		w.Unreadable(s.Pointer(), "has no known status")
		return nil
	case len(t.names) == 0:
		w.Unreadable(s.Pointer(), "names no vulnerability")
		return nil
	case len(products) == 0:
		products = []string{""} // nothing that it could match
	}
	made := timeOf(t.later, t.at)
	if made.IsZero() {
		made = doc.at
	}
	for _, product := range products {
		err := w.Decision(Decision{
			Vulnerabilities: t.names, PURL: product, Status: status, Justification: t.justification, Detail: t.impact,
			Author: doc.author, Document: doc.id, At: made,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// vulnerabilityNames reads a name, or an object with a name and aliases.
func vulnerabilityNames(names *[]string) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		if s.Kind() != '{' {
			var name string
			err := into(&name)(s)
			*names = withText(*names, name)
			return err
		}
		var v struct {
			ID      string `json:"@id"`
			Name    string `json:"name"`
			Aliases jsonstream.List[string]
		}
		err := into(&v)(s)
		for _, name := range append(v.Aliases[:len(v.Aliases):len(v.Aliases)], v.Name) {
			*names = withText(*names, name)
		}
		if len(*names) == 0 {
			*names = withText(*names, v.ID[strings.LastIndexByte(v.ID, '/')+1:])
		}
		return err
	}
}

// vexProduct reads a product: the package URL, or an object. If it has subcomponents, the statement is about them.
func vexProduct(s *jsonstream.Stream, w *Writer, products *[]string) error {
	if s.Kind() != '{' {
		var id string
		err := into(&id)(s)
		return withProduct(products, id, err)
	}
	var id string
	var identifiers struct {
		PURL string `json:"purl"`
	}
	var parts []string
	err := object(s, members{
		"@id": into(&id), "identifiers": into(&identifiers),
		"subcomponents": list(w, func(s *jsonstream.Stream, _ int) error { return vexProduct(s, w, &parts) }),
	})
	if len(parts) > 0 {
		for _, part := range parts {
			err = withProduct(products, part, err)
		}
		return err
	}
	if identifiers.PURL != "" {
		id = identifiers.PURL
	}
	return withProduct(products, id, err)
}

func withProduct(products *[]string, id string, err error) error {
	if err != nil {
		return err
	}
	if len(*products) >= maxDecisions {
		return errManyProducts
	}
	*products = append(*products, jsonstream.Cut(id, 1024))
	return nil
}

var errManyProducts = &jsonstream.LimitError{What: "it is about more products than a document may have", Max: maxDecisions}

func withText(list []string, text string) []string {
	if text = strings.TrimSpace(text); text != "" && len(list) < 50 {
		list = append(list, text)
	}
	return list
}

// vexStatus is the status for a word of OpenVEX, CSAF or CycloneDX; empty for other words.
func vexStatus(word string) string {
	switch strings.ToLower(word) {
	case "not_affected", "known_not_affected":
		return NotAffected
	case "false_positive":
		return FalsePositive
	case "affected", "known_affected", "first_affected", "last_affected", "exploitable":
		return Affected
	case "fixed", "first_fixed", "resolved", "resolved_with_pedigree":
		return FixedStatus
	case "under_investigation", "in_triage":
		return Investigating
	}
	return ""
}

// timeOf is the first text that is a time.
func timeOf(texts ...string) time.Time {
	for _, text := range texts {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}
