package formats

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// defectDojo is the generic findings import of DefectDojo.
var defectDojo = Format{Name: "defectdojo-generic", Title: "DefectDojo generic findings", Convert: convertDojo, Recognises: func(o *Outline) bool {
	return o.Has("findings[].title") && o.Has("findings[].severity") && o.Has("findings[].description")
}}

type dojoFinding struct {
	Title         string                          `json:"title"`
	Description   string                          `json:"description"`
	Severity      string                          `json:"severity"`
	Justification string                          `json:"severity_justification"`
	Mitigation    string                          `json:"mitigation"`
	Impact        string                          `json:"impact"`
	References    string                          `json:"references"`
	CVE           string                          `json:"cve"`
	IDs           jsonstream.Texts                `json:"vulnerability_ids"`
	CWE           jsonstream.Integer              `json:"cwe"`
	Score         jsonstream.Texts                `json:"cvssv3_score"`
	Score4        jsonstream.Texts                `json:"cvssv4_score"`
	Path          string                          `json:"file_path"`
	Line          jsonstream.Integer              `json:"line"`
	Component     string                          `json:"component_name"`
	Version       string                          `json:"component_version"`
	FixVersion    string                          `json:"fix_version"`
	UniqueID      string                          `json:"unique_id_from_tool"`
	VulnID        string                          `json:"vuln_id_from_tool"`
	Tags          jsonstream.Texts                `json:"tags"`
	Endpoints     jsonstream.List[jsontext.Value] `json:"endpoints"`
	SourcePath    string                          `json:"sast_source_file_path"`
	SourceLine    jsonstream.Integer              `json:"sast_source_line"`
	SourceObject  string                          `json:"sast_source_object"`
	SinkObject    string                          `json:"sast_sink_object"`
	Active        *bool                           `json:"active"`
	FalsePositive bool                            `json:"false_p"`
	Duplicate     bool                            `json:"duplicate"`
	OutOfScope    bool                            `json:"out_of_scope"`
	RiskAccepted  bool                            `json:"risk_accepted"`
	Mitigated     bool                            `json:"is_mitigated"`
}

type dojoEndpoint struct {
	Protocol string           `json:"protocol"`
	Host     string           `json:"host"`
	Port     jsonstream.Texts `json:"port"`
	Path     string           `json:"path"`
}

func convertDojo(in *Input, w *Writer) error {
	var name, kind, version string
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"name": into(&name), "type": into(&kind), "version": into(&version)})
	})
	if err != nil {
		return err
	}
	w.Run(Tool{Name: cmp.Or(strings.TrimSpace(kind), strings.TrimSpace(name), "Generic Findings Import"), Version: version})
	return in.Walk(func(s *jsonstream.Stream) error {
		return report(s, w, members{"findings": items(w, func(f *dojoFinding) error {
			if f.Mitigated {
				return nil // the tool reports it as fixed
			}
			return w.Result(f.result())
		})}, "findings")
	})
}

func (f *dojoFinding) result() *Result {
	advisory := f.CVE
	if advisory == "" && len(f.IDs) > 0 {
		advisory = f.IDs[0]
	}
	r := &Result{
		Rule: Rule{
			ID: cmp.Or(f.VulnID, advisory, f.Title), Message: f.Title, Description: f.Description,
			Help: paragraphs(f.Mitigation, f.Impact, f.Justification, f.References), CWE: cweIDs(int(f.CWE)), Tags: f.Tags,
			References: []string{f.References},
		},
		Message: cmp.Or(f.Title, f.Description), Severity: f.Severity, Score: strings.Join(f.Score, ""), Path: f.Path, Line: int(f.Line),
		Suppressed: f.suppressed(),
	}
	if r.Score == "" {
		r.Score = strings.Join(f.Score4, "")
	}
	if f.UniqueID != "" {
		r.Fingerprints = map[string]string{"uniqueIdFromTool/v1": f.UniqueID}
	}
	if f.Component != "" {
		r.Product, r.Logical = ProductSCA, f.Component
		r.Package = &Package{Name: f.Component, Version: f.Version, Fixed: splitVersions(f.FixVersion), Advisory: advisory}
	}
	for n, raw := range f.Endpoints {
		if at := endpoint(raw); n == 0 && r.Logical == "" {
			r.Logical = at
		}
	}
	if f.SourcePath != "" {
		r.Flow = []Place{
			{Path: f.SourcePath, Line: int(f.SourceLine), Message: f.SourceObject}, {Path: f.Path, Line: int(f.Line), Message: f.SinkObject},
		}
	}
	return r
}

// suppressed is the decision of the one who made the report.
func (f *dojoFinding) suppressed() *Suppression {
	switch {
	case f.FalsePositive:
		return &Suppression{Reason: "false positive"}
	case f.RiskAccepted:
		return &Suppression{Reason: "risk accepted"}
	case f.OutOfScope:
		return &Suppression{Reason: "out of scope"}
	case f.Duplicate:
		return &Suppression{Reason: "duplicate of another finding"}
	case f.Active != nil && !*f.Active:
		return &Suppression{Reason: "not active"}
	}
	return nil
}

// endpoint is the URL of an endpoint without its query. It is a text or an object.
func endpoint(raw jsontext.Value) string {
	var text string
	if raw.Kind() == '"' && jsonstream.Unmarshal(raw, &text, nil) == nil {
		return withoutQuery(text)
	}
	var e dojoEndpoint
	if jsonstream.Unmarshal(raw, &e, nil) != nil || e.Host == "" {
		return ""
	}
	if port := strings.Join(e.Port, ""); port != "" {
		e.Host += ":" + port
	}
	return (&url.URL{Scheme: e.Protocol, Host: e.Host, Path: "/" + strings.TrimPrefix(e.Path, "/")}).String()
}
