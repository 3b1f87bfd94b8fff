package export

import (
	"time"

	"github.com/google/uuid"

	"github.com/palisade/palisade/services/findings/position"
)

type (
	cdxNamed struct {
		Type string `json:"type,omitempty"`
		Name string `json:"name"`
	}
	cdxTools struct {
		Components []cdxNamed `json:"components"`
	}
	cdxMetadata struct {
		Timestamp string     `json:"timestamp"`
		Tools     cdxTools   `json:"tools"`
		Authors   []cdxNamed `json:"authors"`
	}
	cdxHead struct {
		Format   string      `json:"bomFormat"`
		Version  string      `json:"specVersion"`
		Serial   string      `json:"serialNumber"`
		Revision int         `json:"version"`
		Metadata cdxMetadata `json:"metadata"`
	}
	cdxRating struct {
		Severity string `json:"severity"`
	}
	cdxAffected struct {
		Ref string `json:"ref"`
	}
	cdxAnalysis struct {
		State         string   `json:"state"`
		Justification string   `json:"justification,omitempty"`
		Response      []string `json:"response,omitempty"`
		Detail        string   `json:"detail,omitempty"`
		LastUpdated   string   `json:"lastUpdated"`
	}
	cdxProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	cdxVulnerability struct {
		ID             string        `json:"id"`
		Ratings        []cdxRating   `json:"ratings"`
		CWEs           []int         `json:"cwes,omitempty"`
		Description    string        `json:"description,omitempty"`
		Recommendation string        `json:"recommendation,omitempty"`
		Analysis       cdxAnalysis   `json:"analysis"`
		Affects        []cdxAffected `json:"affects"`
		Properties     []cdxProperty `json:"properties"`
	}
)

// newCycloneDX writes a CycloneDX VEX document, version 1.6: no components, and a vulnerability with an analysis per
// finding. Its package is named by its package URL.
func newCycloneDX(about *about) format {
	return &listFormat{member: "vulnerabilities", of: func(e *exported) any { return cycloneDXOf(e) }, head: cdxHead{
		Format: "CycloneDX", Version: "1.6", Serial: "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(about.url())).String(), Revision: 1,
		Metadata: cdxMetadata{
			Timestamp: about.created.Format(time.RFC3339), Tools: cdxTools{[]cdxNamed{{"application", "Palisade"}}},
			Authors: []cdxNamed{{Name: about.deployment}},
		},
	}}
}

func cycloneDXOf(e *exported) *cdxVulnerability {
	p := positionOf(e)
	v := &cdxVulnerability{
		ID: vulnerability(e), Ratings: []cdxRating{{e.Severity}}, CWEs: position.Weaknesses(e.rule.content.GetCweNames()), Description: firstOf(e.content.GetMessage(), e.rule.content.GetMessage()),
		Affects:    []cdxAffected{{packageURL(e)}},
		Properties: []cdxProperty{{"palisade:project", e.project.Name}, {"palisade:ref", e.Ref}},
		Analysis:   cdxAnalysis{Detail: p.Note, LastUpdated: position.Since(e.Finding).Format(time.RFC3339)},
	}
	var response string
	if v.Analysis.State, v.Analysis.Justification, response = p.CycloneDX(); v.Analysis.State == "exploitable" {
		v.Recommendation = position.Advice(e.Finding, e.content)
	}
	if response != "" {
		v.Analysis.Response = []string{response}
	}
	return v
}
