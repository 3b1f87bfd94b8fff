package formats

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// The parts of a CycloneDX document, each decoded as a whole. XML has the same names, apart from its lists.

type cdxComponent struct {
	Ref     string `json:"bom-ref"`
	Type    string `json:"type"`
	Group   string `json:"group"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`

	licenses   jsonstream.List[cdxLicense]
	properties jsonstream.List[cdxProperty]
	evidence   cdxEvidence
}

type cdxLicense struct {
	Expression string `json:"expression"`
	License    struct {
		ID   string `json:"id" xml:"id"`
		Name string `json:"name" xml:"name"`
	} `json:"license"`
}

type cdxProperty struct {
	Name  string `json:"name" xml:"name,attr"`
	Value string `json:"value" xml:",chardata"`
}

type cdxEvidence struct {
	Occurrences jsonstream.List[struct {
		Location string `json:"location" xml:"location"`
	}] `json:"occurrences" xml:"occurrences>occurrence"`
}

type cdxTool struct {
	Name    string `json:"name" xml:"name"`
	Version string `json:"version" xml:"version"`
}

type cdxSource struct {
	Name string `json:"name" xml:"name"`
	URL  string `json:"url" xml:"url"`
}

type cdxRating struct {
	Source   cdxSource `json:"source" xml:"source"`
	Score    cdxText   `json:"score" xml:"score"`
	Severity string    `json:"severity" xml:"severity"`
	Method   string    `json:"method" xml:"method"`
}

// cdxText is a number or a text.
type cdxText string

// cdxVulnerability is a vulnerability without what it affects.
type cdxVulnerability struct {
	ID             string
	Source         cdxSource
	Description    string
	Detail         string
	Recommendation string
	Updated        string
	References     jsonstream.List[struct {
		ID string `json:"id" xml:"id"`
	}]
	Ratings    jsonstream.List[cdxRating]
	CWEs       jsonstream.List[cdxText]
	Advisories jsonstream.List[struct {
		URL string `json:"url" xml:"url"`
	}]
	Analysis *cdxAnalysis
	affects  []cdxAffected
}

type cdxAffected struct {
	Ref      string                      `json:"ref" xml:"ref"`
	Versions jsonstream.List[cdxVersion] `json:"versions" xml:"versions>version"`
}

type cdxVersion struct {
	Version string `json:"version" xml:"version"`
	Status  string `json:"status" xml:"status"`
}

type cdxAnalysis struct {
	State         string `json:"state" xml:"state"`
	Justification string `json:"justification" xml:"justification"`
	Detail        string `json:"detail" xml:"detail"`
	FirstIssued   string `json:"firstIssued" xml:"firstIssued"`
	LastUpdated   string `json:"lastUpdated" xml:"lastUpdated"`
}

// cdxHead is the beginning of a document and its metadata.
type cdxHead struct {
	serial, at string
	tools      jsonstream.List[cdxTool]
	authors    jsonstream.List[cdxSource]
	supplier   cdxSource
	root       cdxComponent
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (t *cdxText) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if kind := dec.PeekKind(); kind != '"' && kind != '0' {
		return dec.SkipValue()
	}
	token, err := dec.ReadToken()
	if err == nil {
		*t = cdxText(strings.Clone(token.String()))
	}
	return err
}
