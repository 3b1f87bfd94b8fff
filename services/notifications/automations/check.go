package automations

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automation"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/remediationpolicy"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/ticketinginstance"
	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
)

// checker checks automations of requests, except for their workflows (see checkWorkflows).
type checker struct{ db *ent.Client }

// check returns an automation as it is stored, with defaults and canonical words. Fields that the server sets are
// empty. Errors name the field and what is allowed.
func (c checker) check(ctx context.Context, from *v1.Automation) (*v1.Automation, error) {
	to := &v1.Automation{
		Name: strings.TrimSpace(from.GetName()), Description: strings.TrimSpace(from.GetDescription()), TriggerSource: from.GetTriggerSource(),
		Active: proto.Bool(from.Active == nil || from.GetActive()), Filters: &v1.AutomationFilters{Mode: from.GetFilters().GetMode()},
	}
	if to.TriggerSource == v1.TriggerSource_TRIGGER_SOURCE_UNSPECIFIED {
		to.TriggerSource = v1.TriggerSource_TRIGGER_SOURCE_SCAN
	}
	if !slices.Contains(triggers, to.GetTriggerSource()) {
		return nil, apierr.InvalidArgument("automation.triggerSource",
			"automation.triggerSource %s is not supported yet: it must be TRIGGER_SOURCE_SCAN or TRIGGER_SOURCE_ISSUE_TRIAGED", to.GetTriggerSource())
	}
	if to.Filters.Mode == v1.Mode_MODE_UNSPECIFIED {
		to.Filters.Mode = v1.Mode_MODE_ALL
	}
	if to.Filters.Mode == v1.Mode_MODE_UNKNOWN {
		return nil, unknownMode("automation.filters.mode")
	}
	for i, condition := range from.GetFilters().GetConditions() {
		checked, err := checkCondition(fmt.Sprintf("automation.filters.conditions[%d]", i), to.GetTriggerSource(), condition)
		if err != nil {
			return nil, err
		}
		to.Filters.Conditions = append(to.Filters.Conditions, checked)
	}
	if err := refuseImpossible(to.GetFilters()); err != nil {
		return nil, err
	}
	if err := c.checkReferences(ctx, to.GetFilters()); err != nil {
		return nil, err
	}
	return to, c.checkActions(ctx, from, to)
}

func unknownMode(field string) error {
	return apierr.InvalidArgument(field, "%s must be MODE_ALL, MODE_ANY or MODE_NONE", field)
}

func checkCondition(field string, trigger v1.TriggerSource, from *v1.AutomationCondition) (*v1.AutomationCondition, error) {
	to := &v1.AutomationCondition{Type: from.GetType(), Mode: from.GetMode()}
	if to.Mode == v1.Mode_MODE_UNSPECIFIED {
		to.Mode = v1.Mode_MODE_ANY
	}
	if to.Mode == v1.Mode_MODE_UNKNOWN {
		return nil, unknownMode(field + ".mode")
	}
	kind, ok := conditionKinds[from.GetType()]
	switch {
	case from.GetType() == v1.ConditionType_CONDITION_TYPE_UNSPECIFIED:
		return nil, apierr.InvalidArgument(field+".type", "%s.type is required: one of %s", field, supportedConditions())
	case !ok:
		return nil, apierr.InvalidArgument(field+".type", "%s.type %s is not supported yet: it must be one of %s", field, from.GetType(), supportedConditions())
	case kind.trigger != v1.TriggerSource_TRIGGER_SOURCE_UNSPECIFIED && kind.trigger != trigger:
		return nil, apierr.InvalidArgument(field+".type", "%s.type %s needs the trigger %s", field, from.GetType(), kind.trigger)
	case len(from.GetValues()) == 0:
		return nil, apierr.InvalidArgument(field+".values", "%s.values must have at least one value", field)
	}
	prefix := strings.TrimPrefix(from.GetType().String(), "CONDITION_TYPE_") + "_"
	for _, value := range from.GetValues() {
		value = kind.Canonical(spelled(from.GetType(), word(value, prefix, "FINDING_"+prefix)))
		if from.GetType() == v1.ConditionType_CONDITION_TYPE_PATH && (strings.Contains(value, "*") || value == "." || value == "/") {
			return nil, apierr.InvalidArgument(field+".values",
				"%s.values: %s matches nothing: it must be the path of a file or directory, without *", field, apierr.Quote(value))
		}
		if value == "" || len(kind.Values) > 0 && !slices.Contains(kind.Values, value) {
			return nil, apierr.InvalidArgument(field+".values", "%s.values: %s is not a value of %s%s", field, apierr.Quote(value), from.GetType(), allowed(kind.Values))
		}
		if !slices.Contains(to.Values, value) {
			to.Values = append(to.Values, value)
		}
	}
	return to, refuseSeveral(field, to)
}

func allowed(values []string) string {
	if len(values) == 0 {
		return ": it must not be empty"
	}
	return ": it must be " + strings.Join(values, ", ")
}

func supportedConditions() string {
	var names []string
	for kind := range conditionKinds {
		names = append(names, kind.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// checkReferences requires that the projects, tags and policies exist that conditions name.
func (c checker) checkReferences(ctx context.Context, filters *v1.AutomationFilters) error {
	for i, condition := range filters.GetConditions() {
		field := fmt.Sprintf("automation.filters.conditions[%d].values", i)
		kind, exist, err := c.referenced(ctx, field, condition)
		if err != nil {
			return err
		}
		for _, value := range condition.GetValues() {
			if kind != "" && !slices.Contains(exist, value) {
				return apierr.InvalidArgument(field, "%s: there is no %s %s", field, kind, apierr.Quote(value))
			}
		}
	}
	return nil
}

// referenced returns the kind of objects that a condition names, and which of them exist; no kind if it names none.
func (c checker) referenced(ctx context.Context, field string, condition *v1.AutomationCondition) (kind string, exist []string, err error) {
	values := condition.GetValues()
	var found []int64
	switch condition.GetType() {
	case v1.ConditionType_CONDITION_TYPE_POLICY:
		exist, err = c.db.RemediationPolicy.Query().Where(remediationpolicy.Active(true), store.OneOf(remediationpolicy.FieldSlug, values)).
			Select(remediationpolicy.FieldSlug).Strings(ctx)
		return "active remediation policy", exist, err
	case v1.ConditionType_CONDITION_TYPE_REPOSITORY_ID, v1.ConditionType_CONDITION_TYPE_REPOSITORY_TAG_ID:
		ids := make([]int64, len(values))
		for i, value := range values {
			if ids[i], err = strconv.ParseInt(value, 10, 64); err != nil {
				return "", nil, apierr.InvalidArgument(field, "%s: %s is no id", field, apierr.Quote(value))
			}
		}
		if condition.GetType() == v1.ConditionType_CONDITION_TYPE_REPOSITORY_ID {
			kind = "project"
			found, err = c.db.Project.Query().Where(store.OneOf(project.FieldID, ids)).IDs(ctx)
		} else {
			kind = "tag"
			found, err = c.db.Tag.Query().Where(store.OneOf(tag.FieldID, ids)).IDs(ctx)
		}
	}
	for _, id := range found {
		exist = append(exist, strconv.FormatInt(id, 10))
	}
	return kind, exist, err
}

// compile compiles checked filters.
func compile(filters *v1.AutomationFilters) (filter remediation.Filter, err error) {
	conditions := filters.GetConditions()
	filter.Any = filters.GetMode() == v1.Mode_MODE_ANY && len(conditions) > 0
	filter.None = filters.GetMode() == v1.Mode_MODE_NONE
	for _, c := range conditions {
		kind, ok := conditionKinds[c.GetType()]
		if !ok {
			return filter, fmt.Errorf("a stored automation has a condition of type %s", c.GetType())
		}
		filter.Conditions = append(filter.Conditions, kind.Condition(c.GetValues(), c.GetMode() == v1.Mode_MODE_ALL, c.GetMode() == v1.Mode_MODE_NONE))
	}
	return filter, nil
}

// checkActions checks and adds the actions.
func (c checker) checkActions(ctx context.Context, from, to *v1.Automation) error {
	if len(from.GetActions()) == 0 {
		return apierr.InvalidArgument("automation.actions", "automation.actions must have at least one action: %s", supportedActions)
	}
	for i, action := range from.GetActions() {
		field := fmt.Sprintf("automation.actions[%d]", i)
		checked := &v1.AutomationAction{Type: action.GetType(), Id: strconv.Itoa(i + 1), Config: map[string]string{}}
		for key, value := range action.GetConfig() {
			checked.Config[key] = strings.TrimSpace(value)
		}
		if err := c.checkAction(ctx, field, to.GetTriggerSource(), checked); err != nil {
			return err
		}
		to.Actions = append(to.Actions, checked)
	}
	return nil
}

func (c checker) checkAction(ctx context.Context, field string, trigger v1.TriggerSource, action *v1.AutomationAction) error {
	switch action.GetType() {
	case v1.ActionType_ACTION_TYPE_TRIAGE:
		if trigger == v1.TriggerSource_TRIGGER_SOURCE_ISSUE_TRIAGED {
			return apierr.InvalidArgument(field+".type", "%s.type: an automation that runs when somebody triages cannot triage itself: it would overrule that person, or run in circles", field)
		}
		return checkTriage(field, action)
	case v1.ActionType_ACTION_TYPE_JIRA:
		return c.checkTicket(ctx, field, action)
	case v1.ActionType_ACTION_TYPE_TRIGGER_WORKFLOW:
		return requireKeys(field, action, []string{configWorkflow}, nil)
	case v1.ActionType_ACTION_TYPE_BLOCK:
		return apierr.InvalidArgument(field+".type", "%s.type: automations run after a scan, so they cannot let it fail: a remediation policy with the action block does", field)
	}
	wanted, ok := messages[action.GetType()]
	if !ok {
		return apierr.InvalidArgument(field+".type", "%s.type %s is not supported yet: it must be %s", field, action.GetType(), supportedActions)
	}
	if err := requireKeys(field, action, []string{configRule}, nil); err != nil {
		return err
	}
	return c.checkRule(ctx, field+".config."+configRule, action.GetConfig()[configRule], wanted)
}

func (c checker) checkTicket(ctx context.Context, field string, action *v1.AutomationAction) error {
	if err := requireKeys(field, action, []string{remediation.ConfigInstance}, []string{remediation.ConfigProject}); err != nil {
		return err
	}
	field += ".config." + remediation.ConfigInstance
	id, err := strconv.ParseInt(action.GetConfig()[remediation.ConfigInstance], 10, 64)
	if err != nil {
		return apierr.InvalidArgument(field, "%s must be the id of a ticketing instance", field)
	}
	exists, err := c.db.TicketingInstance.Query().Where(ticketinginstance.ID(id)).Exist(ctx)
	if err == nil && !exists {
		err = apierr.InvalidArgument(field, "%s: there is no ticketing instance %d", field, id)
	}
	return err
}

func checkTriage(field string, action *v1.AutomationAction) error {
	if err := requireKeys(field, action, []string{configState}, []string{configReason, configNote}); err != nil {
		return err
	}
	config := action.GetConfig()
	state := strings.ToLower(word(config[configState], "FINDING_TRIAGE_STATE_"))
	reason := strings.ToLower(word(config[configReason], "FINDING_TRIAGE_REASON_"))
	if !slices.Contains(remediation.States, state) {
		return apierr.InvalidArgument(field+".config.state", "%s.config.state must be reviewing, fixing or ignored", field)
	}
	if reason != "" && state != lifecycle.Ignored {
		return apierr.InvalidArgument(field+".config.reason", "%s.config.reason is allowed only with the state ignored", field)
	}
	if reasons := remediation.IgnoreReasons; reason != "" && !slices.Contains(reasons, reason) {
		return apierr.InvalidArgument(field+".config.reason", "%s.config.reason must be one of %s", field, strings.Join(reasons, ", "))
	}
	config[configState] = state
	if reason != "" {
		config[configReason] = reason
	}
	return nil
}

// requireKeys refuses missing and unknown keys of the config.
func requireKeys(field string, action *v1.AutomationAction, required, optional []string) error {
	for _, key := range required {
		if action.GetConfig()[key] == "" {
			return apierr.InvalidArgument(field+".config", "%s.config.%s is required for %s", field, key, action.GetType())
		}
	}
	known := slices.Concat(required, optional)
	for key := range action.GetConfig() {
		if !slices.Contains(known, key) {
			return apierr.InvalidArgument(field+".config", "%s.config has an unknown key %s: %s takes %s", field, apierr.Quote(key), action.GetType(), strings.Join(known, ", "))
		}
	}
	return nil
}

// checkRule requires a notification rule of the channel.
func (c checker) checkRule(ctx context.Context, field, text, wanted string) error {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return apierr.InvalidArgument(field, "%s must be the id of a notification rule", field)
	}
	rule, err := c.db.NotificationRule.Query().Where(notificationrule.ID(id)).Select(notificationrule.FieldChannel).Only(ctx)
	if ent.IsNotFound(err) {
		return apierr.InvalidArgument(field, "%s: there is no notification rule %d", field, id)
	}
	if err == nil && rule.Channel != wanted {
		return apierr.InvalidArgument(field, "%s: notification rule %d has the channel %s, not %s", field, id, rule.Channel, wanted)
	}
	return err
}

// checkName requires a name that no other automation has.
func (c checker) checkName(ctx context.Context, name string, own int64) error {
	if name == "" {
		return apierr.InvalidArgument("automation.name", "automation.name is required")
	}
	taken, err := c.db.Automation.Query().Where(automation.Name(name), automation.IDNEQ(own)).Exist(ctx)
	if err == nil && taken {
		return apierr.AlreadyExists("there is an automation %s already", apierr.Quote(name))
	}
	return err
}
