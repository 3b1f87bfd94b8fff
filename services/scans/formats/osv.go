package formats

import (
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
