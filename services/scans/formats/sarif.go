package formats

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// The types of the SARIF document that a Writer writes. Package sarif reads the properties by these names.

type sarifID struct {
	ID string `json:"id,omitzero"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitzero"`
	Rules   []sarifRule `json:"rules"`
}

type sarifText struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitzero"`
}

type sarifRule struct {
	ID               string         `json:"id"`
	Name             string         `json:"name,omitzero"`
	ShortDescription *sarifText     `json:"shortDescription,omitzero"`
	FullDescription  *sarifText     `json:"fullDescription,omitzero"`
	Help             *sarifText     `json:"help,omitzero"`
	HelpURI          string         `json:"helpUri,omitzero"`
	Properties       ruleProperties `json:"properties,omitzero"`
}

type ruleProperties struct {
	Tags       []string `json:"tags,omitempty"`
	CWE        []string `json:"cwe,omitempty"`
	OWASP      []string `json:"owasp,omitempty"`
	References []string `json:"references,omitempty"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	Directory     *sarifArtifact      `json:"workingDirectory,omitzero"`
	Ended         string              `json:"endTimeUtc,omitempty"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations,omitempty"`
	Rule      *sarifID        `json:"associatedRule,omitzero"`
}

// sarifScanned is a file that the tool analysed.
type sarifScanned struct {
	Location sarifArtifact `json:"location"`
	Roles    []string      `json:"roles"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifResult struct {
	RuleID       string             `json:"ruleId"`
	Level        string             `json:"level,omitzero"`
	Message      sarifText          `json:"message"`
	Locations    []sarifLocation    `json:"locations,omitempty"`
	Related      []sarifLocation    `json:"relatedLocations,omitempty"`
	CodeFlows    []sarifCodeFlow    `json:"codeFlows,omitempty"`
	Fingerprints map[string]string  `json:"fingerprints,omitempty"`
	Partial      map[string]string  `json:"partialFingerprints,omitempty"`
	Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	Properties   resultProperties   `json:"properties,omitzero"`
}

type resultProperties struct {
	Score          string   `json:"security-severity,omitzero"`
	Severity       string   `json:"severity,omitzero"`
	Confidence     string   `json:"confidence,omitzero"`
	Product        string   `json:"product,omitzero"`
	PackageName    string   `json:"packageName,omitzero"`
	PackageVersion string   `json:"packageVersion,omitzero"`
	FixedVersion   []string `json:"fixedVersion,omitempty"`
	Ecosystem      string   `json:"ecosystem,omitzero"`
	PURL           string   `json:"purl,omitzero"`
	Advisory       string   `json:"advisory,omitzero"`
	Transitivity   string   `json:"transitivity,omitzero"`
	Reachability   string   `json:"reachability,omitzero"`
	ReachableIf    string   `json:"reachableCondition,omitzero"`
	Malicious      bool     `json:"malicious,omitzero"`
	Lockfile       string   `json:"lockfile,omitzero"`
	LockfileLine   int      `json:"lockfileLine,omitzero"`
	Manifest       string   `json:"manifest,omitzero"`
}

type sarifLocation struct {
	Physical *sarifPhysical `json:"physicalLocation,omitzero"`
	Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	Message  *sarifText     `json:"message,omitzero"`
}

type sarifLogical struct {
	Name string `json:"fullyQualifiedName"`
	Kind string `json:"kind,omitzero"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitzero"`
}

type sarifRegion struct {
	StartLine   int        `json:"startLine,omitzero"`
	StartColumn int        `json:"startColumn,omitzero"`
	EndLine     int        `json:"endLine,omitzero"`
	EndColumn   int        `json:"endColumn,omitzero"`
	Snippet     *sarifText `json:"snippet,omitzero"`
}

type sarifCodeFlow struct {
	ThreadFlows []sarifThreadFlow `json:"threadFlows"`
}

type sarifThreadFlow struct {
	Locations []sarifFlowStep `json:"locations"`
}

type sarifFlowStep struct {
	Location sarifLocation `json:"location"`
}

type sarifSuppression struct {
	Kind          string            `json:"kind"`
	Justification string            `json:"justification,omitzero"`
	Properties    map[string]string `json:"properties,omitempty"`
}

// convert converts a result, and keeps its rule for the end of the run.
func (w *Writer) convert(r *Result) *sarifResult {
	id := cmp.Or(r.Rule.ID, w.tool.Name+"/unnamed")
	w.rule(id, &r.Rule)
	out := &sarifResult{
		RuleID:       id,
		Level:        r.Level,
		Message:      sarifText{Text: cmp.Or(r.Message, r.Rule.Message, r.Rule.Name, id)},
		Fingerprints: r.Fingerprints,
		Properties:   resultProperties{Score: r.Score, Severity: r.Severity, Confidence: r.Confidence, Product: r.Product},
	}
	if out.Properties.Severity != "" && !strings.EqualFold(out.Properties.Severity, "unknown") {
		out.Properties.Score = "" // the tool has weighed it
	}
	if p := r.Package; p != nil {
		out.Properties.PackageName, out.Properties.PackageVersion, out.Properties.FixedVersion = p.Name, p.Version, p.Fixed
		out.Properties.Ecosystem, out.Properties.PURL, out.Properties.Advisory = p.Ecosystem, p.PURL, p.Advisory
		out.Properties.Transitivity, out.Properties.Reachability, out.Properties.ReachableIf = p.Transitivity, p.Reachability, p.ReachableIf
		out.Properties.Malicious, out.Properties.LockfileLine = p.Malicious, p.LockfileLine
		out.Properties.Lockfile, out.Properties.Manifest = uri(p.Lockfile), uri(p.Manifest)
		if len(out.Fingerprints) == 0 && p.Name != "" {
			// The message has the version, but the finding is the same in the next vulnerable version.
			out.Fingerprints = map[string]string{"package/v1": p.Name}
		}
	}
	if r.Path != "" || r.Logical != "" {
		out.Locations = []sarifLocation{{
			Physical: physical(r.Path, sarifRegion{
				StartLine: r.Line, StartColumn: r.Column, EndLine: r.EndLine, EndColumn: r.EndColumn, Snippet: optional(r.Snippet),
			}),
			Logical: logical(r.Logical, r.LogicalKind),
		}}
	}
	for _, place := range r.Related {
		out.Related = append(out.Related, place.location())
	}
	if len(r.Flow) > 0 {
		steps := make([]sarifFlowStep, len(r.Flow))
		for i, place := range r.Flow {
			steps[i].Location = place.location()
		}
		out.CodeFlows = []sarifCodeFlow{{[]sarifThreadFlow{{steps}}}}
	}
	if s := r.Suppressed; s != nil {
		suppression := sarifSuppression{Kind: "external", Justification: s.Reason}
		if s.Author != "" {
			suppression.Properties = map[string]string{"author": s.Author}
		}
		out.Suppressions = []sarifSuppression{suppression}
	}
	if r.HistoricalCommit != "" {
		out.Partial = map[string]string{"commitSha": r.HistoricalCommit}
	}
	return out
}

func (p Place) location() sarifLocation {
	return sarifLocation{
		Physical: physical(p.Path, sarifRegion{StartLine: p.Line, StartColumn: p.Column, Snippet: optional(p.Snippet)}),
		Message:  optional(p.Message),
	}
}

func physical(path string, region sarifRegion) *sarifPhysical {
	if path == "" {
		return nil
	}
	p := &sarifPhysical{Region: &region}
	p.Artifact.URI = uri(path)
	if region == (sarifRegion{}) {
		p.Region = nil
	}
	return p
}

func logical(name, kind string) []sarifLogical {
	if name == "" {
		return nil
	}
	return []sarifLogical{{name, kind}}
}

func optional(text string) *sarifText {
	if text == "" {
		return nil
	}
	return &sarifText{Text: text}
}

// secretCWEs are weaknesses whose code has a secret.
var secretCWEs = regexp.MustCompile(`(?i)^(?:CWE-)?0*(?:259|321|547|798)(?:\D|$)`)

// aboutSecrets reports whether the results of the rule contain secrets.
func (r *Rule) aboutSecrets(product string) bool {
	isSecret := func(tag string) bool { return strings.EqualFold(tag, "secret") || strings.EqualFold(tag, "secrets") }
	return product == ProductSecrets || slices.ContainsFunc(r.Tags, isSecret) || slices.ContainsFunc(r.CWE, secretCWEs.MatchString)
}

// maxReferences bounds the pages of a rule.
const maxReferences = 50

// rule keeps the rule of a result for the end of the run, within limits.
func (w *Writer) rule(id string, r *Rule) {
	if _, known := w.rules[id]; known || len(w.rules) >= maxRules {
		return
	}
	w.rules[id] = len(w.written)
	if r.aboutSecrets(w.tool.Product) {
		// Tools copy the secret from the message of a result into the texts of its rule, which all projects share.
		r = &Rule{ID: r.ID, Name: id, HelpURI: r.HelpURI, CWE: r.CWE, OWASP: r.OWASP, Tags: r.Tags, References: r.References}
	}
	rule := sarifRule{
		ID: id, Name: r.Name, HelpURI: r.HelpURI,
		ShortDescription: optional(jsonstream.Cut(r.Message, 1024)), FullDescription: optional(jsonstream.Cut(r.Description, 4096)),
		Properties: ruleProperties{Tags: r.Tags, CWE: r.CWE, OWASP: r.OWASP, References: r.References[:min(len(r.References), maxReferences)]},
	}
	if r.Help != "" {
		help := jsonstream.Cut(r.Help, 8<<10)
		rule.Help = &sarifText{Text: help, Markdown: help}
	}
	size := len(id) + len(r.Name) + len(r.Message) + len(r.Description) + len(r.Help) + len(r.HelpURI)
	for _, page := range rule.Properties.References {
		size += len(page)
	}
	if w.bytes+size > maxRuleBytes {
		w.Warn("the descriptions of some rules are left out: the report describes more than fits")
		rule.Properties.References = nil
		rule = sarifRule{ID: id, Properties: rule.Properties}
	}
	w.bytes += size
	w.written = append(w.written, rule)
}
