package notifications

import (
	"context"
	"maps"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/notificationrule"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// maxRules is the maximum number of rules in a list.
const maxRules = 1000

// NotificationRules is the service group "notification rules".
type NotificationRules struct {
	notificationsv1.UnimplementedNotificationRulesServiceServer
	store   *store.Store
	jobs    *jobs.Jobs
	senders *Senders
	reports *outbox.Reporter
}

// NewNotificationRules serves rules from the store. A test of a rule with a report sends what the reporter writes.
func NewNotificationRules(senders *Senders, queue *jobs.Jobs, reports *outbox.Reporter) *NotificationRules {
	return &NotificationRules{store: senders.store, jobs: queue, senders: senders, reports: reports}
}

// CreateNotificationRule creates a rule.
func (s *NotificationRules) CreateNotificationRule(ctx context.Context, r *notificationsv1.CreateNotificationRuleRequest) (*notificationsv1.CreateNotificationRuleResponse, error) {
	response := &notificationsv1.CreateNotificationRuleResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		wanted, err := s.check(ctx, tx, r.GetNotificationRule(), nil)
		if err != nil {
			return err
		}
		now := store.Now()
		row, err := tx.NotificationRule.Create().SetChannel(wanted.channel).SetName(wanted.GetName()).SetConfig(wanted.config).
			SetIsEnabled(wanted.enabled).SetPolicySlugs(wanted.policySlugs).SetUseNetworkBroker(wanted.GetUseNetworkBroker()).
			SetSendScanCompletion(wanted.sendScanCompletion).SetSendHeldCloses(wanted.GetSendHeldCloses()).
			SetSendRuleAlerts(wanted.GetSendRuleAlerts()).SetSendFreshness(wanted.GetSendFreshness()).
			SetSendFindings(wanted.sendFindings).SetSendReport(wanted.report).SetNillableNextReportAt(wanted.nextReport).
			SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		if len(wanted.secrets) > 0 {
			sealed, err := s.sealSecrets(row.ID, wanted.secrets)
			if err != nil {
				return err
			}
			if row, err = row.Update().SetSecrets(sealed).Save(ctx); err != nil {
				return err
			}
		}
		response.NotificationRule, err = s.convertOne(ctx, tx.Client(), row)
		audit.Change(ctx, "notification_rule", row.ID, nil, response.GetNotificationRule())
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// DeleteNotificationRule deletes a rule and cancels its pending deliveries.
func (s *NotificationRules) DeleteNotificationRule(ctx context.Context, r *notificationsv1.DeleteNotificationRuleRequest) (*notificationsv1.DeleteNotificationRuleResponse, error) {
	response := &notificationsv1.DeleteNotificationRuleResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := findRule(ctx, tx.Client(), r.GetNotificationRuleId())
		if err != nil {
			return err
		}
		if response.NotificationRule, err = s.convertOne(ctx, tx.Client(), row); err != nil {
			return err
		}
		if err := cancelOf(ctx, s.store, tx, row.ID); err != nil {
			return err
		}
		audit.Change(ctx, "notification_rule", row.ID, response.GetNotificationRule(), nil)
		return tx.NotificationRule.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// ReplaceNotificationRule replaces a rule. Its pending deliveries are retried at once with the new config.
func (s *NotificationRules) ReplaceNotificationRule(ctx context.Context, r *notificationsv1.ReplaceNotificationRuleRequest) (*notificationsv1.ReplaceNotificationRuleResponse, error) {
	response := &notificationsv1.ReplaceNotificationRuleResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := findRule(ctx, tx.Client(), r.GetNotificationRuleId())
		if err != nil {
			return err
		}
		before, err := s.convertOne(ctx, tx.Client(), row)
		if err != nil {
			return err
		}
		wanted, err := s.check(ctx, tx, r.GetNotificationRule(), row)
		if err != nil {
			return err
		}
		update := row.Update().SetChannel(wanted.channel).SetName(wanted.GetName()).SetConfig(wanted.config).
			SetIsEnabled(wanted.enabled).SetPolicySlugs(wanted.policySlugs).SetUseNetworkBroker(wanted.GetUseNetworkBroker()).
			SetSendScanCompletion(wanted.sendScanCompletion).SetSendHeldCloses(wanted.GetSendHeldCloses()).
			SetSendRuleAlerts(wanted.GetSendRuleAlerts()).SetSendFreshness(wanted.GetSendFreshness()).
			SetSendFindings(wanted.sendFindings).SetSendReport(wanted.report).ClearNextReportAt().SetNillableNextReportAt(wanted.nextReport).
			SetUpdatedAt(max(store.Now(), row.UpdatedAt+1))
		if wanted.channel != row.Channel || !maps.Equal(wanted.config, row.Config) {
			update.ClearRefusedRecipients()
		}
		if len(wanted.secrets) == 0 {
			update.ClearSecrets()
		} else {
			sealed, err := s.sealSecrets(row.ID, wanted.secrets)
			if err != nil {
				return err
			}
			update.SetSecrets(sealed)
		}
		if row, err = update.Save(ctx); err != nil {
			return err
		}
		if response.NotificationRule, err = s.convertOne(ctx, tx.Client(), row); err != nil {
			return err
		}
		audit.Change(ctx, "notification_rule", row.ID, before, response.GetNotificationRule())
		return resume(ctx, s.store, s.jobs, tx, row)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// resume makes the waiting deliveries of a rule due, or cancels them if the rule is disabled.
func resume(ctx context.Context, st *store.Store, queue *jobs.Jobs, tx *ent.Tx, row *ent.NotificationRule) error {
	if !row.IsEnabled {
		return cancelOf(ctx, st, tx, row.ID)
	}
	if err := lockPending(ctx, st, tx, row.ID); err != nil {
		return err
	}
	now := store.Now()
	n, err := tx.Delivery.Update().Where(isPending, delivery.RuleID(row.ID), delivery.NextAttemptAtGT(now)).SetNextAttemptAt(now).Save(ctx)
	if err != nil || n == 0 {
		return err
	}
	return queue.Enqueue(ctx, outbox.Deliver{Cause: outbox.CauseEvent}, nil)
}

// ListNotificationRules lists rules by id.
func (s *NotificationRules) ListNotificationRules(ctx context.Context, r *notificationsv1.ListNotificationRulesRequest) (*notificationsv1.ListNotificationRulesResponse, error) {
	digest, err := page.DigestOf("notification_rules", &notificationsv1.ListNotificationRulesRequest{DeploymentId: r.GetDeploymentId(), Filters: r.GetFilters()})
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetOptions().GetCursor().GetToken())
	if err != nil {
		return nil, apierr.InvalidCursor("options.cursor.token")
	}
	query := s.store.Reader.NotificationRule.Query()
	if only := r.GetFilters().GetChannel(); only != notificationsv1.Channel_CHANNEL_UNSPECIFIED {
		query.Where(notificationrule.Channel(only.String()))
	}
	if continued {
		query.Where(notificationrule.IDGT(key.ID))
	}
	limit := int(r.GetOptions().GetOptionalLimit())
	if limit == 0 {
		limit = maxRules
	}
	rows, err := query.Order(ent.Asc(notificationrule.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &notificationsv1.ListNotificationRulesResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = &notificationsv1.Cursor{Token: page.Encode(digest, page.Key{ID: rows[limit-1].ID})}
	}
	response.NotificationRules, err = s.convertAll(ctx, s.store.Reader, rows)
	return response, err
}

// TestNotificationRule sends a sample, or the report of a rule with one.
func (s *NotificationRules) TestNotificationRule(ctx context.Context, r *notificationsv1.TestNotificationRuleRequest) (*notificationsv1.TestNotificationRuleResponse, error) {
	row, err := findRule(ctx, s.store.Reader, r.GetNotificationRuleId())
	if err != nil {
		return nil, err
	}
	known, err := targetsOf(ctx, s.store.Reader, []*ent.NotificationRule{row})
	if err != nil {
		return nil, err
	}
	message := sample()
	if len(row.SendReport) > 0 {
		report, err := s.reports.Write(ctx, row)
		if err != nil {
			return nil, err
		}
		message = reportMessage(report)
	}
	failed := s.senders.test(ctx, message, func() (channel.Sender, error) { return s.senders.open(row, known) })
	s.senders.causes.note(ctx, receiver{row.DeploymentID, row.ID}, row.Channel, failed)
	detail := describe(failed)
	if row.Channel == channel.Email {
		err := s.senders.note(ctx, recipientOutcome{
			endpoint: endpoint{receiver{row.DeploymentID, row.ID}, row.UpdatedAt}, all: failed == nil, accepted: detail.accepted, refused: detail.refused,
		})
		if err != nil {
			return nil, err
		}
	}
	return &notificationsv1.TestNotificationRuleResponse{Success: failed == nil, ErrorDetail: detail.text}, nil
}

func findRule(ctx context.Context, db *ent.Client, id int64) (*ent.NotificationRule, error) {
	row, err := db.NotificationRule.Query().Where(notificationrule.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("notification rule %d not found", id)
	}
	return row, err
}
