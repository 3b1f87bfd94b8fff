package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/notifications/retry"
)

// Pending is the state of deliveries that are not finished.
const Pending = "pending"

// NewDelivery builds a delivery of a message to the receiver of a rule that is due now, in microseconds since 1970.
func NewDelivery(tx *ent.Tx, deploymentID, ruleID int64, event, kind string, body []byte, now int64) *ent.DeliveryCreate {
	return tx.Delivery.Create().SetDeploymentID(deploymentID).SetRuleID(ruleID).SetEventID(event).SetKind(kind).SetPayload(body).
		SetState(Pending).SetNextAttemptAt(now).SetGiveUpAt(now + retry.GiveUpAfter.Microseconds()).SetCreatedAt(now)
}

// NewEventID is an id by which receivers deduplicate. It is created once with the row, and unique across all servers
// that a receiver may get messages from.
func NewEventID() string { return "msg_" + strings.ReplaceAll(uuid.NewString(), "-", "") }

// eventID is the event id of a cause: the same text gives the same id.
func eventID(format string, args ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, format, args...))
	return "msg_" + hex.EncodeToString(sum[:16])
}
