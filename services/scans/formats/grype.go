package formats

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

// grypeJSON is the report of `grype --output json`.
var grypeJSON = Format{Name: "grype-json", Title: "Grype JSON", Convert: convertGrype, Recognises: func(o *Outline) bool {
	return o.Has("matches[].vulnerability") || o.Has("matches") && (o.Has("descriptor") || o.Has("source") || o.Has("distro"))
}}

type grypeVulnerability struct {
	ID          string           `json:"id"`
	Source      string           `json:"dataSource"`
	Severity    string           `json:"severity"`
	Description string           `json:"description"`
	URLs        jsonstream.Texts `json:"urls"`
	CWEs        jsonstream.List[struct {
		CWE string `json:"cwe"`
	}] `json:"cwes"`
	Fix struct {
		Versions jsonstream.Texts `json:"versions"`
	} `json:"fix"`
}

type grypeMatch struct {
	Vulnerability grypeVulnerability                  `json:"vulnerability"`
	Related       jsonstream.List[grypeVulnerability] `json:"relatedVulnerabilities"`
	Artifact      struct {
		Name      string `json:"name"`
		Version   string `json:"version"`
		Type      string `json:"type"`
		PURL      string `json:"purl"`
		Locations jsonstream.List[struct {
			Path string `json:"path"`
		}] `json:"locations"`
	} `json:"artifact"`
	IgnoreRules jsonstream.List[struct {
		Vulnerability string `json:"vulnerability"`
		Reason        string `json:"reason"`
		Namespace     string `json:"namespace"`
		FixState      string `json:"fix-state"`
	}] `json:"appliedIgnoreRules"`
}

func convertGrype(in *Input, w *Writer) error {
	tool := Tool{Name: "Grype", Product: ProductSCA}
	var source struct {
		Type   string         `json:"type"`
		Target jsontext.Value `json:"target"`
	}
	// These follow the matches.
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{
			"source": into(&source),
			"descriptor": func(s *jsonstream.Stream) error {
				return object(s, members{"version": into(&tool.Version), "timestamp": into(&tool.RanAt)})
			},
		})
	})
	if err != nil {
		return err
	}
	image := ""
	if source.Type == "image" {
		var target struct {
			Input   string           `json:"userInput"`
			Tags    jsonstream.Texts `json:"tags"`
			Digests jsonstream.Texts `json:"repoDigests"`
		}
		if jsonstream.Unmarshal(source.Target, &target, nil) == nil {
			image = target.Input
			tool.Category = sarif.ImageName(sarif.ImageReference(sarif.GrypeImage(image), target.Tags, target.Digests))
		}
	}
	w.Run(tool)
	return in.Walk(func(s *jsonstream.Stream) error {
		return report(s, w, members{
			"matches": items(w, func(m *grypeMatch) error { return grypeResult(w, m, image, nil) }),
			"ignoredMatches": items(w, func(m *grypeMatch) error {
				reason := "ignored by the configuration of Grype"
				for _, rule := range m.IgnoreRules {
					if text := cmp.Or(rule.Reason, rule.FixState, rule.Namespace, rule.Vulnerability); text != "" {
						reason = text
						break
					}
				}
				return grypeResult(w, m, image, &Suppression{Reason: reason})
			}),
		}, "matches")
	})
}

// grypeResult writes a match. Rule and message are the ones of Grype's SARIF report.
func grypeResult(w *Writer, m *grypeMatch, image string, suppressed *Suppression) error {
	v, a := &m.Vulnerability, &m.Artifact
	if v.ID == "" || a.Name == "" {
		w.Unreadable(w.at, "names no vulnerability or no package")
		return nil
	}
	aliases, description := []string{}, v.Description
	var cwes, pages []string
	for _, of := range append([]grypeVulnerability{*v}, m.Related...) {
		aliases, description = append(aliases, of.ID), cmp.Or(description, of.Description)
		pages = append(pages, of.URLs...)
		for _, c := range of.CWEs {
			cwes = append(cwes, c.CWE)
		}
	}
	found := ""
	if len(a.Locations) > 0 {
		found = a.Locations[0].Path
	}
	at := "at: " + found
	if image != "" {
		at = "in image " + image + " " + at
	}
	return w.Result(&Result{
		Rule: Rule{
			ID: v.ID + "-" + a.Name, Name: v.ID,
			Message:     fmt.Sprintf("%s %s vulnerability for %s package", v.ID, strings.ToLower(v.Severity), a.Name),
			Description: description, HelpURI: v.Source, CWE: cwes, References: pages,
		},
		Message: fmt.Sprintf("A %s vulnerability in %s package: %s, version %s was found %s",
			strings.ToLower(v.Severity), a.Type, a.Name, a.Version, at),
		Severity: v.Severity, Path: found, Logical: a.Name, Suppressed: suppressed,
		Package: &Package{
			Name: a.Name, Version: a.Version, Fixed: v.Fix.Versions, Ecosystem: a.Type, PURL: a.PURL, Advisory: cveOf(v.ID, aliases),
		},
	})
}
