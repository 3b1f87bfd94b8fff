package formats

import (
	"cmp"
	"path"
	"regexp"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

// gitlabReport is a security report of GitLab, versions 14 and 15, and the ones before.
var gitlabReport = Format{Name: "gitlab-security", Title: "GitLab security report", Convert: convertGitLab, Recognises: func(o *Outline) bool {
	return o.Has("vulnerabilities") && (o.Has("scan.type") || o.Has("scan.scanner") || o.Has("vulnerabilities[].identifiers"))
}}

type gitlabScan struct {
	Type     string        `json:"type"`
	Status   string        `json:"status"`
	Scanner  gitlabScanner `json:"scanner"`
	Start    string        `json:"start_time"`
	End      string        `json:"end_time"`
	Messages jsonstream.List[struct {
		Level string `json:"level"`
		Value string `json:"value"`
	}] `json:"messages"`
	Partial *struct {
		Mode string `json:"mode"`
	} `json:"partial_scan"`
}

type gitlabScanner struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

type gitlabVulnerability struct {
	Category    string                            `json:"category"`
	Name        string                            `json:"name"`
	Message     string                            `json:"message"`
	Description string                            `json:"description"`
	CVE         string                            `json:"cve"`
	Severity    string                            `json:"severity"`
	Confidence  string                            `json:"confidence"`
	Solution    string                            `json:"solution"`
	Extract     string                            `json:"raw_source_code_extract"`
	Scanner     gitlabScanner                     `json:"scanner"`
	Identifiers jsonstream.List[gitlabIdentifier] `json:"identifiers"`
	Location    gitlabLocation                    `json:"location"`
	Links       jsonstream.List[struct {
		URL string `json:"url"`
	}] `json:"links"`
	Flags jsonstream.List[struct {
		Type        string `json:"type"`
		Origin      string `json:"origin"`
		Description string `json:"description"`
	}] `json:"flags"`
	CVSS jsonstream.List[struct {
		Vector string `json:"vector"`
	}] `json:"cvss_vectors"`
	Tracking struct {
		Items jsonstream.List[struct {
			Signatures jsonstream.List[struct {
				Algorithm string `json:"algorithm"`
				Value     string `json:"value"`
			}] `json:"signatures"`
		}] `json:"items"`
	} `json:"tracking"`
}

type gitlabIdentifier struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Value string `json:"value"`
	URL   string `json:"url"`
}

// gitlabLocation has the members of all kinds of reports.
type gitlabLocation struct {
	File       string             `json:"file"`
	Start      jsonstream.Integer `json:"start_line"`
	End        jsonstream.Integer `json:"end_line"`
	Class      string             `json:"class"`
	Method     string             `json:"method"`
	Image      string             `json:"image"`
	Dependency struct {
		Package struct {
			Name string `json:"name"`
		} `json:"package"`
		Version string `json:"version"`
	} `json:"dependency"`
	Commit struct {
		SHA string `json:"sha"`
	} `json:"commit"`
	Hostname   string `json:"hostname"`
	Host       string `json:"host"`
	Path       string `json:"path"`
	Param      string `json:"param"`
	CrashType  string `json:"crash_type"`
	Kubernetes struct {
		Namespace string `json:"namespace"`
		Kind      string `json:"kind"`
		Name      string `json:"name"`
	} `json:"kubernetes_resource"`
}

var gitlabProducts = map[string]string{
	"dependency_scanning": ProductSCA, "container_scanning": ProductSCA, "cluster_image_scanning": ProductSCA, "secret_detection": ProductSecrets,
}

// gitlabTools has the names of tools in their own reports, by the id in reports of GitLab, where they differ.
var gitlabTools = map[string]string{"zaproxy": "ZAP"}

func convertGitLab(in *Input, w *Writer) error {
	var scan gitlabScan
	var first gitlabVulnerability
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"scan": into(&scan), "vulnerabilities": func(s *jsonstream.Stream) error {
			_, err := s.ArrayOf(func(i int) error {
				if i == 0 {
					return into(&first)(s)
				}
				return s.Skip()
			})
			return err
		}})
	})
	if err != nil {
		return err
	}
	kind := cmp.Or(scan.Type, first.Category)
	scanner := scan.Scanner
	if scanner.Name == "" && scanner.ID == "" {
		scanner = first.Scanner // before version 14
	}
	tool := Tool{
		Name:    cmp.Or(gitlabTools[scanner.ID], scanner.Name, scanner.ID, "GitLab "+strings.ReplaceAll(cmp.Or(kind, "scanner"), "_", " ")),
		Version: scanner.Version, Product: cmp.Or(gitlabProducts[kind], ProductSAST), RanAt: cmp.Or(scan.End, scan.Start),
	}
	if image := first.Location.Image; image != "" {
		tool.Category = sarif.ImageName(image)
	}
	w.Run(tool)
	scan.report(w, tool.Category)
	return in.Walk(func(s *jsonstream.Stream) error {
		return report(s, w, members{"vulnerabilities": items(w, func(v *gitlabVulnerability) error {
			return w.Result(v.result(tool.Product))
		})}, "vulnerabilities")
	})
}

// report says whether the scan is complete.
func (scan *gitlabScan) report(w *Writer, category string) {
	for _, m := range scan.Messages {
		if m.Level != "info" {
			w.Warn("message of the scanner (%s): %s", m.Level, jsonstream.Cut(jsonstream.OneLine(m.Value), 200))
		}
		if m.Level == "fatal" {
			w.Fail("the scanner reports a fatal problem")
		}
	}
	if scan.Status != "" && scan.Status != "success" {
		w.Fail("the status of the scan is not success")
	}
	if scan.Partial != nil {
		w.Fail("the scan is partial" + optionalText(" (", jsonstream.Cut(scan.Partial.Mode, 50), ")"))
	}
	if category == "" && (scan.Type == "container_scanning" || scan.Type == "cluster_image_scanning") {
		w.Warn("the report names its image only in vulnerabilities, and has none: set the category to close findings of the image")
	}
}

func (v *gitlabVulnerability) result(product string) *Result {
	at := &v.Location
	out := &Result{
		Rule: Rule{
			ID: v.rule(product), Name: v.Name, Message: cmp.Or(v.Name, v.Message), Description: v.Description, Help: v.Solution,
		},
		Message: cmp.Or(v.Message, v.Name, v.Description), Severity: v.Severity, Confidence: v.Confidence, Snippet: v.Extract,
		Path: at.File, Line: int(at.Start), EndLine: int(at.End), Logical: at.logical(),
	}
	for _, id := range v.Identifiers {
		switch strings.ToLower(id.Type) {
		case "cwe":
			out.Rule.CWE = append(out.Rule.CWE, cmp.Or(id.Value, id.Name))
		case "owasp":
			out.Rule.OWASP = append(out.Rule.OWASP, cmp.Or(id.Name, id.Value))
		}
		out.Rule.References = append(out.Rule.References, id.URL)
	}
	for _, link := range v.Links {
		out.Rule.References = append(out.Rule.References, link.URL)
	}
	for _, page := range out.Rule.References {
		out.Rule.HelpURI = cmp.Or(out.Rule.HelpURI, page)
	}
	for _, c := range v.CVSS {
		out.Score = cmp.Or(out.Score, c.Vector)
	}
	switch product {
	case ProductSecrets:
		if strings.Trim(at.Commit.SHA, "0") != "" {
			out.HistoricalCommit = at.Commit.SHA
		}
	case ProductSCA:
		out.Package = v.dependency()
		out.Message = strings.TrimSpace(out.Package.Name+" "+out.Package.Version) + optionalText(": ", out.Message, "")
	default:
		out.Fingerprints = v.fingerprints()
	}
	for _, flag := range v.Flags {
		if flag.Type == "flagged-as-likely-false-positive" {
			out.Confidence = "low" // a guess of an analyzer: GitLab shows it, and keeps the finding open
			out.Message += "\n\nLikely a false positive" + optionalText(", says ", flag.Origin, "") + optionalText(": ", flag.Description, "")
		}
	}
	return out
}

// identifier returns the first identifier of a type, or nil.
func (v *gitlabVulnerability) identifier(kind string) *gitlabIdentifier {
	for i := range v.Identifiers {
		if strings.EqualFold(v.Identifiers[i].Type, kind) {
			return &v.Identifiers[i]
		}
	}
	return nil
}

// rule is the CVE or advisory of a dependency, or else the primary identifier, which is the rule of the scanner. A
// scanner without rules has only a CWE.
func (v *gitlabVulnerability) rule(product string) string {
	if product == ProductSCA {
		if id := cmp.Or(v.identifier("cve"), v.identifier("ghsa")); id != nil {
			return cmp.Or(id.Value, id.Name)
		}
	}
	for _, id := range v.Identifiers {
		if kind := strings.ToLower(id.Type); kind != "cwe" && kind != "owasp" {
			return cmp.Or(id.Value, id.Name)
		}
	}
	if len(v.Identifiers) > 0 {
		return cmp.Or(v.Identifiers[0].Name, v.Identifiers[0].Value)
	}
	return v.Name
}

// upgradeTo is how the scanners of GitLab write the fixed version into the solution.
var upgradeTo = regexp.MustCompile(`(?i)\bupgrade (?:\S+ )?(?:from \S+ )?to (?:versions? )?v?(\d\S*)`)

func (v *gitlabVulnerability) dependency() *Package {
	d := &v.Location.Dependency
	p := &Package{Name: d.Package.Name, Version: d.Version}
	if id := v.identifier("cve"); id != nil {
		p.Advisory = cmp.Or(id.Value, id.Name)
	}
	if m := upgradeTo.FindStringSubmatch(v.Solution); m != nil {
		p.Fixed = []string{strings.Trim(m[1], ",.;")}
	}
	return p
}

// fingerprints are the signatures that do not change when lines move, and the former field of that kind. Others have
// the line or a plain hash of the code.
func (v *gitlabVulnerability) fingerprints() map[string]string {
	all := map[string]string{}
	for _, item := range v.Tracking.Items {
		for _, s := range item.Signatures {
			if s.Algorithm == "scope_offset_compressed" || s.Algorithm == "scope_offset" && all["gitlab/v2"] == "" {
				all["gitlab/v2"] = s.Value
			}
		}
	}
	if len(all) == 0 && v.CVE != "" {
		all["gitlab/v1"] = v.CVE
	}
	return all
}

// logical is the place if it is not a file, or adds to the file.
func (l *gitlabLocation) logical() string {
	switch host := cmp.Or(l.Hostname, l.Host); {
	case host != "":
		return strings.TrimSpace(l.Method + " " + strings.TrimSuffix(host, "/") + l.Path + optionalText(" ", l.Param, ""))
	case l.Kubernetes.Name != "":
		return path.Join(l.Kubernetes.Namespace, l.Kubernetes.Kind, l.Kubernetes.Name)
	case l.Dependency.Package.Name != "":
		return l.Dependency.Package.Name
	case l.Class != "" || l.Method != "":
		return strings.Trim(l.Class+"."+l.Method, ".")
	}
	return l.CrashType
}
