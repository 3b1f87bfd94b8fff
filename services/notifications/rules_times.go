package notifications

import (
	"bytes"
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/digestpart"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/timing"
)

// checkTimes checks the digest and the quiet hours, and computes when the next digest is due. old is the rule that is
// replaced, or nil.
func (w *wantedRule) checkTimes(now time.Time, old *ent.NotificationRule) (err error) {
	if quiet := w.GetQuietHours(); quiet != nil {
		if err := timing.CheckQuiet(quiet); err != nil {
			return apierr.InvalidArgument("notificationRule.quiet_hours", "quiet_hours: %v", err)
		}
		if w.quiet, err = marshal(quiet); err != nil {
			return err
		}
	}
	digest := w.GetDigest()
	if digest == nil {
		if w.enabled && digestOf(old) != nil && old.NextDigestAt != nil {
			last := store.Micros(now) // what waits is sent as the last digest
			w.nextDigest = &last
		}
		return nil
	}
	if !isForPeople(&ent.NotificationRule{Channel: w.channel}) {
		return apierr.InvalidArgument("notificationRule.digest", "digest is for channels that people read, such as e-mail and chats, not for %s", w.channel)
	}
	if err := timing.CheckDigest(digest); err != nil {
		return apierr.InvalidArgument("notificationRule.digest", "digest: %v", err)
	}
	if w.digest, err = marshal(digest); err != nil || !w.enabled {
		return err
	}
	next := store.Micros(timing.NextDigest(digest, now))
	if old != nil && old.NextDigestAt != nil && bytes.Equal(old.Digest, w.digest) {
		next = *old.NextDigestAt // it may be due already
	}
	w.nextDigest = &next
	return nil
}

// marshal gives the same bytes for the same message.
func marshal(m proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// digestOf is the digest of a stored rule; nil if it has none, or one that this program did not write.
func digestOf(row *ent.NotificationRule) *notificationsv1.DigestSchedule {
	digest := &notificationsv1.DigestSchedule{}
	if row == nil || len(row.Digest) == 0 || proto.Unmarshal(row.Digest, digest) != nil {
		return nil
	}
	return digest
}

// quietOf is the same for the quiet hours.
func quietOf(row *ent.NotificationRule) *notificationsv1.QuietHours {
	quiet := &notificationsv1.QuietHours{}
	if len(row.QuietHours) == 0 || proto.Unmarshal(row.QuietHours, quiet) != nil {
		return nil
	}
	return quiet
}

// stop cancels what waits for a rule that is deleted or disabled: its deliveries, and the parts of its next digest.
func stop(ctx context.Context, st *store.Store, tx *ent.Tx, ruleID int64) error {
	if _, err := tx.DigestPart.Delete().Where(digestpart.RuleID(ruleID)).Exec(ctx); err != nil {
		return err
	}
	return cancelOf(ctx, st, tx, ruleID)
}
