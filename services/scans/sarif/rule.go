package sarif

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/jsonstream"
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
	// References are pages about the problem, at most 50; else HelpURI, if that is a page.
	References []string
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

	guid         string
	score, word  string // severities by a score and by a word, or empty
	defaultLevel string // a severity or levelNone, or empty
	// unreadScore and unreadLevel are meant to be severities and are none, or empty.
	unreadScore, unreadLevel string

	messages      map[string]string
	relationships []wireDescriptorRef
	sensitive     bool
	product       string
	about         *Package // what the rule says about a dependency, or nil
}

const (
	maxName        = 255
	maxDescription = 1024
	maxHelp        = 8 << 10
	maxTags        = 50
	maxURL         = 2048
)

// stubRule is the rule of an id that the run does not declare.
func stubRule(id string) *Rule {
	rule := &Rule{
		ID: id, Name: id, Severity: vocabulary.SeverityMedium, Category: defaultCategory, Stub: true,
		Subcategories: []string{}, CWENames: distinctCWE(cweOfTexts(id)), OWASPNames: []string{}, Tags: []string{},
		about: packageOfID(id),
	}
	rule.sensitive = sensitiveRule(id, nil) || isSecretCWE(rule.CWENames)
	rule.VulnerabilityClasses = VulnerabilityClasses(rule.CWENames)
	return rule
}

func newRule(w *wireRule) *Rule {
	id := ruleID(w.ID)
	rule := &Rule{
		ID:            id,
		Name:          jsonstream.Cut(redactTokens(jsonstream.OneLine(jsonstream.Clean(w.Name))), maxName),
		Message:       ruleMessage(w, id),
		HelpURI:       jsonstream.Cut(redactTokens(jsonstream.Clean(w.HelpURI)), maxURL),
		guid:          w.GUID,
		relationships: make([]wireDescriptorRef, 0, len(w.Relationships)),
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
		rule.Help = jsonstream.Cut(redactTokens(jsonstream.Clean(rule.Help)), maxHelp)
	}
	for _, r := range w.Relationships {
		rule.relationships = append(rule.relationships, r.Target)
	}
	rule.severities(w)
	rule.classify(&w.Properties)
	if rule.References = pages(w.Properties.texts[factReference]...); len(rule.References) == 0 {
		rule.References = pages(rule.HelpURI)
	}
	rule.about = packageOfRule(w)
	return rule
}

// pages are the web pages in texts.
func pages(texts ...string) []string {
	var all []string
	for _, text := range texts {
		for word := range strings.FieldsSeq(redactTokens(text)) {
			if strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://") {
				all = append(all, strings.TrimRight(word, ",;"))
			}
		}
	}
	return head(distinct(all), maxTags)
}

// severities reads the rule's defaults for its results.
func (rule *Rule) severities(w *wireRule) {
	rule.score = w.Properties.scored()
	rule.word = cmp.Or(w.Properties.worded(), tagSeverity(w.Properties.texts[factTags]))
	if w.DefaultConfiguration != nil {
		rule.defaultLevel = fromLevel(w.DefaultConfiguration.Level)
		rule.unreadLevel = jsonstream.Cut(unread(w.DefaultConfiguration.Level, rule.defaultLevel), maxUnread)
	}
	rule.unreadScore = jsonstream.Cut(w.Properties.unreadScore(), maxUnread)
	switch {
	case rule.score != "":
		rule.Severity = rule.score
	case rule.word != "":
		rule.Severity = rule.word
	case rule.defaultLevel == levelNone:
	case rule.defaultLevel != "":
		rule.Severity = rule.defaultLevel
	default:
		rule.Severity = vocabulary.SeverityMedium
	}
}

// classify reads the property bag and its tags.
func (rule *Rule) classify(p *bag) {
	rule.Tags = head(p.texts[factTags], maxTags)
	rule.Confidence = confidence(first(p.texts[factPrecision]), first(p.texts[factConfidence]))
	if rule.Confidence == "" {
		rule.Confidence = tagConfidence(rule.Tags)
	}
	rule.Category = category(first(p.texts[factCategory]), rule.Tags)
	rule.Subcategories = subcategories(slices.Clone(p.texts[factSubcategory]), rule.Tags)
	rule.VulnerabilityClasses = distinct(p.texts[factClass])
	rule.CWENames = append(p.cweProperties(), cweNames(rule.Tags)...)
	rule.OWASPNames = distinct(p.owaspNames())
	rule.sensitive = sensitiveRule(rule.ID, rule.Tags, rule.Name, rule.Message)
	rule.product = cmp.Or(productWord(p.texts[factProduct]), productWord(rule.Tags))
}

// link adds what relationships and taxonomies of the run say about the rule. gosec and flawfinder name CWEs only there.
// Without any, the id of the rule may name one ("CWE-89_sql"), or its texts, if they name only one.
func (rule *Rule) link(run *Run) {
	for i := range rule.relationships {
		id, entry := run.taxon(&rule.relationships[i])
		if id != "" {
			rule.CWENames = append(rule.CWENames, id)
		}
		if entry != "" {
			rule.OWASPNames = distinct(append(rule.OWASPNames, entry))
		}
	}
	rule.relationships = nil
	if len(rule.CWENames) == 0 {
		rule.CWENames = cweOfTexts(rule.ID, rule.Name, rule.Message, rule.Help, rule.HelpURI)
	}
	rule.CWENames = run.titled(rule.CWENames)
	rule.sensitive = rule.sensitive || isSecretCWE(rule.CWENames)
	if len(rule.VulnerabilityClasses) == 0 {
		rule.VulnerabilityClasses = VulnerabilityClasses(rule.CWENames)
	}
}

// size is the approximate memory of a rule in bytes.
func (rule *Rule) size() int {
	n := 700 + len(rule.ID) + len(rule.Name) + len(rule.Message) + len(rule.Help) + len(rule.HelpURI) + len(rule.guid)
	for _, list := range [][]string{rule.Tags, rule.Subcategories, rule.VulnerabilityClasses, rule.CWENames, rule.OWASPNames, rule.FormerIDs, rule.References} {
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
			return jsonstream.OneLine(jsonstream.Clean(t.Text))
		}
		return jsonstream.OneLine(jsonstream.Clean(t.Markdown))
	}
	short, full := text(w.ShortDescription), text(w.FullDescription)
	if full != "" && (short == "" || strings.Contains(short, id)) {
		short = full
	}
	return jsonstream.Cut(redactTokens(short), maxDescription)
}

// ruleID normalises ids of rules and results, so that they can be compared.
func ruleID(id string) string {
	trimmed := strings.TrimSpace(jsonstream.Clean(id))
	if len(trimmed) != len(id) {
		trimmed = strings.Clone(trimmed)
	}
	return jsonstream.Cut(redactTokens(trimmed), maxName)
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
