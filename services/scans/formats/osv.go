package formats

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// osvVulnerability is a record in the OSV format.
type osvVulnerability struct {
	ID       string                          `json:"id"`
	Summary  string                          `json:"summary"`
	Details  string                          `json:"details"`
	Aliases  jsonstream.Texts                `json:"aliases"`
	Upstream jsonstream.Texts                `json:"upstream"`
	Severity jsonstream.List[jsontext.Value] `json:"severity"`
	Affected jsonstream.List[osvAffected]    `json:"affected"`
	Database struct {
		Severity string           `json:"severity"`
		CWE      jsonstream.Texts `json:"cwe_ids"`
	} `json:"database_specific"`
	References jsonstream.List[struct {
		URL string `json:"url"`
	}] `json:"references"`
	// Withdrawn is the time since when it is no vulnerability, or empty.
	Withdrawn string `json:"withdrawn"`
}

// pages are the references.
func (v *osvVulnerability) pages() (urls []string) {
	for _, reference := range v.References {
		urls = append(urls, reference.URL)
	}
	return urls
}

type osvAffected struct {
	Package struct {
		Name      string `json:"name"`
		Ecosystem string `json:"ecosystem"`
	} `json:"package"`
	Ranges jsonstream.List[struct {
		Type   string `json:"type"`
		Events jsonstream.List[struct {
			Fixed string `json:"fixed"`
		}] `json:"events"`
	}] `json:"ranges"`
}

// severity returns a word, and a CVSS vector. Some databases have a word instead of a list of vectors.
func (v *osvVulnerability) severity() (word, score string) {
	for _, value := range v.Severity {
		if value.Kind() == '"' {
			var text string
			if jsonstream.Unmarshal(value, &text, nil) == nil {
				return text, ""
			}
		}
		var s struct {
			Type  string `json:"type"`
			Score string `json:"score"`
		}
		if jsonstream.Unmarshal(value, &s, nil) == nil && strings.HasPrefix(s.Type, "CVSS") && s.Type > "CVSS_V2" {
			score = s.Score
		}
	}
	return v.Database.Severity, score
}

// fixed returns the versions of a package that have a fix. Packages of other ecosystems and of other releases of a
// distribution (Debian:11) have the same name.
func (v *osvVulnerability) fixed(name, ecosystem string) (versions []string) {
	for _, a := range v.Affected {
		own, of := a.Package.Ecosystem+":", ecosystem+":"
		if a.Package.Name != name || own != ":" && of != ":" && !strings.HasPrefix(own, of) && !strings.HasPrefix(of, own) {
			continue
		}
		for _, ranges := range a.Ranges {
			for _, event := range ranges.Events {
				if ranges.Type != "GIT" && event.Fixed != "" && len(versions) < maxVersions && !slices.Contains(versions, event.Fixed) {
					versions = append(versions, event.Fixed)
				}
			}
		}
	}
	return versions
}

// Vulnerability is a problem of a package, in the terms of the OSV format.
type Vulnerability struct {
	// ID is the record that describes it. IDs are all its identifiers, the best first; see [SortAdvisories].
	ID  string
	IDs []string
	// Upstream are identifiers of what it comes from.
	Upstream []string
	// Summary is one line, Details are Markdown.
	Summary, Details string
	// Severity is a word, Score a CVSS vector or base score. Both may be empty.
	Severity, Score string
	CWE, References []string
	// Fixed has the versions of the package without it.
	Fixed []string
}

// Result is the vulnerability of a package with rule and message of OSV-Scanner's SARIF report. It completes p.
func (v *Vulnerability) Result(p *Package) *Result {
	id, also := v.IDs[0], ""
	if len(v.IDs) > 1 {
		also = " (also known as '" + strings.Join(v.IDs[1:], "', '") + "')"
	}
	p.Fixed, p.Advisory = v.Fixed, cveOf(id, append(slices.Clone(v.IDs), v.Upstream...))
	return &Result{
		Rule: Rule{
			ID: id, Name: id, Message: strings.TrimSuffix(id+": "+v.Summary, ": "), Description: cmp.Or(v.Details, v.Summary),
			HelpURI: optionalText("https://osv.dev/", v.ID, ""), CWE: v.CWE, References: v.References,
		},
		Message:  fmt.Sprintf("Package '%s' is vulnerable to '%s'%s.", strings.TrimSuffix(p.Name+"@"+p.Version, "@"), id, also),
		Severity: v.Severity, Score: v.Score, Logical: p.Name, Package: p,
	}
}

// SortAdvisories sorts identifiers of advisories as OSV-Scanner does to choose the one that it shows, and removes those
// that occur twice.
func SortAdvisories(ids []string) []string {
	slices.SortFunc(ids, compareOSV)
	return slices.Compact(ids)
}

// compareOSV orders ids as OSV-Scanner does to choose the one that it shows: an advisory of Debian, a CVE, an id of the
// ecosystem, GHSA.
func compareOSV(a, b string) int {
	return cmp.Or(cmp.Compare(rankOSV(a), rankOSV(b)), strings.Compare(a, b))
}

func rankOSV(id string) int {
	prefix, _, _ := strings.Cut(id, "-")
	rank, known := map[string]int{"DSA": 0, "CVE": 1, "GHSA": 3}[prefix]
	if !known {
		return 2
	}
	return rank
}
