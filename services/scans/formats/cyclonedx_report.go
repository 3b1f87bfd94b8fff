package formats

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// report writes the findings of a vulnerability, one for each component, and the decision about them.
func (r *cdxReader) report(v *cdxVulnerability, at string) error {
	if v.ID == "" && v.Description == "" {
		r.w.Unreadable(at, "has neither an id nor a description")
		return nil
	}
	if len(v.affects) == 0 {
		v.affects = []cdxAffected{{}}
	}
	for i := range v.affects {
		affected := &v.affects[i]
		p := r.bom.find(affected.Ref)
		if !r.onlyDecisions() {
			if err := r.w.Result(r.result(v, affected, p)); err != nil {
				return err
			}
		}
		if err := r.decide(v, affected, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *cdxReader) result(v *cdxVulnerability, affected *cdxAffected, p *part) *Result {
	title := firstLine(cmp.Or(v.Description, v.Detail, v.ID))
	out := &Result{
		Rule: Rule{
			ID: v.ID, Message: title, Description: strings.TrimSpace(v.Description + "\n\n" + v.Detail), Help: v.Recommendation,
			HelpURI: v.link(), Tags: []string{"vulnerability"},
		},
		Message: title,
	}
	for _, a := range v.Advisories {
		out.Rule.References = append(out.Rule.References, a.URL)
	}
	for _, cwe := range v.CWEs {
		out.Rule.CWE = append(out.Rule.CWE, string(cwe))
	}
	out.Severity, out.Score = v.severity()
	if p == nil {
		out.Logical, out.Package = affected.Ref, &Package{Advisory: v.advisory(), Fixed: v.fixed("", affected)}
		if affected.Ref != "" {
			out.Fingerprints = map[string]string{"affects/v1": affected.Ref}
		}
		return out
	}
	out.Message = fmt.Sprintf("%s %s: %s", p.name, p.version, title)
	out.Path, out.Logical = p.file(), p.name
	out.Package = &Package{
		Name: p.name, Version: p.version, Ecosystem: p.ecosystem, PURL: p.purl, Advisory: v.advisory(), Fixed: v.fixed(p.name, affected),
	}
	return out
}

func (v *cdxVulnerability) link() string {
	if v.Source.URL != "" {
		return v.Source.URL
	}
	for _, a := range v.Advisories {
		if a.URL != "" {
			return a.URL
		}
	}
	return ""
}

// advisory is the CVE among the names of the vulnerability, if its id is none.
func (v *cdxVulnerability) advisory() string {
	for _, name := range v.names() {
		if strings.HasPrefix(strings.ToUpper(name), "CVE-") {
			return name
		}
	}
	return v.ID
}

func (v *cdxVulnerability) names() []string {
	names := withText(nil, v.ID)
	for _, reference := range v.References {
		names = withText(names, reference.ID)
	}
	return names
}

// methods orders the methods of ratings. Others, such as OWASP or SSVC, have scores of another scale.
var methods = map[string]int{"CVSSV4": 5, "CVSSV31": 4, "CVSSV3": 3, "": 2, "CVSSV2": 1}

// severity takes the rating of the vulnerability's own source first, then the newest method, then the first rating.
func (v *cdxVulnerability) severity() (word, score string) {
	best := -1
	for _, rating := range v.Ratings {
		rank, isCVSS := methods[strings.ToUpper(rating.Method)]
		if v.Source.Name != "" && strings.EqualFold(rating.Source.Name, v.Source.Name) {
			rank += len(methods) + 1
		}
		says, points := rating.Severity, string(rating.Score)
		if says == "unknown" {
			says = ""
		}
		if !isCVSS {
			points = ""
		}
		if says+points != "" && rank > best {
			best, word, score = rank, says, points
		}
	}
	return word, score
}

// upgrade is how Trivy writes a fix: "Upgrade lodash to version 4.17.21, 5.0.0".
var upgrade = regexp.MustCompile(`(?i)upgrade (\S+) to version ([^;\n]+)`)

// fixed are the versions without the vulnerability.
func (v *cdxVulnerability) fixed(name string, affected *cdxAffected) (versions []string) {
	for _, version := range affected.Versions {
		if version.Status == "unaffected" && version.Version != "" {
			versions = withText(versions, version.Version)
		}
	}
	if len(versions) > 0 {
		return versions
	}
	for _, m := range upgrade.FindAllStringSubmatch(v.Recommendation, 20) {
		if name == m[1] || strings.HasSuffix(name, "/"+m[1]) || strings.HasSuffix(name, ":"+m[1]) {
			return splitVersions(m[2])
		}
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return jsonstream.Cut(strings.TrimSpace(line), 500)
}

// decide writes the decision of an analysis.
func (r *cdxReader) decide(v *cdxVulnerability, affected *cdxAffected, p *part) error {
	if v.Analysis == nil {
		return nil
	}
	status := vexStatus(v.Analysis.State)
	if status == "" || len(v.names()) == 0 {
		return nil
	}
	at := timeOf(v.Analysis.LastUpdated, v.Analysis.FirstIssued, v.Updated)
	if at.IsZero() {
		at = r.doc.at
	}
	url := affected.Ref
	if p != nil {
		url = p.url()
	}
	return r.w.Decision(Decision{
		Vulnerabilities: v.names(), PURL: url, Status: status, Justification: v.Analysis.Justification, Detail: v.Analysis.Detail,
		Author: r.doc.author, Document: r.doc.id, At: at,
	})
}
