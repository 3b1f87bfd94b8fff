package notifications

import (
	"context"
	"fmt"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notification"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	day = 24 * time.Hour
	// firstNotice and lastNotice are how long before its end administrators are told about an API token. A token that
	// never had so much time left gives no such notice.
	firstNotice, lastNotice = 14 * day, day
	// tokensAtOnce is how many tokens are read together.
	tokensAtOnce = 500
)

// TellExpiring notifies administrators of API tokens that expire soon, once for each notice. It reads all tokens, which
// are few.
func TellExpiring(ctx context.Context, st *store.Store, now time.Time) error {
	for after := int64(0); ; {
		rows, err := st.Reader.Token.Query().
			Where(token.IDGT(after), token.RevokedAtIsNil(), token.ExpiresAtGT(store.Micros(now)), token.ExpiresAtLTE(store.Micros(now.Add(firstNotice)))).
			Order(ent.Asc(token.FieldID)).Limit(tokensAtOnce).All(tenant.System(ctx))
		if err != nil {
			return err
		}
		of := map[int64][]*ent.Token{}
		for _, row := range rows {
			if noticeOf(row, now) != "" {
				of[row.DeploymentID] = append(of[row.DeploymentID], row)
			}
		}
		for deploymentID, list := range of {
			if err := tellExpiring(tenant.NewContext(ctx, deploymentID), st, list, now); err != nil {
				return err
			}
		}
		if len(rows) < tokensAtOnce {
			return nil
		}
		after = rows[len(rows)-1].ID
	}
}

// noticeOf is the key of the notice that is due; empty if none is.
func noticeOf(row *ent.Token, now time.Time) string {
	ends, life := store.Time(*row.ExpiresAt), time.Duration(*row.ExpiresAt-row.CreatedAt)*time.Microsecond
	switch left := ends.Sub(now); {
	case left <= lastNotice && life > lastNotice:
		return fmt.Sprintf("token_expires:%d:last", row.ID)
	case left > lastNotice && left <= firstNotice && life > firstNotice:
		return fmt.Sprintf("token_expires:%d:first", row.ID)
	}
	return ""
}

// tellExpiring writes the notices of a deployment that are not written yet.
func tellExpiring(ctx context.Context, st *store.Store, rows []*ent.Token, now time.Time) error {
	keys, users := make([]string, len(rows)), make([]int64, len(rows))
	for i, row := range rows {
		keys[i], users[i] = noticeOf(row, now), row.UserID
	}
	written, err := st.Reader.Notification.Query().Where(store.OneOf(notification.FieldDedupKey, keys)).Select(notification.FieldDedupKey).Strings(ctx)
	if err != nil || len(written) == len(keys) {
		return err
	}
	creators, err := st.Reader.User.Query().Where(store.WithIDs[predicate.User](users)).All(tenant.System(ctx))
	if err != nil {
		return err
	}
	emails := map[int64]string{}
	for _, user := range creators {
		emails[user.ID] = user.Email
	}
	return st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		for i, row := range rows {
			err := notifyAdmins(ctx, tx, notificationsv1.Severity_SEVERITY_WARNING, keys[i],
				fmt.Sprintf("The API token %q expires on %s", row.Name, store.Time(*row.ExpiresAt).UTC().Format("2 January 2006 at 15:04 UTC")),
				fmt.Sprintf("It ends in %s, and %s created it. Create another token, and replace this one where it is used; requests with it fail from then on.", row.Hint, emails[row.UserID]))
			if err != nil {
				return err
			}
		}
		return nil
	})
}
