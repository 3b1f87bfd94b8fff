package notifications

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/notifications/channel"
)

// shownRecipients is the maximum number of refused addresses in config_error.
const shownRecipients = 5

// recipientOutcome is the outcome of one message for its recipients.
type recipientOutcome struct {
	endpoint
	all      bool // all have it
	accepted []string
	refused  map[string]string
}

// noteRecipients stores, in the rules, which recipients the mail server refuses, until it accepts a message for them.
func (e *engine) noteRecipients(ctx context.Context, outcomes []outcome) {
	for _, o := range outcomes {
		if !o.sent || o.rule == nil || o.rule.channel != channel.Email {
			continue
		}
		detail := describe(o.err)
		err := e.senders.note(ctx, recipientOutcome{endpoint: o.rule.endpoint, all: o.err == nil, accepted: detail.accepted, refused: detail.refused})
		if err != nil { // the next message reports it again
			e.log.ErrorContext(ctx, "the mail server's refusals of recipients were not stored", "deployment_id", o.row.DeploymentID, "rule_id", o.row.RuleID, "error", err)
		}
	}
}

// note updates the stored recipients of a rule, unless the rule was changed since the message was sent.
func (s *Senders) note(ctx context.Context, m recipientOutcome) error {
	ctx = tenant.NewContext(ctx, m.deploymentID)
	same := notificationrule.And(notificationrule.ID(m.ruleID), notificationrule.UpdatedAt(m.updatedAt))
	known, err := s.store.Reader.NotificationRule.Query().Where(same).All(ctx)
	if err != nil || len(known) == 0 || maps.Equal(m.merge(known[0].RefusedRecipients), known[0].RefusedRecipients) {
		return err
	}
	return s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		query := tx.NotificationRule.Query().Where(same)
		if s.store.Postgres() {
			query.ForUpdate()
		}
		rows, err := query.All(ctx)
		if err != nil || len(rows) == 0 {
			return err
		}
		update := tx.NotificationRule.Update().Where(same)
		if refused := m.merge(rows[0].RefusedRecipients); len(refused) > 0 {
			update.SetRefusedRecipients(refused)
		} else {
			update.ClearRefusedRecipients()
		}
		return update.Exec(ctx)
	})
}

// merge merges the message's outcome into the stored one.
func (m recipientOutcome) merge(known map[string]string) map[string]string {
	refused := map[string]string{}
	if !m.all {
		maps.Copy(refused, known)
	}
	for _, address := range m.accepted {
		delete(refused, address)
	}
	maps.Copy(refused, m.refused)
	return refused
}

// refusedText is the config_error text about refused recipients; "" if there are none.
func refusedText(refused map[string]string) string {
	if len(refused) == 0 {
		return ""
	}
	var parts []string
	for _, address := range slices.Sorted(maps.Keys(refused)) {
		if len(parts) == shownRecipients {
			parts = append(parts, fmt.Sprintf("and %d more", len(refused)-shownRecipients))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", address, refused[address]))
	}
	return "the mail server refuses addresses of config.to, which get no messages: " + strings.Join(parts, ", ")
}
