package remediation

import (
	"slices"
	"strings"
)

// Words of policies that code refers to.
const (
	// ModeAll and ModeAny say how many conditions must hold.
	ModeAll, ModeAny = "all", "any"
	// ModeInclude and ModeExclude say whether a finding must or must not have one of the values of a condition.
	ModeInclude, ModeExclude = "include", "exclude"
	// ActionBlock makes scans fail.
	ActionBlock = "block"
	// ActionComment adds review comments to findings.
	ActionComment = "comment"
	// ConfigReason is the text shown with the name of a blocking policy.
	ConfigReason = "reason"
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
)

// ConditionType is a property that conditions compare.
type ConditionType struct {
	// Type is the word; Description says what it compares.
	Type, Description string
	// Values are the allowed values; empty means any.
	Values []string
	// Reference is the kind of objects that the values name.
	Reference Reference

	words func(*Facts) []string
}

// ActionType is an action of policies.
type ActionType struct {
	// Type is the word; Description says what it does.
	Type, Description string
	// Requires are the required keys of the config, Optional the optional ones.
	Requires, Optional []string
}

func one(word func(*Facts) string) func(*Facts) []string {
	return func(f *Facts) []string { return []string{word(f)} }
}

var conditionTypes = []ConditionType{
	{
		Type: "severity", Description: "Severity of the finding.",
		Values: []string{"critical", "high", "medium", "low"}, words: one(func(f *Facts) string { return f.Severity }),
	},
	{
		Type: "confidence", Description: "How sure the rule is that its findings are real.",
		Values: []string{"high", "medium", "low"}, words: one(func(f *Facts) string { return f.Confidence }),
	},
	{
		Type: "product", Description: "What found it: code analysis, supply-chain analysis or the search for secrets.",
		Values: []string{"code", "supply_chain", "secrets"}, words: one(func(f *Facts) string { return f.Product }),
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
		Type: "project", Description: "Name of the project.", Reference: RefProject,
		words: one(func(f *Facts) string { return f.Project }),
	},
	{
		Type: "project_tag", Description: "A tag of the project.", Reference: RefTag,
		words: func(f *Facts) []string { return f.Tags },
	},
	{
		Type: "reachability", Description: "Whether the vulnerable part of a dependency is used. Findings of other products have none.",
		Values: []string{"always_reachable", "reachable", "conditionally_reachable", "unreachable", "unknown"},
		words:  one(func(f *Facts) string { return f.Reachability }),
	},
	{
		Type: "validation_state", Description: "Whether a secret works. Findings of other products have none.",
		Values: []string{"confirmed_valid", "confirmed_invalid", "validation_error", "no_validator"},
		words:  one(func(f *Facts) string { return f.ValidationState }),
	},
	{
		Type: "autotriage_verdict", Description: "What autotriage says about the finding. Findings that it has not looked at have none.",
		Values: []string{"true_positive", "false_positive"}, words: one(func(f *Facts) string { return f.Verdict }),
	},
	{
		Type: "finding_state", Description: "Whether the finding came with the scan (new) or was there before (existing).",
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
		Type:        ActionComment,
		Description: "Marks the findings for review comments. It is stored with the policy; no scan fails because of it, and none comments on a pull request yet.",
	},
}

// ConditionTypes lists all types of conditions.
func ConditionTypes() []ConditionType { return slices.Clone(conditionTypes) }

// ActionTypes lists all types of actions.
func ActionTypes() []ActionType { return slices.Clone(actionTypes) }

// Canonical returns the form of values for storage and comparison: fixed words in lower case, others unchanged.
func (t ConditionType) Canonical(value string) string {
	if len(t.Values) == 0 {
		return value
	}
	return strings.ToLower(value)
}

// products maps findings' words for products to the vocabulary's, where they differ.
var products = map[string]string{"sast": "code", "ai_sast": "code", "sca": "supply_chain"}

// canonical converts a finding to the words of the vocabulary.
func canonical(f Facts) Facts {
	for _, word := range []*string{&f.Product, &f.Severity, &f.Confidence, &f.Reachability, &f.ValidationState, &f.Verdict, &f.Status} {
		*word = strings.ToLower(*word)
	}
	if product, ok := products[f.Product]; ok {
		f.Product = product
	}
	return f
}
