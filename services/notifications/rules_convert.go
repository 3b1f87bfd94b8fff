package notifications

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notificationwebhook"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/reporting/cadence"
)

// wantedRule is a validated rule from a request.
type wantedRule struct {
	*notificationsv1.NotificationRuleInput
	channel            string
	config, secrets    map[string]string // config without credentials
	policySlugs        []string
	enabled            bool
	sendScanCompletion bool
	sendFindings       bool
	report             []byte // as stored; nil for none
	nextReport         *int64 // nil for a disabled rule
}

// check converts a rule to its stored form. old is the rule that it replaces, or nil.
func (s *NotificationRules) check(ctx context.Context, tx *ent.Tx, in *notificationsv1.NotificationRuleInput, old *ent.NotificationRule) (*wantedRule, error) {
	out := &wantedRule{NotificationRuleInput: in, channel: channelName(in.GetChannel())}
	kept := map[string]string{}
	if old != nil && old.Channel == out.channel {
		var err error
		if kept, err = s.senders.secretsOf(old); err != nil {
			kept = map[string]string{} // unreadable credentials are dropped; the caller can set them again
		}
	}
	out.config, out.secrets = splitConfig(out.channel, in.GetConfig(), kept)
	if err := splitURL(out, in.GetConfig()[keyURL], old, kept); err != nil {
		return nil, err
	}
	full := map[string]string{}
	for _, part := range []map[string]string{out.config, out.secrets} {
		for name, value := range part {
			full[name] = value
		}
	}
	if err := channel.Validate(out.channel, full, s.senders.guard); err != nil {
		field := "notificationRule.config"
		if !slices.Contains(channel.Channels(), out.channel) {
			field = "notificationRule.channel"
		}
		return nil, apierr.InvalidArgument(field, "%v", err)
	}
	if id := webhookID(&ent.NotificationRule{Config: out.config}); id != 0 {
		exists, err := tx.NotificationWebhook.Query().Where(notificationwebhook.ID(id)).Exist(ctx)
		if err != nil {
			return nil, err
		}
		if !exists {
			return nil, apierr.InvalidArgument("notificationRule.config", "config.%s must be the id of a notification webhook of the deployment, got %d", keyWebhook, id)
		}
	}
	if err := checkPolicies(ctx, tx.Client(), in.GetPolicySlugs(), old); err != nil {
		return nil, err
	}
	out.enabled = in.IsEnabled == nil || in.GetIsEnabled()
	out.policySlugs = slices.Compact(slices.Sorted(slices.Values(in.GetPolicySlugs())))
	if out.policySlugs == nil {
		out.policySlugs = []string{}
	}
	out.sendFindings = in.SendFindings == nil || in.GetSendFindings()
	if err := out.schedule(time.Now()); err != nil {
		return nil, err
	}
	if err := checkReport(ctx, tx.Client(), in.GetSendReport(), old); err != nil {
		return nil, err
	}
	out.sendScanCompletion = out.channel == channel.Webhook && (in.SendScanCompletion == nil || in.GetSendScanCompletion())
	return out, nil
}

// schedule checks the report and computes when the next one is due.
func (w *wantedRule) schedule(now time.Time) error {
	report := w.GetSendReport()
	if report == nil {
		return nil
	}
	if err := cadence.Check(report); err != nil {
		return apierr.InvalidArgument("notificationRule.send_report", "send_report: %v", err)
	}
	var err error
	if w.report, err = proto.Marshal(report); err != nil {
		return err
	}
	if w.enabled {
		next := store.Micros(cadence.Next(report, now))
		w.nextReport = &next
	}
	return nil
}

// channelName accepts the contract's words in any case, with or without CHANNEL_. Unknown text is returned unchanged
// for the error message.
func channelName(text string) string {
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, "CHANNEL_") {
		name = "CHANNEL_" + name
	}
	if slices.Contains(channel.Channels(), name) {
		return name
	}
	return text
}

// splitConfig separates the credentials from the other keys. Credentials that the request omits are kept, unless the
// rule now names a webhook, which has its own. An empty value counts as absent.
func splitConfig(kind string, given, kept map[string]string) (config, secrets map[string]string) {
	config, secrets = map[string]string{}, map[string]string{}
	if given[keyWebhook] == "" {
		for name, value := range kept {
			secrets[name] = value
		}
	}
	isSecret := map[string]bool{}
	for _, key := range channel.Keys(kind) {
		isSecret[key.Name] = key.Secret
	}
	for name, value := range given {
		known, part := isSecret[name], config
		if known {
			part = secrets
		}
		delete(part, name)
		if value != "" || !isKey(kind, name) { // reject an unknown key with any value
			part[name] = value
		}
	}
	return config, secrets
}

func isKey(kind, name string) bool {
	return slices.ContainsFunc(channel.Keys(kind), func(k channel.Key) bool { return k.Name == name })
}

func (s *NotificationRules) sealSecrets(id int64, secrets map[string]string) ([]byte, error) {
	plain, err := json.Marshal(secrets)
	if err != nil {
		return nil, err
	}
	return s.senders.keyring.Seal(plain, ruleSecretsOf(id))
}

func (s *NotificationRules) convertOne(ctx context.Context, db *ent.Client, row *ent.NotificationRule) (*notificationsv1.NotificationRule, error) {
	list, err := s.convertAll(ctx, db, []*ent.NotificationRule{row})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

func (s *NotificationRules) convertAll(ctx context.Context, db *ent.Client, rows []*ent.NotificationRule) ([]*notificationsv1.NotificationRule, error) {
	known, err := targetsOf(ctx, db, rows)
	if err != nil {
		return nil, err
	}
	selectors, err := selectorsOf(ctx, db, rows)
	if err != nil {
		return nil, err
	}
	names, err := reportNamesOfRules(ctx, db, rows)
	if err != nil {
		return nil, err
	}
	list := make([]*notificationsv1.NotificationRule, len(rows))
	for i, row := range rows {
		list[i] = s.convert(row, known, selectors, names)
	}
	return list, nil
}

// convert builds the answer, without credentials.
func (s *NotificationRules) convert(
	row *ent.NotificationRule, known targets, selectors remediation.Selectors, names *reportNames,
) *notificationsv1.NotificationRule {
	out := &notificationsv1.NotificationRule{
		Id: row.ID, Channel: row.Channel, Config: s.shownConfig(row), IsEnabled: row.IsEnabled, Name: row.Name, PolicySlugs: row.PolicySlugs,
		UseNetworkBroker: row.UseNetworkBroker, SendScanCompletion: row.SendScanCompletion,
	}
	if row.SendHeldCloses {
		out.SendHeldCloses = &row.SendHeldCloses
	}
	if row.SendRuleAlerts {
		out.SendRuleAlerts = &row.SendRuleAlerts
	}
	if row.SendFreshness {
		out.SendFreshness = &row.SendFreshness
	}
	if !row.SendFindings {
		out.SendFindings = &row.SendFindings
	}
	out.SendReport = reportOf(row)
	out.NextReportAt, out.LastReportAt = timestampIfAny(row.NextReportAt), timestampIfAny(row.LastReportAt)
	problems := []string{refusedText(row.RefusedRecipients), policiesText(row.PolicySlugs, selectors), names.reportText(out.GetSendReport())}
	if _, err := s.senders.open(row, known); err != nil {
		problems[0] = err.Error()
	}
	out.ConfigError = strings.Join(slices.DeleteFunc(problems, func(text string) bool { return text == "" }), "; ")
	return out
}
