package sarif

import (
	"strings"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// Rule is what a report says about one rule of a tool. Its lists are never nil and may be shared: do not change them.
type Rule struct {
	// ID is the rule's id as written. Name is its display name, or the id.
	ID, Name string
	// Message is the short description, in one line of at most 1,024 bytes. If it is missing or only repeats the id,
	// Message is the full description. It may be empty.
	Message string
	// Help is the help text, at most 8 KiB, or empty. HelpURI is shown, never fetched.
	Help, HelpURI string
	// Severity is the default for results without one: low, medium, high or critical; empty for level none.
	Severity string
	// Confidence is low, medium, high, or empty if unknown.
	Confidence string
	// Category is a word such as security, correctness or best-practice. The default is security.
	Category string
	// Subcategories are words such as vuln or audit.
	Subcategories []string
	// VulnerabilityClasses are names such as "SQL Injection": as written, else derived from the CWE.
	VulnerabilityClasses []string
	// CWENames are "CWE-89: SQL Injection" if the report has the title, else "CWE-89".
	CWENames []string
	// OWASPNames are names such as "A03:2021 - Injection".
	OWASPNames []string
	// Tags are the rule's tags as written, at most 50.
	Tags []string
	// FormerIDs are ids under which earlier versions of the tool reported the rule (deprecatedIds, SARIF 3.49.5), at most
	// 50.
	FormerIDs []string
	// Stub says that the report does not declare this rule, so only its id is known.
	Stub bool

	guid             string
	securitySeverity string
	defaultLevel     string // a severity or levelNone, or empty
	messages         map[string]string
	relationships    []wireDescriptorRef
	sensitive        bool
	product          string
	purls            []string
}

const (
	maxName        = 255
	maxDescription = 1024
	maxHelp        = 8 << 10
	maxTags        = 50
)

// stubRule is the rule of an id that the run does not declare.
func stubRule(id string) *Rule {
	return &Rule{
		ID: id, Name: id, Severity: vocabulary.SeverityMedium, Category: defaultCategory, Stub: true,
		Subcategories: []string{}, VulnerabilityClasses: []string{}, CWENames: []string{}, OWASPNames: []string{}, Tags: []string{},
		sensitive: sensitiveRule(id, nil),
	}
}

func newRule(w *wireRule) *Rule {
	id := ruleID(w.ID)
	rule := &Rule{
		ID:            id,
		Name:          cut(oneLine(clean(w.Name)), maxName),
		Message:       ruleMessage(w, id),
		HelpURI:       cut(clean(w.HelpURI), 2048),
		guid:          w.GUID,
		relationships: make([]wireDescriptorRef, 0, len(w.Relationships)),
		purls:         w.Properties.PURLs,
	}
	if rule.Name == "" {
		rule.Name = id
	}
	for _, former := range w.DeprecatedIDs[:min(len(w.DeprecatedIDs), maxTags)] {
		if former = ruleID(former); former != "" && former != id {
			rule.FormerIDs = append(rule.FormerIDs, former)
		}
	}
	if w.Help != nil {
		if rule.Help = w.Help.Markdown; rule.Help == "" {
			rule.Help = w.Help.Text
		}
		rule.Help = cut(clean(rule.Help), maxHelp)
	}
	for _, r := range w.Relationships {
		rule.relationships = append(rule.relationships, r.Target)
	}
	rule.severities(w)
	rule.classify(&w.Properties)
	return rule
}

// severities reads the rule's defaults for its results.
func (rule *Rule) severities(w *wireRule) {
	rule.securitySeverity = w.Properties.securitySeverity()
	if w.DefaultConfiguration != nil {
		rule.defaultLevel = fromLevel(w.DefaultConfiguration.Level)
	}
	switch {
	case rule.securitySeverity != "":
		rule.Severity = rule.securitySeverity
	case rule.defaultLevel == levelNone:
	case rule.defaultLevel != "":
		rule.Severity = rule.defaultLevel
	default:
		rule.Severity = vocabulary.SeverityMedium
	}
}

// classify reads the property bag and its tags.
func (rule *Rule) classify(p *bag) {
	rule.Tags = head(p.Tags, maxTags)
	rule.Confidence = confidence(first(p.Precision), first(p.Confidence))
	if rule.Confidence == "" {
		rule.Confidence = tagConfidence(rule.Tags)
	}
	rule.Category = category(first(p.Category), rule.Tags)
	rule.Subcategories = subcategories(append(append([]string{}, p.Subcategory...), p.Subcategories...), rule.Tags)
	rule.VulnerabilityClasses = distinct(append(append([]string{}, p.VulnerabilityClass...), p.VulnerabilityClasses...))
	rule.CWENames = append(cweProperty(p.CWE, p.CWEs), cweNames(rule.Tags)...)
	rule.OWASPNames = owaspNames(p.OWASP, rule.Tags)
	rule.sensitive = sensitiveRule(rule.ID, rule.Tags)
	rule.product = ruleProduct(rule.Tags)
}

// link adds what relationships and taxonomies of the run say about the rule. gosec and flawfinder name CWEs only there.
func (rule *Rule) link(titles map[string]string, taxonomies []*component) {
	for _, ref := range rule.relationships {
		if id, ok := cweOf(ref, taxonomies); ok {
			rule.CWENames = append(rule.CWENames, id)
		}
	}
	rule.relationships = nil
	for i, name := range rule.CWENames {
		if title := titles[name]; title != "" {
			rule.CWENames[i] = name + ": " + title
		}
	}
	rule.CWENames = distinctCWE(rule.CWENames)
	if len(rule.VulnerabilityClasses) == 0 {
		rule.VulnerabilityClasses = vulnerabilityClasses(rule.CWENames)
	}
}

// size is the approximate memory of a rule in bytes.
func (rule *Rule) size() int {
	n := 700 + len(rule.ID) + len(rule.Name) + len(rule.Message) + len(rule.Help) + len(rule.HelpURI) + len(rule.guid)
	for _, list := range [][]string{rule.Tags, rule.Subcategories, rule.VulnerabilityClasses, rule.CWENames, rule.OWASPNames, rule.purls, rule.FormerIDs} {
		for _, s := range list {
			n += len(s) + 16
		}
	}
	for _, ref := range rule.relationships {
		n += len(ref.ID) + len(ref.GUID) + 128
	}
	return n
}

// ruleMessage is the short description, unless it only repeats the id ("Semgrep Finding: some.rule").
func ruleMessage(w *wireRule, id string) string {
	text := func(t *wireText) string {
		switch {
		case t == nil:
			return ""
		case t.Text != "":
			return oneLine(clean(t.Text))
		}
		return oneLine(clean(t.Markdown))
	}
	short, full := text(w.ShortDescription), text(w.FullDescription)
	if full != "" && (short == "" || strings.Contains(short, id)) {
		short = full
	}
	return cut(short, maxDescription)
}

// ruleID normalises ids of rules and results, so that they can be compared.
func ruleID(id string) string {
	trimmed := strings.TrimSpace(clean(id))
	if len(trimmed) != len(id) {
		trimmed = strings.Clone(trimmed)
	}
	return cut(trimmed, maxName)
}

// distinct removes duplicates and keeps the order. It never returns nil.
func distinct(list []string) []string {
	kept := make([]string, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, s := range list {
		if s != "" && !seen[s] {
			seen[s] = true
			kept = append(kept, s)
		}
	}
	return kept
}

func head(list []string, n int) []string {
	if len(list) > n {
		list = list[:n]
	}
	return append([]string{}, list...)
}
