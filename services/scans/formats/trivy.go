package formats

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

// trivyJSON is the report of `trivy --format json`: schema version 2, the bare list of targets before it, and the
// report of `trivy k8s`.
var trivyJSON = Format{Name: "trivy-json", Title: "Trivy JSON", Convert: convertTrivy, Recognises: func(o *Outline) bool {
	return o.Has("SchemaVersion") && (o.Has("ArtifactName") || o.Has("ArtifactType") || o.Has("Results[].Target")) ||
		o.Has("ClusterName") && (o.Has("Resources") || o.Has("Findings")) ||
		o.Has("[].Target") && (o.Has("[].Vulnerabilities") || o.Has("[].Misconfigurations") || o.Has("[].Secrets"))
}}

// trivyTarget is the head of an element of Results. Resource is the object of a cluster that it belongs to.
type trivyTarget struct{ Target, Class, Type, Resource string }

type trivyVulnerability struct {
	VulnerabilityID  string
	PkgName          string
	PkgPath          string
	PkgIdentifier    struct{ PURL string }
	InstalledVersion string
	FixedVersion     string
	Severity         string
	Title            string
	Description      string
	PrimaryURL       string
	Status           string
	CweIDs           jsonstream.List[string]
	References       jsonstream.List[string]
}

type trivyMisconfiguration struct {
	ID, AVDID, Title, Description, Message, Resolution, Severity, PrimaryURL, Status string
	References                                                                       jsonstream.List[string]
	CauseMetadata                                                                    struct {
		Resource           string
		StartLine, EndLine jsonstream.Integer
		Code               struct {
			Lines jsonstream.List[struct{ Content string }]
		}
	}
}

type trivySecret struct {
	RuleID, Category, Severity, Title, Match string
	StartLine, EndLine                       jsonstream.Integer
}

type trivyLicense struct {
	Severity, Category, PkgName, FilePath, Name, Link string
}

// trivyModified is a problem that a VEX document or an ignore file takes out of the report.
type trivyModified struct {
	Type, Status, Statement, Source string
	Finding                         jsontext.Value
}

// trivyReport converts one document.
type trivyReport struct {
	in *Input
	w  *Writer
	// targets are the heads of all elements of Results in file order, because a head may follow its problems. read is how
	// many of them the second walk has reached.
	targets []trivyTarget
	read    int
	// suppressed is the decision about the problem that is read, or nil.
	suppressed *Suppression
	failed     []string // resources of a cluster
}

func convertTrivy(in *Input, w *Writer) error {
	r := &trivyReport{in: in, w: w}
	var artifact, kind, cluster, created string
	var version struct{ Version string }
	var image struct{ RepoTags, RepoDigests jsonstream.Texts }
	err := in.Walk(func(s *jsonstream.Stream) error {
		if s.Kind() == '[' {
			return r.heads(s)
		}
		return object(s, members{
			"ArtifactName": into(&artifact), "ArtifactType": into(&kind), "Metadata": into(&image), "ClusterName": into(&cluster), "Trivy": into(&version),
			"CreatedAt": into(&created), "Results": r.heads, "Resources": r.resources, "Findings": r.resources,
		})
	})
	if err != nil {
		return err
	}
	tool := Tool{Name: "Trivy", Version: version.Version, RanAt: created}
	switch {
	case kind == "container_image":
		tool.Category = sarif.ImageName(sarif.ImageReference(artifact, image.RepoTags, image.RepoDigests))
	case cluster != "":
		tool.Category = "cluster:" + cluster
	}
	w.Run(tool)
	for _, resource := range r.failed {
		w.Fail("Trivy could not scan " + resource)
	}
	results := list(w, func(s *jsonstream.Stream, _ int) error { return r.target(s) })
	resources := list(w, func(s *jsonstream.Stream, _ int) error { return fields(s, w, members{"Results": results}) })
	return in.Walk(func(s *jsonstream.Stream) error {
		if s.Kind() == '[' {
			return results(s)
		}
		return object(s, members{"Results": results, "Resources": resources, "Findings": resources})
	})
}

// heads reads the heads of Results.
func (r *trivyReport) heads(s *jsonstream.Stream) error {
	_, err := s.ArrayOf(func(int) error {
		var t trivyTarget
		err := object(s, members{"Target": into(&t.Target), "Class": into(&t.Class), "Type": into(&t.Type)})
		r.targets = append(r.targets, t)
		return errors.Join(err, r.in.keep(len(t.Target)+len(t.Class)+len(t.Type)))
	})
	return err
}

// resources reads the heads of the objects of a cluster.
func (r *trivyReport) resources(s *jsonstream.Stream) error {
	_, err := s.ArrayOf(func(int) error {
		first := len(r.targets)
		var namespace, kind, name, failure string
		err := object(s, members{
			"Namespace": into(&namespace), "Kind": into(&kind), "Name": into(&name), "Error": into(&failure), "Results": r.heads,
		})
		resource := strings.TrimPrefix(path.Join(namespace, kind, name), "/")
		for i := first; i < len(r.targets); i++ {
			r.targets[i].Resource = resource
		}
		if failure != "" && len(r.failed) < maxNotes {
			r.failed = append(r.failed, resource)
		}
		return errors.Join(err, r.in.keep(len(resource)))
	})
	return err
}

// target reads the problems of an element of Results.
func (r *trivyReport) target(s *jsonstream.Stream) error {
	t := &r.targets[r.read]
	r.read++
	return fields(s, r.w, members{
		"Vulnerabilities":              items(r.w, func(v *trivyVulnerability) error { return r.vulnerability(t, v) }),
		"Misconfigurations":            items(r.w, func(m *trivyMisconfiguration) error { return r.misconfiguration(t, m) }),
		"Secrets":                      items(r.w, func(s *trivySecret) error { return r.secret(t, s) }),
		"Licenses":                     items(r.w, func(l *trivyLicense) error { return r.license(t, l) }),
		"ExperimentalModifiedFindings": items(r.w, func(m *trivyModified) error { return r.modified(t, m) }),
	})
}

// modified reads a problem with the decision to ignore it.
func (r *trivyReport) modified(t *trivyTarget, m *trivyModified) error {
	r.suppressed = &Suppression{Reason: strings.TrimSpace(m.Status + " " + m.Statement + optionalText(" (", m.Source, ")"))}
	defer func() { r.suppressed = nil }()
	switch m.Type {
	case "vulnerability":
		return decoded(r.w, m.Finding, func(v *trivyVulnerability) error { return r.vulnerability(t, v) })
	case "misconfiguration":
		return decoded(r.w, m.Finding, func(m *trivyMisconfiguration) error { return r.misconfiguration(t, m) })
	case "secret":
		return decoded(r.w, m.Finding, func(s *trivySecret) error { return r.secret(t, s) })
	case "license":
		return decoded(r.w, m.Finding, func(l *trivyLicense) error { return r.license(t, l) })
	}
	return nil
}

// result writes a problem of a target.
func (r *trivyReport) result(t *trivyTarget, out *Result) error {
	if t.Resource != "" {
		out.Logical = strings.TrimSuffix(t.Resource+"/"+out.Logical, "/")
		out.Path = "" // the target is the object of the cluster, or one of its images
	}
	out.Suppressed = r.suppressed
	return r.w.Result(out)
}

func (r *trivyReport) vulnerability(t *trivyTarget, v *trivyVulnerability) error {
	if v.PkgName == "" {
		r.w.Unreadable(r.w.at, "names no package")
		return nil
	}
	where := cmp.Or(v.PkgPath, t.Target)
	if t.Class == "os-pkgs" {
		where = "" // the target is the name of an image and of its system
	}
	message := fmt.Sprintf("%s %s: %s", v.PkgName, v.InstalledVersion, cmp.Or(v.Title, v.VulnerabilityID))
	switch v.Status {
	case "will_not_fix", "fix_deferred", "end_of_life":
		message += " (" + strings.ReplaceAll(v.Status, "_", " ") + ")"
	}
	return r.result(t, &Result{
		Rule: Rule{
			ID: v.VulnerabilityID, Message: v.Title, Description: v.Description, HelpURI: v.PrimaryURL, CWE: v.CweIDs,
			Tags: []string{"vulnerability"}, References: v.References,
		},
		Message: message, Severity: v.Severity, Path: where, Logical: v.PkgName,
		Package: &Package{
			Name: v.PkgName, Version: v.InstalledVersion, Fixed: splitVersions(v.FixedVersion), Ecosystem: t.Type, PURL: v.PkgIdentifier.PURL,
		},
	})
}

func (r *trivyReport) misconfiguration(t *trivyTarget, m *trivyMisconfiguration) error {
	if strings.EqualFold(m.Status, "PASS") {
		return nil
	}
	var code []string
	for _, line := range m.CauseMetadata.Code.Lines {
		code = append(code, line.Content)
	}
	return r.result(t, &Result{
		Rule: Rule{
			ID: cmp.Or(m.ID, m.AVDID), Name: m.Title, Message: m.Title, Description: m.Description, Help: m.Resolution, HelpURI: m.PrimaryURL,
			Tags: []string{"misconfiguration"}, References: m.References,
		},
		Message: cmp.Or(m.Message, m.Description), Severity: m.Severity, Path: t.Target, Logical: m.CauseMetadata.Resource,
		LogicalKind: kindResource,
		Line:        int(m.CauseMetadata.StartLine), EndLine: int(m.CauseMetadata.EndLine), Snippet: strings.Join(code, "\n"),
	})
}

func (r *trivyReport) secret(t *trivyTarget, s *trivySecret) error {
	return r.result(t, &Result{
		Rule:    Rule{ID: s.RuleID, Name: s.Title, Message: s.Title, Tags: []string{"secret", s.Category}},
		Message: s.Title, Severity: s.Severity, Path: t.Target, Line: int(s.StartLine), EndLine: int(s.EndLine), Snippet: s.Match,
	})
}

// license reports a license that the user's own configuration forbids or restricts.
func (r *trivyReport) license(t *trivyTarget, l *trivyLicense) error {
	return r.result(t, &Result{
		Rule: Rule{
			ID: l.PkgName + ":" + l.Name, Message: l.Category + " license " + l.Name, HelpURI: l.Link, Tags: []string{"license"},
		},
		Message: fmt.Sprintf("%s license %s: %s", l.Category, l.Name, cmp.Or(l.PkgName, l.FilePath)), Severity: l.Severity,
		Path: cmp.Or(l.FilePath, t.Target), Logical: l.PkgName, Product: ProductSCA, Package: &Package{Name: l.PkgName, Ecosystem: t.Type},
	})
}

// splitVersions splits "1.2.3, 2.0.1".
func splitVersions(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == ';' })
}
