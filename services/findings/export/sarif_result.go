package export

import (
	"net/url"
	"strings"

	"google.golang.org/protobuf/proto"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/supplychain/purl"
)

// The objects of SARIF 2.1.0, as far as they are written.
type (
	sarifRun struct {
		Tool struct {
			Driver struct {
				Name  string      `json:"name"`
				Rules []sarifRule `json:"rules,omitempty"`
			} `json:"driver"`
		} `json:"tool"`
		Automation *sarifAutomation  `json:"automationDetails,omitempty"`
		Versions   []sarifVersion    `json:"versionControlProvenance,omitempty"`
		Properties map[string]string `json:"properties"`
	}
	sarifAutomation struct {
		ID string `json:"id"`
	}
	sarifVersion struct {
		RepositoryURI string `json:"repositoryUri"`
		Branch        string `json:"branch"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifRule struct {
		ID         string             `json:"id"`
		Full       *sarifText         `json:"fullDescription,omitempty"`
		Help       *sarifText         `json:"help,omitempty"`
		HelpURI    string             `json:"helpUri,omitempty"`
		Properties sarifRuleAttribute `json:"properties"`
	}
	sarifRuleAttribute struct {
		Tags       []string `json:"tags,omitempty"`
		Precision  string   `json:"precision,omitempty"`
		Category   string   `json:"category,omitempty"`
		SecretType string   `json:"secretType,omitempty"`
		References []string `json:"references,omitempty"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		CodeFlows    []sarifFlow        `json:"codeFlows,omitempty"`
		Suppressions []sarifSuppression `json:"suppressions"`
		Properties   map[string]string  `json:"properties"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		StartLine   int32      `json:"startLine"`
		StartColumn int32      `json:"startColumn,omitempty"`
		EndLine     int32      `json:"endLine,omitempty"`
		EndColumn   int32      `json:"endColumn,omitempty"`
		Snippet     *sarifText `json:"snippet,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
	}
	sarifFlow struct {
		Message     *sarifText    `json:"message,omitempty"`
		ThreadFlows []sarifThread `json:"threadFlows"`
	}
	sarifThread struct {
		ID        string      `json:"id,omitempty"`
		Message   *sarifText  `json:"message,omitempty"`
		Locations []sarifStep `json:"locations"`
	}
	sarifStep struct {
		Location sarifLocation `json:"location"`
		Kinds    []string      `json:"kinds,omitempty"`
	}
	sarifSuppression struct {
		Kind          string        `json:"kind"`
		Status        string        `json:"status"`
		Justification string        `json:"justification,omitempty"`
		Properties    sarifDecision `json:"properties"`
	}
	sarifDecision struct {
		State  string `json:"state"`
		Reason string `json:"reason,omitempty"`
		Author string `json:"author,omitempty"`
		Date   string `json:"date,omitempty"`
	}
)

func sarifRuleOf(name string, content *findingsv1.FindingRule) sarifRule {
	r := sarifRule{ID: name, HelpURI: absoluteURL(content.GetHelpUri()), Properties: sarifRuleAttribute{
		Precision: map[string]string{vocabulary.ConfidenceLow: "low", vocabulary.ConfidenceMedium: "medium", vocabulary.ConfidenceHigh: "high"}[content.GetConfidence()],
		Category:  content.GetCategory(), SecretType: content.GetSecretType(), References: content.GetReferences(),
	}}
	seen := map[string]bool{}
	for _, list := range [][]string{content.GetSubcategories(), content.GetCweNames(), content.GetOwaspNames()} {
		for _, tag := range list {
			if !seen[tag] { // tags are a set
				seen[tag] = true
				r.Properties.Tags = append(r.Properties.Tags, tag)
			}
		}
	}
	if content.GetMessage() != "" {
		r.Full = &sarifText{Text: content.GetMessage()}
	}
	if help := content.GetHelp(); help != "" {
		r.Help = &sarifText{Text: help, Markdown: help}
	}
	return r
}

// absoluteURL is a link that readers accept; empty for another text.
func absoluteURL(link string) string {
	if u, err := url.Parse(link); err != nil || u.Scheme == "" || u.Host == "" {
		return ""
	}
	return link
}

func sarifResultOf(e *exported, author string) (*sarifResult, error) {
	c := e.content
	r := &sarifResult{
		RuleID: e.rule.Name, Level: levels[e.Severity], Message: sarifText{Text: firstOf(c.GetMessage(), e.rule.content.GetMessage(), e.rule.Name)},
		Fingerprints: map[string]string{"palisade/v1": e.Fingerprint},
		Suppressions: suppressionsOf(e, author),
		Properties: map[string]string{
			"severity": e.Severity, "state": e.State, "triageState": e.TriageState, "status": e.Status, "product": e.IssueType,
			"createdAt": stamp(&e.CreatedAt),
		},
	}
	for name, value := range map[string]string{
		"commit": c.GetCommit(), "triageComment": text(e.TriageComment), "validationState": text(e.ValidationState), "exposure": text(e.Exposure),
		"transitivity": text(e.Transitivity), "vulnerability": firstOf(c.GetVulnerabilityIdentifier(), text(e.Advisory)), "policyMode": text(e.PolicyMode),
	} {
		if value != "" {
			r.Properties[name] = value
		}
	}
	if found := c.GetFoundDependency(); e.IssueType == vocabulary.SCA && text(e.Package) != "" {
		r.Properties["purl"] = purl.Format(found.GetEcosystem(), text(e.Package), found.GetVersion())
	}
	snippet := c.GetSnippet()
	if e.IssueType == vocabulary.Secrets {
		snippet = ""
	}
	at := sarifPlace(c.GetLocation(), snippet)
	if c.GetLogicalLocation() != "" {
		at.Logical = []sarifLogical{{c.GetLogicalLocation()}}
	}
	if at.Physical != nil || at.Logical != nil {
		r.Locations = []sarifLocation{at}
	}
	about := &findingsv1.FindingContext{}
	if err := proto.Unmarshal(c.GetContext(), about); err != nil {
		return nil, err
	}
	for _, flow := range about.GetCodeFlows() {
		if shown := sarifFlowOf(flow); len(shown.ThreadFlows) > 0 {
			r.CodeFlows = append(r.CodeFlows, shown)
		}
	}
	return r, nil
}

func sarifPlace(at *findingsv1.FindingLocation, snippet string) (l sarifLocation) {
	if at.GetFilePath() == "" {
		return l
	}
	l.Physical = &sarifPhysical{}
	l.Physical.Artifact.URI = (&url.URL{Path: strings.ToValidUTF8(at.GetFilePath(), "\uFFFD")}).String()
	if at.GetLine() > 0 {
		l.Physical.Region = &sarifRegion{StartLine: at.GetLine(), StartColumn: max(at.GetColumn(), 0), EndColumn: max(at.GetEndColumn(), 0)}
		if at.GetEndLine() >= at.GetLine() {
			l.Physical.Region.EndLine = at.GetEndLine()
		}
		if snippet != "" {
			l.Physical.Region.Snippet = &sarifText{Text: snippet}
		}
	}
	return l
}

func sarifFlowOf(flow *findingsv1.CodeFlow) sarifFlow {
	out := sarifFlow{Message: optionalText(flow.GetMessage())}
	for _, thread := range flow.GetThreadFlows() {
		shown := sarifThread{ID: thread.GetId(), Message: optionalText(thread.GetMessage())}
		for _, step := range thread.GetSteps() {
			at := step.GetLocation()
			place := sarifPlace(&findingsv1.FindingLocation{
				FilePath: at.GetPath(), Line: at.GetLine(), Column: at.GetColumn(), EndLine: at.GetEndLine(), EndColumn: at.GetEndColumn(),
			}, step.GetSnippet())
			place.Message = optionalText(at.GetMessage())
			shown.Locations = append(shown.Locations, sarifStep{place, step.GetKinds()})
		}
		if len(shown.Locations) > 0 {
			out.ThreadFlows = append(out.ThreadFlows, shown)
		}
	}
	return out
}

func optionalText(text string) *sarifText {
	if text == "" {
		return nil
	}
	return &sarifText{Text: text}
}
