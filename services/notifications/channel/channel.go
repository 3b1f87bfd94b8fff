package channel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/mailserver"
)

// The channels, as notification rules name them (facts 3.16).
const (
	Webhook = "CHANNEL_WEBHOOK"
	Slack   = "CHANNEL_SLACK_WEBHOOK"
	Email   = "CHANNEL_EMAIL"
	S3      = "CHANNEL_S3"
)

// Message is what is sent. Webhooks and buckets get Payload, people get Subject and Text.
type Message struct {
	// Kind is "findings", "scan" or "test".
	Kind string
	// EventID is the same for each attempt and each replay, so that receivers can tell a message they have.
	EventID string
	// Payload is the exact JSON body; it is signed and sent byte for byte.
	Payload []byte
	// Subject is one line, Text plain text of any length.
	Subject, Text string
	// At is when it happened.
	At time.Time
	// ObjectKey is the object's name below the prefix of a bucket; empty: the date of At, a slash, EventID and ".json".
	ObjectKey string
	// DeliveredTo are the recipients of an e-mail that have it already.
	DeliveredTo []string
}

// Sender sends messages to one receiver. It is safe for use by several goroutines.
type Sender interface {
	// Send makes one attempt. status is the HTTP status that the receiver answered, 0 without one (e-mail has none).
	// A failure is an [*Error].
	Send(ctx context.Context, m Message) (status int, err error)
}

// Limits of one attempt. A receiver's answer is of no interest beyond its status.
const (
	sendTimeout = 15 * time.Second
	maxAnswer   = 64 << 10
)

// Open makes the sender of a rule. config holds the keys of [Keys], secrets included; a webhook_id must have been
// replaced by the url and the secret of that webhook. The error says why the rule cannot be built, in words for the
// person who made it.
func Open(kind string, config map[string]string, guard *egress.Guard, mail mailserver.Config) (Sender, error) {
	if err := Validate(kind, config, guard); err != nil {
		return nil, err
	}
	switch kind {
	case Webhook:
		if config["url"] == "" {
			return nil, errors.New("the webhook that config.webhook_id names does not exist")
		}
		return newWebhook(config, guard)
	case Slack:
		return newSlack(config, guard), nil
	case Email:
		return newEmail(config, guard, mail)
	case S3:
		return newBucket(config, guard)
	}
	return nil, fmt.Errorf("channel %q has no sender", kind) // Validate knows the same four
}
