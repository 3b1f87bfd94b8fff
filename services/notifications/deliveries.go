package notifications

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/deliveryattempt"
	"github.com/palisade/palisade/ent/notificationrule"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/retry"
)

// attemptsShown is the maximum number of attempts returned for a delivery.
const attemptsShown = 100

// Deliveries is the service group "deliveries": the ledger.
type Deliveries struct {
	notificationsv1.UnimplementedDeliveriesServiceServer
	store *store.Store
	jobs  *jobs.Jobs
}

// NewDeliveries serves the ledger from the store.
func NewDeliveries(st *store.Store, queue *jobs.Jobs) *Deliveries {
	return &Deliveries{store: st, jobs: queue}
}

// listed are the columns of lists: all except the payload.
var listed = []string{
	delivery.FieldID, delivery.FieldRuleID, delivery.FieldEventID, delivery.FieldKind, delivery.FieldProjectID, delivery.FieldScanID,
	delivery.FieldState, delivery.FieldAttempts, delivery.FieldNextAttemptAt, delivery.FieldGiveUpAt, delivery.FieldLastStatus,
	delivery.FieldLastError, delivery.FieldReplayOf, delivery.FieldCreatedAt, delivery.FieldFinishedAt,
}

// ListDeliveries lists deliveries, newest first.
func (s *Deliveries) ListDeliveries(ctx context.Context, r *notificationsv1.ListDeliveriesRequest) (*notificationsv1.ListDeliveriesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("deliveries", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.Delivery.Query()
	if r.GetRuleId() != 0 {
		query.Where(delivery.RuleID(r.GetRuleId()))
	}
	if r.GetState() != notificationsv1.DeliveryState_DELIVERY_STATE_UNSPECIFIED {
		query.Where(delivery.State(stateWords[r.GetState()]))
	}
	if continued {
		query.Where(delivery.IDLT(key.ID))
	}
	limit := limitOf(r.GetLimit())
	rows, err := query.Order(ent.Desc(delivery.FieldID)).Limit(limit + 1).Select(listed...).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &notificationsv1.ListDeliveriesResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		response.Deliveries = append(response.Deliveries, convertDelivery(row))
	}
	return response, nil
}

// GetDelivery returns a delivery with its payload and its latest attempts.
func (s *Deliveries) GetDelivery(ctx context.Context, r *notificationsv1.GetDeliveryRequest) (*notificationsv1.GetDeliveryResponse, error) {
	row, err := findDelivery(ctx, s.store.Reader, r.GetDeliveryId())
	if err != nil {
		return nil, err
	}
	attempts, err := s.store.Reader.DeliveryAttempt.Query().Where(deliveryattempt.DeliveryID(row.ID)).
		Order(ent.Desc(deliveryattempt.FieldID)).Limit(attemptsShown).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &notificationsv1.GetDeliveryResponse{
		Delivery: convertDelivery(row), Attempts: make([]*notificationsv1.DeliveryAttempt, len(attempts)), Payload: string(row.Payload),
	}
	for i, a := range attempts {
		response.Attempts[len(attempts)-1-i] = &notificationsv1.DeliveryAttempt{
			Status: a.Status, Error: a.Error, DurationMs: int32(a.DurationUs / 1000), At: timestamp(a.At),
		}
	}
	return response, nil
}

// ReplayDelivery sends the message of a finished delivery again.
func (s *Deliveries) ReplayDelivery(ctx context.Context, r *notificationsv1.ReplayDeliveryRequest) (*notificationsv1.ReplayDeliveryResponse, error) {
	response := &notificationsv1.ReplayDeliveryResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		old, err := findDelivery(ctx, tx.Client(), r.GetDeliveryId())
		if err != nil {
			return err
		}
		if old.State == statePending {
			return apierr.FailedPrecondition("delivery %d is pending: it will be sent anyway", old.ID)
		}
		enabled, err := tx.NotificationRule.Query().Where(notificationrule.ID(old.RuleID), notificationrule.IsEnabled(true)).Exist(ctx)
		if err != nil {
			return err
		}
		if !enabled {
			return apierr.FailedPrecondition("the rule %d of delivery %d was deleted or is disabled", old.RuleID, old.ID)
		}
		now := store.Now()
		create := tx.Delivery.Create().SetRuleID(old.RuleID).SetEventID(old.EventID).SetKind(old.Kind).SetProjectID(old.ProjectID).
			SetScanID(old.ScanID).SetPayload(old.Payload).SetState(statePending).SetNextAttemptAt(now).
			SetGiveUpAt(now + retry.GiveUpAfter.Microseconds()).SetReplayOf(old.ID).SetCreatedAt(now)
		if len(old.DeliveredTo) > 0 { // send an e-mail only to recipients that did not get it
			create.SetDeliveredTo(old.DeliveredTo)
		}
		row, err := create.Save(ctx)
		if err != nil {
			return err
		}
		response.Delivery = convertDelivery(row)
		audit.Change(ctx, "delivery", row.ID, nil, response.GetDelivery())
		return s.jobs.Enqueue(ctx, outbox.Deliver{Cause: outbox.CauseEvent}, nil)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

func findDelivery(ctx context.Context, db *ent.Client, id int64) (*ent.Delivery, error) {
	row, err := db.Delivery.Query().Where(delivery.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("delivery %d not found", id)
	}
	return row, err
}

var stateWords = map[notificationsv1.DeliveryState]string{
	notificationsv1.DeliveryState_DELIVERY_STATE_PENDING:   statePending,
	notificationsv1.DeliveryState_DELIVERY_STATE_DELIVERED: stateDelivered,
	notificationsv1.DeliveryState_DELIVERY_STATE_ABANDONED: stateAbandoned,
	notificationsv1.DeliveryState_DELIVERY_STATE_CANCELED:  stateCanceled,
}

var kindWords = map[notificationsv1.DeliveryKind]string{
	notificationsv1.DeliveryKind_DELIVERY_KIND_FINDINGS:    kindFindings,
	notificationsv1.DeliveryKind_DELIVERY_KIND_SCAN:        kindScan,
	notificationsv1.DeliveryKind_DELIVERY_KIND_WORKFLOW:    outbox.KindWorkflow,
	notificationsv1.DeliveryKind_DELIVERY_KIND_HELD_CLOSES: kindHeld,
	notificationsv1.DeliveryKind_DELIVERY_KIND_RULE_ALERT:  outbox.KindRuleAlert,
	notificationsv1.DeliveryKind_DELIVERY_KIND_FRESHNESS:   outbox.KindFreshness,
	notificationsv1.DeliveryKind_DELIVERY_KIND_REPORT:      outbox.KindReport,
	notificationsv1.DeliveryKind_DELIVERY_KIND_AUTOMATION:  outbox.KindAutomation,
	notificationsv1.DeliveryKind_DELIVERY_KIND_POLICY:      outbox.KindPolicy,
}

func convertDelivery(row *ent.Delivery) *notificationsv1.Delivery {
	out := &notificationsv1.Delivery{
		Id: row.ID, RuleId: row.RuleID, EventId: row.EventID, ProjectId: row.ProjectID, ScanId: row.ScanID, Attempts: row.Attempts,
		LastStatus: row.LastStatus, LastError: row.LastError, GiveUpAt: timestamp(row.GiveUpAt), CreatedAt: timestamp(row.CreatedAt),
		FinishedAt: store.Timestamp(row.FinishedAt), State: keyOf(stateWords, row.State), Kind: keyOf(kindWords, row.Kind),
	}
	if row.State == statePending {
		out.NextAttemptAt = timestamp(row.NextAttemptAt)
	}
	if row.ReplayOf != nil {
		out.ReplayOf = *row.ReplayOf
	}
	return out
}

func keyOf[K ~int32](words map[K]string, word string) (unspecified K) {
	for key, text := range words {
		if text == word {
			return key
		}
	}
	return unspecified
}
