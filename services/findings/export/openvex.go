package export

import (
	"time"

	"github.com/palisade/palisade/services/findings/position"
)

type (
	openVEXHead struct {
		Context   string `json:"@context"`
		ID        string `json:"@id"`
		Author    string `json:"author"`
		Timestamp string `json:"timestamp"`
		Version   int    `json:"version"`
		Tooling   string `json:"tooling"`
	}
	openVEXStatement struct {
		Vulnerability struct {
			Name string `json:"name"`
		} `json:"vulnerability"`
		Timestamp     string           `json:"timestamp"`
		Products      []openVEXProduct `json:"products"`
		Status        string           `json:"status"`
		Notes         string           `json:"status_notes,omitempty"`
		Justification string           `json:"justification,omitempty"`
		Impact        string           `json:"impact_statement,omitempty"`
		Action        string           `json:"action_statement,omitempty"`
	}
	openVEXProduct struct {
		ID    string             `json:"@id"`
		Parts []openVEXComponent `json:"subcomponents"`
	}
	openVEXComponent struct {
		ID          string            `json:"@id"`
		Identifiers map[string]string `json:"identifiers"`
	}
)

// newOpenVEX writes an OpenVEX document, version 0.2.0: a statement per finding. The product is the ref of a
// project, and the package is its subcomponent.
func newOpenVEX(about *about) format {
	return &listFormat{member: "statements", of: func(e *exported) any { return openVEXOf(e) }, head: openVEXHead{
		Context: "https://openvex.dev/ns/v0.2.0", ID: about.url(), Author: about.deployment, Timestamp: about.created.Format(time.RFC3339),
		Version: 1, Tooling: "Palisade",
	}}
}

func openVEXOf(e *exported) *openVEXStatement {
	p, url := positionOf(e), packageURL(e)
	s := &openVEXStatement{
		Status: p.Status, Timestamp: position.Since(e.Finding).Format(time.RFC3339),
		Products: []openVEXProduct{{ID: product(e), Parts: []openVEXComponent{{ID: url, Identifiers: map[string]string{"purl": url}}}}},
	}
	s.Vulnerability.Name = vulnerability(e)
	switch p.Status {
	case position.NotAffected:
		if p.Unreachable {
			s.Justification, s.Impact = "vulnerable_code_not_in_execute_path", p.Note
		} else {
			s.Impact = position.Impact(p.Note)
		}
	case position.Affected:
		s.Action = p.Note
	default:
		s.Notes = p.Note
	}
	return s
}
