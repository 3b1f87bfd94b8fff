package notifications

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notification"
	"github.com/palisade/palisade/ent/notificationseen"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

const defaultLimit = 100

// Notifications is the service group "notifications".
type Notifications struct {
	notificationsv1.UnimplementedNotificationsServiceServer
	store *store.Store
}

// NewNotifications serves in-app notifications from the store.
func NewNotifications(st *store.Store) *Notifications { return &Notifications{store: st} }

// GetNotifications lists the notifications that the caller has not seen, newest first.
func (s *Notifications) GetNotifications(ctx context.Context, r *notificationsv1.GetNotificationsRequest) (*notificationsv1.GetNotificationsResponse, error) {
	who, err := reader(ctx)
	if err != nil {
		return nil, err
	}
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("notifications", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.Notification.Query().Where(who.visible()...).Where(who.seen(false))
	if continued {
		query.Where(func(sel *entsql.Selector) {
			sel.Where(entsql.CompositeLT([]string{sel.C(notification.FieldCreatedAt), sel.C(notification.FieldID)}, key.Order, key.ID))
		})
	}
	limit := limitOf(r.GetLimit())
	rows, err := query.Order(ent.Desc(notification.FieldCreatedAt, notification.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &notificationsv1.GetNotificationsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		response.Cursor = page.Encode(digest, page.Key{Order: last.CreatedAt, ID: last.ID})
	}
	for _, row := range rows {
		response.Notifications = append(response.Notifications, convertNotification(row, notificationsv1.Status_STATUS_DELIVERED))
	}
	return response, nil
}

// MarkNotificationsAsSeen marks all given notifications, or none if the caller may not see one of them.
func (s *Notifications) MarkNotificationsAsSeen(ctx context.Context, r *notificationsv1.MarkNotificationsAsSeenRequest) (*notificationsv1.MarkNotificationsAsSeenResponse, error) {
	who, err := reader(ctx)
	if err != nil {
		return nil, err
	}
	response := &notificationsv1.MarkNotificationsAsSeenResponse{}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		ids := slices.Compact(slices.Sorted(slices.Values(r.GetNotificationIds())))
		rows, err := tx.Notification.Query().Where(who.visible()...).Where(store.OneOf(notification.FieldID, ids)).Order(ent.Asc(notification.FieldID)).All(ctx)
		if err != nil {
			return err
		}
		if err := requireAll(ids, rows); err != nil {
			return err
		}
		unseen, err := tx.Notification.Query().Where(store.OneOf(notification.FieldID, ids), who.seen(false)).IDs(ctx)
		if err != nil {
			return err
		}
		now := store.Now()
		var seen []*ent.NotificationSeenCreate
		for _, row := range rows {
			after := convertNotification(row, notificationsv1.Status_STATUS_SEEN)
			response.Notifications = append(response.Notifications, after)
			if slices.Contains(unseen, row.ID) {
				seen = append(seen, tx.NotificationSeen.Create().SetDeploymentID(row.DeploymentID).SetNotificationID(row.ID).SetUserID(who.userID).SetAt(now))
				audit.Change(ctx, "notification", row.ID, convertNotification(row, notificationsv1.Status_STATUS_DELIVERED), after)
			}
		}
		for part := range slices.Chunk(seen, store.RowsAtOnce) {
			err := tx.NotificationSeen.CreateBulk(part...).
				OnConflictColumns(notificationseen.FieldDeploymentID, notificationseen.FieldUserID, notificationseen.FieldNotificationID).Ignore().Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// requireAll returns an error that names the ids without a row.
func requireAll(ids []int64, rows []*ent.Notification) error {
	var missing []string
	for _, id := range ids {
		if !slices.ContainsFunc(rows, func(row *ent.Notification) bool { return row.ID == id }) {
			missing = append(missing, fmt.Sprint(id))
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return apierr.NotFound("notification %s not found", missing[0])
	}
	return apierr.NotFound("notifications %s not found", strings.Join(missing, ", "))
}

// viewer is the caller that reads notifications.
type viewer struct {
	deploymentID, userID int64
	admin                bool
}

func reader(ctx context.Context) (viewer, error) {
	principal, known := access.FromContext(ctx)
	grant, granted := access.GrantFromContext(ctx)
	if !known || !granted {
		return viewer{}, errors.New("the request has no principal or no deployment")
	}
	return viewer{deploymentID: grant.DeploymentID, userID: principal.UserID, admin: grant.Role == access.RoleAdmin}, nil
}

// visible excludes notifications for administrators if the viewer is not one.
func (v viewer) visible() []predicate.Notification {
	if v.admin {
		return nil
	}
	return []predicate.Notification{notification.AdminOnly(false)}
}

// seen filters by whether the viewer has seen a notification.
func (v viewer) seen(want bool) predicate.Notification {
	return func(s *entsql.Selector) {
		marks := entsql.Dialect(s.Dialect()).Table(notificationseen.Table)
		mark := entsql.Dialect(s.Dialect()).Select(marks.C(notificationseen.FieldID)).From(marks).Where(entsql.And(
			entsql.EQ(marks.C(notificationseen.FieldDeploymentID), v.deploymentID),
			entsql.EQ(marks.C(notificationseen.FieldUserID), v.userID),
			entsql.ColumnsEQ(marks.C(notificationseen.FieldNotificationID), s.C(notification.FieldID)),
		))
		if want {
			s.Where(entsql.Exists(mark))
		} else {
			s.Where(entsql.NotExists(mark))
		}
	}
}

func convertNotification(row *ent.Notification, status notificationsv1.Status) *notificationsv1.Notification {
	return &notificationsv1.Notification{
		Id: row.ID, Title: row.Title, Description: row.Description,
		Severity: notificationsv1.Severity(notificationsv1.Severity_value[row.Severity]), Status: status, AdminOnly: row.AdminOnly,
		CreatedAt: timestamp(row.CreatedAt), Link: row.Link, IsExternalLink: row.IsExternalLink, LinkText: row.LinkText,
	}
}

func limitOf(asked int64) int {
	if asked == 0 {
		return defaultLimit
	}
	return int(asked)
}

func timestamp(micros int64) *timestamppb.Timestamp { return timestamppb.New(store.Time(micros)) }

func timestampIfAny(micros *int64) *timestamppb.Timestamp {
	if micros == nil {
		return nil
	}
	return timestamp(*micros)
}

// notifyAbandoned notifies administrators, at most once a day per rule, that messages were abandoned.
func notifyAbandoned(ctx context.Context, tx *ent.Tx, rule *ent.NotificationRule, reason string) error {
	return notifyAdmins(ctx, tx, notificationsv1.Severity_SEVERITY_ERROR, daily("delivery_abandoned", rule.ID),
		fmt.Sprintf("Messages of the notification rule %q were given up", rule.Name),
		"At least one message was not delivered and is not tried again: "+reason+". The ledger of deliveries lists it; it can be replayed from there.")
}

// notifyOpened notifies administrators, at most once a day per rule, that its receiver is down.
func notifyOpened(ctx context.Context, tx *ent.Tx, rule *ent.NotificationRule) error {
	return notifyAdmins(ctx, tx, notificationsv1.Severity_SEVERITY_WARNING, daily("circuit_opened", rule.ID),
		fmt.Sprintf("The receiver of the notification rule %q keeps failing", rule.Name),
		fmt.Sprintf("%d messages in a row were not delivered. Palisade goes on with single messages until one arrives, for 24 hours each. Test the rule to see the error.", failuresInARow))
}

// daily is a key of notifications that a rule gives once a day.
func daily(kind string, ruleID int64) string {
	return fmt.Sprintf("%s:%d:%s", kind, ruleID, time.Now().UTC().Format(time.DateOnly))
}

// notifyAdmins writes a notification for administrators, once for each key.
func notifyAdmins(ctx context.Context, tx *ent.Tx, severity notificationsv1.Severity, key, title, description string) error {
	deploymentID, _ := tenant.FromContext(ctx)
	now := store.Now()
	return tx.Notification.Create().SetDeploymentID(deploymentID).SetDedupKey(key).SetTitle(title).SetDescription(description).
		SetSeverity(severity.String()).SetAdminOnly(true).SetLink("").SetIsExternalLink(false).SetLinkText("").SetCreatedAt(now).
		OnConflictColumns(notification.FieldDeploymentID, notification.FieldDedupKey).Ignore().Exec(ctx)
}
