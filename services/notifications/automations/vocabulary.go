package automations

import (
	"path"
	"regexp"
	"strings"

	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/policies/remediation"
)

// facts are what conditions compare.
type facts = remediation.Facts

// conditionKind is how a type of conditions is evaluated.
type conditionKind struct {
	remediation.ConditionType
	// trigger is the only trigger whose events have the property; unspecified: all.
	trigger v1.TriggerSource
}

func kind(words func(*facts) []string, values ...string) conditionKind {
	return conditionKind{ConditionType: remediation.ConditionTypeFor(words, values...)}
}

// always marks a property with fixed values, one of which each finding has; several one of which a finding can have
// several values.
func always(k conditionKind) conditionKind  { k.Always = true; return k }
func several(k conditionKind) conditionKind { k.Several = true; return k }

func one(word func(*facts) string) func(*facts) []string {
	return func(f *facts) []string { return []string{word(f)} }
}

func of(products ...string) func(conditionKind) conditionKind {
	return func(k conditionKind) conditionKind { k.Only = products; return k }
}

var (
	dependencies = of(vocabulary.SCA)
	secrets      = of(vocabulary.Secrets)
	code         = of(vocabulary.SAST, vocabulary.AISAST, vocabulary.Secrets)
)

var (
	statuses = []string{
		lifecycle.Open, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.Ignored, lifecycle.ProvisionallyIgnored, lifecycle.Fixed, lifecycle.Removed,
	}
	triageStates = []string{
		lifecycle.Untriaged, lifecycle.Reopened, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.Ignored, lifecycle.ProvisionallyIgnored,
	}
)

var truth = []string{"true", "false"}

// conditionKinds are the supported types of conditions.
var conditionKinds = map[v1.ConditionType]conditionKind{
	v1.ConditionType_CONDITION_TYPE_REPOSITORY_ID:         kind(one(func(f *facts) string { return f.Place.ProjectID })),
	v1.ConditionType_CONDITION_TYPE_REPOSITORY_TAG_ID:     several(kind(func(f *facts) []string { return f.Place.TagIDs })),
	v1.ConditionType_CONDITION_TYPE_PRIMARY_REF:           always(kind(one(func(f *facts) string { return f.Place.Primary }), truth...)),
	v1.ConditionType_CONDITION_TYPE_PATH:                  several(kind(func(f *facts) []string { return f.Place.Paths })),
	v1.ConditionType_CONDITION_TYPE_REF:                   several(kind(func(f *facts) []string { return f.Place.Ref })),
	v1.ConditionType_CONDITION_TYPE_SEVERITY:              policyKind("severity"),
	v1.ConditionType_CONDITION_TYPE_CONFIDENCE:            policyKind("confidence"),
	v1.ConditionType_CONDITION_TYPE_PRODUCT:               product(always(kind(one(func(f *facts) string { return f.Place.Product }), vocabulary.Products...))),
	v1.ConditionType_CONDITION_TYPE_POLICY:                several(kind(func(f *facts) []string { return f.Place.Policies })),
	v1.ConditionType_CONDITION_TYPE_REACHABILITY:          dependencies(policyKind("reachability")),
	v1.ConditionType_CONDITION_TYPE_TRANSITIVITY:          dependencies(kind(one(func(f *facts) string { return f.Place.Transitivity }), "direct", "transitive", "unknown")),
	v1.ConditionType_CONDITION_TYPE_EPSS_CATEGORY:         dependencies(kind(one(func(f *facts) string { return f.Place.EPSS }), "high", "medium", "low", "none")),
	v1.ConditionType_CONDITION_TYPE_VALIDATION_STATE:      secrets(policyKind("validation_state")),
	v1.ConditionType_CONDITION_TYPE_CVE:                   dependencies(kind(one(func(f *facts) string { return f.Place.Advisory }))),
	v1.ConditionType_CONDITION_TYPE_VULNERABILITY_ID:      dependencies(kind(one(func(f *facts) string { return f.Place.Advisory }))),
	v1.ConditionType_CONDITION_TYPE_MALICIOUS_DEPENDENCY:  dependencies(always(kind(one(func(f *facts) string { return f.Place.Malicious }), truth...))),
	v1.ConditionType_CONDITION_TYPE_REPOSITORY_VISIBILITY: kind(one(func(f *facts) string { return f.Place.Visibility }), "public", "private", "unknown"),
	v1.ConditionType_CONDITION_TYPE_SECRET_TYPE:           secrets(kind(one(func(f *facts) string { return f.Place.SecretType }))),
	v1.ConditionType_CONDITION_TYPE_AI_VERDICT:            policyKind("autotriage_verdict"),
	v1.ConditionType_CONDITION_TYPE_AI_TAG:                kind(one(func(f *facts) string { return f.Place.ComponentTag })),
	v1.ConditionType_CONDITION_TYPE_AGGREGATE_STATE:       kind(one(func(f *facts) string { return f.Status }), statuses...),
	v1.ConditionType_CONDITION_TYPE_TRIAGE_STATE:          always(kind(one(func(f *facts) string { return f.Place.TriageState }), triageStates...)),
	v1.ConditionType_CONDITION_TYPE_RULE_ID:               policyKind("rule"),
	v1.ConditionType_CONDITION_TYPE_VULNERABILITY_CLASS:   several(kind(func(f *facts) []string { return f.Place.Classes })),
	v1.ConditionType_CONDITION_TYPE_CWE:                   code(several(kind(func(f *facts) []string { return f.Place.CWE }))),
	v1.ConditionType_CONDITION_TYPE_OWASP:                 code(several(kind(func(f *facts) []string { return f.Place.OWASP }))),
	v1.ConditionType_CONDITION_TYPE_FULL_SCAN:             ofScans(always(kind(one(func(f *facts) string { return f.Place.FullScan }), truth...))),
}

// policyKind is a type of conditions that remediation policies have as well.
func policyKind(word string) conditionKind {
	of, ok := remediation.ConditionTypeOf(word)
	if !ok {
		panic("there is no condition type " + word)
	}
	return conditionKind{ConditionType: of}
}

func product(k conditionKind) conditionKind { k.Product = true; return k }

func ofScans(k conditionKind) conditionKind {
	k.trigger = v1.TriggerSource_TRIGGER_SOURCE_SCAN
	return k
}

// triggers are the supported triggers.
var triggers = []v1.TriggerSource{v1.TriggerSource_TRIGGER_SOURCE_SCAN, v1.TriggerSource_TRIGGER_SOURCE_ISSUE_TRIAGED}

// messages are the actions that send a message, with the channel of their notification rule.
var messages = map[v1.ActionType]string{
	v1.ActionType_ACTION_TYPE_EMAIL: channel.Email, v1.ActionType_ACTION_TYPE_WEBHOOK: channel.Webhook,
	v1.ActionType_ACTION_TYPE_SLACK_WEBHOOK: channel.Slack, v1.ActionType_ACTION_TYPE_S3: channel.S3,
	v1.ActionType_ACTION_TYPE_SLACK_APP: channel.SlackApp,
}

// supportedActions are the words of an error.
const supportedActions = "ACTION_TYPE_EMAIL, ACTION_TYPE_WEBHOOK, ACTION_TYPE_SLACK_WEBHOOK, ACTION_TYPE_SLACK_APP, ACTION_TYPE_S3, ACTION_TYPE_JIRA, ACTION_TYPE_TRIAGE or ACTION_TYPE_TRIGGER_WORKFLOW"

// Keys of the config of actions.
const (
	configRule     = "notification_rule_id"
	configState    = "state"
	configReason   = "reason"
	configNote     = "note"
	configWorkflow = "workflow"
)

// word removes the prefix that clients may put before a value, such as SEVERITY_ or FINDING_TRIAGE_STATE_.
func word(value string, prefixes ...string) string {
	value = strings.TrimSpace(value)
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(value, prefix); ok {
			return rest
		}
	}
	return value
}

// upperCase are ids that findings have in upper case: A03:2021, CWE-79, CVE-2021-44906.
var upperCase = regexp.MustCompile(`(?i)^(a[0-9]{1,2}:[0-9]{4}|cwe-[0-9]+|cve-[0-9]+-[0-9]+)$`)

// number is a weakness without the letters before it.
var number = regexp.MustCompile(`^[0-9]+$`)

// spelled returns a value in the spelling of findings, which conditions compare exactly.
func spelled(kind v1.ConditionType, value string) string {
	switch kind {
	case v1.ConditionType_CONDITION_TYPE_PATH:
		if value != "" {
			return path.Clean(value)
		}
	case v1.ConditionType_CONDITION_TYPE_CWE:
		if number.MatchString(value) {
			return "CWE-" + value
		}
		return inUpperCase(value)
	case v1.ConditionType_CONDITION_TYPE_OWASP, v1.ConditionType_CONDITION_TYPE_CVE, v1.ConditionType_CONDITION_TYPE_VULNERABILITY_ID:
		return inUpperCase(value)
	}
	return value
}

func inUpperCase(value string) string {
	if upperCase.MatchString(value) {
		return strings.ToUpper(value)
	}
	return value
}
