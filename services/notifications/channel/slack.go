package channel

import (
	"context"
	"net/http"
	"strings"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackutilsx"

	"github.com/palisade/palisade/services/internal/egress"
)

// maxSlackText is in bytes; Slack cuts messages at 40,000 characters.
const maxSlackText = 30_000

// slackWebhook posts the text to an incoming webhook of Slack, or of a chat with a compatible API.
type slackWebhook struct {
	url    string
	client *http.Client
}

func newSlack(config map[string]string, guard *egress.Guard) *slackWebhook {
	client := guard.Client(egress.Limits{Timeout: sendTimeout, MaxResponse: maxAnswer})
	client.Transport = answerTransport{client.Transport}
	return &slackWebhook{url: config["url"], client: client}
}

// Send implements Sender.
func (s *slackWebhook) Send(ctx context.Context, m Message) (int, error) {
	ctx, answer := withAnswer(ctx)
	no := false
	err := slack.PostWebhookCustomHTTPContext(ctx, s.url, s.client, &slack.WebhookMessage{Text: slackText(m), UnfurlLinks: &no, UnfurlMedia: &no})
	if answer.status == 0 {
		if err == nil {
			return 0, nil // unreachable: success has a status
		}
		return 0, connectError(err)
	}
	e := statusError("Slack", answer.status, answer.header)
	if e == nil {
		return answer.status, nil
	}
	e.cause = err
	// https://api.slack.com/messaging/webhooks#handling_errors: no_service, no_team, channel_not_found.
	if answer.status == http.StatusNotFound {
		e.Permanent = true
		e.Public += ": the incoming webhook no longer exists"
	}
	return answer.status, e
}

// slackText escapes its input: source code in findings must not mention a channel or create a link.
func slackText(m Message) string {
	text := slackutilsx.EscapeMessage(m.Text)
	if m.Subject != "" {
		text = "*" + slackutilsx.EscapeMessage(strings.ReplaceAll(m.Subject, "*", "∗")) + "*\n" + text
	}
	if len(text) > maxSlackText {
		text = strings.ToValidUTF8(text[:maxSlackText], "") + "…"
	}
	return text
}
