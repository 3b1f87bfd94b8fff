package sarif

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// bag is a property bag (SARIF 3.8). It is free-form, so values of any type are accepted, and read as far as they make
// sense. Only known names are kept. Some tools use several names for one property, for example when they copy a rule's
// metadata.
type bag struct {
	SecuritySeverity loose `json:"security-severity"`
	Precision        loose `json:"precision"`
	Confidence       loose `json:"confidence"`
	IssueConfidence  loose `json:"issue_confidence"`

	Category             loose `json:"category"`
	Subcategory          loose `json:"subcategory"`
	Subcategories        loose `json:"subcategories"`
	VulnerabilityClass   loose `json:"vulnerability_class"`
	VulnerabilityClasses loose `json:"vulnerabilityClasses"`
	CWE                  loose `json:"cwe"`
	CWEs                 loose `json:"cwes"`
	OWASP                loose `json:"owasp"`
	Tags                 loose `json:"tags"`

	PURL             loose `json:"purl"`
	PURLs            loose `json:"purls"`
	PackageName      loose `json:"packageName"`
	PackageVersion   loose `json:"packageVersion"`
	InstalledVersion loose `json:"installedVersion"`
	FixedVersion     loose `json:"fixedVersion"`
	Ecosystem        loose `json:"ecosystem"`
	PackageManager   loose `json:"packageManager"`
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom]. Anything but an object is an empty bag.
func (b *bag) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	type plain bag
	return json.UnmarshalDecode(dec, (*plain)(b))
}

// loose is a string, a number as text, or a list of these.
type loose []string

// maxLoose bounds how many texts of one property are kept. A rule with 20 tags is already unusual.
const maxLoose = 200

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *loose) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = nil
	switch dec.PeekKind() {
	case '[':
		if _, err := dec.ReadToken(); err != nil {
			return err
		}
		for dec.PeekKind() != ']' {
			if err := l.scalar(dec); err != nil {
				return err
			}
		}
		_, err := dec.ReadToken()
		return err
	default:
		return l.scalar(dec)
	}
}

func (l *loose) scalar(dec *jsontext.Decoder) error {
	kind := dec.PeekKind()
	if (kind != '"' && kind != '0') || len(*l) >= maxLoose {
		return dec.SkipValue()
	}
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	text := strings.TrimSpace(clean(token.String()))
	if text != "" {
		*l = append(*l, strings.Clone(cut(text, 500)))
	}
	return nil
}

// first returns the first text of the first non-empty property.
func first(all ...loose) string {
	for _, l := range all {
		if len(l) > 0 {
			return l[0]
		}
	}
	return ""
}

// securitySeverity converts the CVSS-like score, which is a string by convention and a number with some tools. It
// returns "" if the score is absent, not a number, 0.0 or out of range.
func (b *bag) securitySeverity() string {
	score, err := strconv.ParseFloat(first(b.SecuritySeverity), 64)
	switch {
	case err != nil, !(score > 0), score > 10:
		return ""
	case score >= 9:
		return vocabulary.SeverityCritical
	case score >= 7:
		return vocabulary.SeverityHigh
	case score >= 4:
		return vocabulary.SeverityMedium
	}
	return vocabulary.SeverityLow
}
