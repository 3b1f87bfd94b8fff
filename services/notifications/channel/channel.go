package channel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/mailserver"
)

// Channel names in notification rules (facts 3.16).
const (
	Webhook = "CHANNEL_WEBHOOK"
	Slack   = "CHANNEL_SLACK_WEBHOOK"
	Email   = "CHANNEL_EMAIL"
	S3      = "CHANNEL_S3"
	Chat    = "CHANNEL_CHAT_WEBHOOK"
	// SlackApp posts to a channel of the workspace in which the chat app is installed.
	SlackApp = "CHANNEL_SLACK_APP"
)

// Message is one message. Webhooks and buckets get Payload; people get Subject and Text.
type Message struct {
	// Kind is "findings", "scan" or "test".
	Kind string
	// EventID is the same for all attempts and replays, so that receivers can deduplicate.
	EventID string
	// Payload is the exact JSON body. It is signed and sent unchanged.
	Payload []byte
	// Subject is one line. Text is plain text of any length.
	Subject, Text string
	// Link leads to what the message is about; empty for none. Home is what links to this server begin with.
	Link, Home string
	// Why is a line for e-mail: why the reader gets the message, and who can change that.
	Why string
	// HTML is another form of Text for e-mail; empty for none.
	HTML string
	// ReplyTo is the address for answers to an e-mail; empty for the sender's.
	ReplyTo string
	// At is the time of the event.
	At time.Time
	// ObjectKey is the object's name below the bucket's prefix. The default is the date of At, a slash, EventID and
	// ".json".
	ObjectKey string
	// DeliveredTo lists the recipients of an e-mail that already have it.
	DeliveredTo []string
}

// Sender sends messages to one receiver. It is safe for concurrent use.
type Sender interface {
	// Send makes one attempt. status is the receiver's HTTP status, 0 if there is none (as for e-mail). A failure is an
	// [*Error].
	Send(ctx context.Context, m Message) (status int, err error)
}

// Limits of one attempt. Only the status of a receiver's answer is used.
const (
	sendTimeout = 15 * time.Second
	maxAnswer   = 64 << 10
)

// Open creates the sender of a rule. config holds the keys of [Keys], including secrets; the caller must have replaced
// a webhook_id by the webhook's url and secret. The error is for the person who created the rule.
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
	case Chat:
		return newChat(config, guard)
	}
	return nil, fmt.Errorf("channel %q has no sender", kind) // OpenSlackApp has the one of SlackApp
}
