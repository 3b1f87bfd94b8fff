package remediation

import (
	"slices"
	"strings"

	"github.com/palisade/palisade/services/findings/lifecycle"
)

// Words of policies that code refers to.
const (
	// ModeAll and ModeAny say how many conditions must hold.
	ModeAll, ModeAny = "all", "any"
	// ModeInclude and ModeExclude say whether a finding must or must not have one of the values of a condition.
	ModeInclude, ModeExclude = "include", "exclude"
	// ModeAnyOf and ModeNoneOf are the words of other clients for ModeInclude and ModeExclude.
	ModeAnyOf, ModeNoneOf = "any", "none"
	// ActionBlock makes scans fail.
	ActionBlock = "block"
	// ActionComment adds review comments to findings.
	ActionComment = "comment"
	// ActionNotify sends a message about findings.
	ActionNotify = "notify"
	// ActionTicket creates tickets for findings.
	ActionTicket = "ticket"
	// ActionSetState triages findings.
	ActionSetState = "set_state"
	// ConfigReason is the text shown with the name of a blocking policy, or why findings are ignored.
	ConfigReason = "reason"
	// ConfigRule is the notification rule of a message.
	ConfigRule = "notification_rule_id"
	// ConfigInstance is the ticketing instance of tickets, ConfigProject the project there.
	ConfigInstance, ConfigProject = "ticketing_instance_id", "project_id"
	// ConfigState is the triage state that findings get, ConfigNote their note.
	ConfigState, ConfigNote = "state", "note"
)

// States are the triage states that policies and automations set, and IgnoreReasons the reasons of ignored.
var (
	States        = []string{lifecycle.Reviewing, lifecycle.Fixing, lifecycle.Ignored}
	IgnoreReasons = []string{"acceptable_risk", "false_positive", "no_time", lifecycle.NoTriageReason}
)

// Reference is the kind of objects that the values of a condition name.
type Reference string

// Kinds of named objects.
const (
	// RefNone: no stored objects.
	RefNone Reference = ""
	// RefRule: rules, by name.
	RefRule Reference = "rule"
	// RefProject: projects, by name.
	RefProject Reference = "project"
	// RefTag: tags of projects.
	RefTag Reference = "project tag"
	// RefNotificationRule: notification rules, by id.
	RefNotificationRule Reference = "notification rule"
	// RefTicketingInstance: ticketing instances, by id.
	RefTicketingInstance Reference = "ticketing instance"
)

// ConditionType is a property that conditions compare.
type ConditionType struct {
	// Type is the word; Description says what it compares.
	Type, Description string
	// Also are other words for the type.
	Also []string
	// Values are the allowed values; empty means any.
	Values []string
	// OtherValues are other words for values.
	OtherValues map[string]string
	// Reference is the kind of objects that the values name.
	Reference Reference
	// Always says that each finding has one of Values. Several says that a finding may have several values.
	Always, Several bool
	// Only are the products whose findings alone have the property; empty means all. Product marks the property product.
	Only    []string
	Product bool

	words func(*Facts) []string
}

// ActionType is an action of policies.
type ActionType struct {
	// Type is the word; Description says what it does.
	Type, Description string
	// Also are other words for the type.
	Also []string
	// Requires are the required keys of the config, Optional the optional ones.
	Requires, Optional []string
	// Values are the allowed values of keys that have fixed ones.
	Values map[string][]string
}

func one(word func(*Facts) string) func(*Facts) []string {
	return func(f *Facts) []string { return []string{word(f)} }
}

var conditionTypes = []ConditionType{
	{
		Type: "severity", Always: true, Description: "Severity of the finding.",
		Values: []string{"critical", "high", "medium", "low"}, words: one(func(f *Facts) string { return f.Severity }),
	},
	{
		Type: "confidence", Always: true, Description: "How sure the rule is that its findings are real.",
		Values: []string{"high", "medium", "low"}, words: one(func(f *Facts) string { return f.Confidence }),
	},
	{
		Type: "product", Product: true, Always: true, Description: "What found it: code analysis, supply-chain analysis or the search for secrets.",
		Values: []string{"code", "supply_chain", "secrets"}, words: one(func(f *Facts) string { return f.Product }),
		OtherValues: map[string]string{"sast": "code", "sca": "supply_chain"},
	},
	{
		Type: "rule", Description: "Name of the rule that found it.", Reference: RefRule,
		words: one(func(f *Facts) string { return f.RuleName }),
	},
	{
		Type: "category", Description: "Category of the rule, such as security or correctness.",
		words: one(func(f *Facts) string { return f.Category }),
	},
	{
		Type: "project", Also: []string{"repository"}, Description: "Name of the project.", Reference: RefProject,
		words: one(func(f *Facts) string { return f.Project }),
	},
	{
		Type: "project_tag", Several: true, Also: []string{"repository_tag"}, Description: "A tag of the project.", Reference: RefTag,
		words: func(f *Facts) []string { return f.Tags },
	},
	{
		Type: "reachability", Only: []string{"supply_chain"}, Description: "Whether the vulnerable part of a dependency is used. Findings of other products have none.",
		Values: []string{"always_reachable", "reachable", "conditionally_reachable", "unreachable", "unknown"},
		words:  one(func(f *Facts) string { return f.Reachability }),
	},
	{
		Type: "validation_state", Only: []string{"secrets"}, Description: "Whether a secret works. Findings of other products have none.",
		Values: []string{"confirmed_valid", "confirmed_invalid", "validation_error", "no_validator"},
		words:  one(func(f *Facts) string { return f.ValidationState }),
	},
	{
		Type: "autotriage_verdict", Also: []string{"ai_verdict"}, Description: "What autotriage says about the finding. Findings that it has not looked at have none.",
		Values: []string{"true_positive", "false_positive"}, words: one(func(f *Facts) string { return f.Verdict }),
	},
	{
		Type: "finding_state", Always: true, Description: "Whether the finding is missing from the base of the scan (new) or is there as well (existing). The base of a pull request is its merge base.",
		Values: []string{"new", "existing"},
		words: one(func(f *Facts) string {
			if f.New {
				return "new"
			}
			return "existing"
		}),
	},
}

var actionTypes = []ActionType{
	{
		Type: ActionBlock, Optional: []string{ConfigReason},
		Description: "The scan fails: its scanner exits with 1 and shows why. The config may have a reason, which people see with the name of the policy.",
	},
	{
		Type: ActionComment, Also: []string{"pr_comment"},
		Description: "Marks the findings for review comments. It is stored with the policy; no scan fails because of it, and comments on pull requests have all findings that are not monitored.",
	},
	{
		Type: ActionNotify, Requires: []string{ConfigRule},
		Description: "Sends one message about the findings of a scan, of a triage or of a day, with the notification rule of the config. It tells about each finding once.",
	},
	{
		Type: ActionTicket, Requires: []string{ConfigInstance}, Optional: []string{ConfigProject},
		Description: "Creates tickets in the ticketing instance of the config, one for the findings of a rule and a project. A finding never gets a second one.",
	},
	{
		Type: ActionSetState, Requires: []string{ConfigState}, Optional: []string{ConfigReason, ConfigNote},
		Values:      map[string][]string{ConfigState: States, ConfigReason: IgnoreReasons},
		Description: "Triages the findings that nobody has triaged on any ref. The config has the state, for ignored a reason, and a note.",
	},
}

// unavailable are actions that need what this version does not have.
var unavailable = []string{"assign"}

// Unavailable reports whether the word is a known type of actions that this version cannot do.
func Unavailable(word string) bool { return slices.Contains(unavailable, word) }

// ConditionModes lists all words for the modes of conditions.
func ConditionModes() []string { return []string{ModeInclude, ModeExclude, ModeAnyOf, ModeNoneOf} }

// ConditionTypes lists all types of conditions.
func ConditionTypes() []ConditionType { return slices.Clone(conditionTypes) }

// ActionTypes lists all types of actions.
func ActionTypes() []ActionType { return slices.Clone(actionTypes) }

// Canonical returns the form of values for storage and comparison: fixed words in lower case and in the vocabulary's
// own words, others unchanged.
func (t ConditionType) Canonical(value string) string {
	if len(t.Values) == 0 {
		return value
	}
	value = strings.ToLower(value)
	if word, ok := t.OtherValues[value]; ok {
		return word
	}
	return value
}

// ConditionTypeOf finds a type by any of its words. ok is false for an unknown word.
func ConditionTypeOf(word string) (kind ConditionType, ok bool) {
	for _, kind := range conditionTypes {
		if kind.Type == word || slices.Contains(kind.Also, word) {
			return kind, true
		}
	}
	return ConditionType{}, false
}

// ActionTypeOf finds a type by any of its words. ok is false for an unknown word.
func ActionTypeOf(word string) (kind ActionType, ok bool) {
	for _, kind := range actionTypes {
		if kind.Type == word || slices.Contains(kind.Also, word) {
			return kind, true
		}
	}
	return ActionType{}, false
}

// otherModes maps other clients' words for modes of conditions, and the missing one, to the vocabulary's.
var otherModes = map[string]string{"": ModeInclude, ModeAnyOf: ModeInclude, ModeNoneOf: ModeExclude}

// products maps findings' words for products to the vocabulary's, where they differ.
var products = map[string]string{"sast": "code", "ai_sast": "code", "sca": "supply_chain"}

// Canonical converts a finding to the words of the vocabulary.
func (f Facts) Canonical() Facts {
	for _, word := range []*string{&f.Product, &f.Severity, &f.Confidence, &f.Reachability, &f.ValidationState, &f.Verdict, &f.Status} {
		*word = strings.ToLower(*word)
	}
	if product, ok := products[f.Product]; ok {
		f.Product = product
	}
	return f
}
