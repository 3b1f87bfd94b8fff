package channel

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/palisade/palisade/services/internal/egress"
)

// SignatureHeader carries the lower-case hex HMAC-SHA256 of the body under the secret, without a prefix (facts section
// 9).
const SignatureHeader = "X-Semgrep-Signature-256"

// webhook posts the payload. With a secret, each message has two signatures: the contract's (SignatureHeader), and the
// one of https://www.standardwebhooks.com (webhook-signature), which covers id and time too, so that a receiver can
// reject replays. Standard Webhooks libraries need the secret as "whsec_" and base64:
//
//	printf 'whsec_%s' "$(printf %s "$SECRET" | base64 -w0)"
//
// SECRET is the secret as it was configured, in any format. Without a secret only webhook-id and webhook-timestamp are
// sent.
type webhook struct {
	url    string
	secret string
	signer *webhooks.Webhook // nil without a secret
	client *http.Client
}

func newWebhook(config map[string]string, guard *egress.Guard) (*webhook, error) {
	w := &webhook{
		url: config["url"], secret: config["secret"],
		client: guard.Client(egress.Limits{Timeout: sendTimeout, MaxResponse: maxAnswer}),
	}
	var err error
	if w.secret != "" {
		w.signer, err = webhooks.NewWebhookRaw([]byte(w.secret))
	}
	return w, err
}

// Send implements Sender.
func (w *webhook) Send(ctx context.Context, m Message) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(m.Payload))
	if err != nil {
		return 0, connectError(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if err := w.sign(request.Header, m, time.Now()); err != nil {
		return 0, connectError(err)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return 0, connectError(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // lets the connection be reused; the content is ignored
	if e := statusError("the receiver", response.StatusCode, response.Header); e != nil {
		return response.StatusCode, e
	}
	return response.StatusCode, nil
}

// sign sets the headers that identify and sign a message. The timestamp is the time of the attempt, because receivers
// reject old timestamps.
func (w *webhook) sign(header http.Header, m Message, now time.Time) error {
	header.Set(webhooks.HeaderWebhookID, m.EventID)
	header.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	if w.signer == nil {
		return nil
	}
	signature, err := w.signer.Sign(m.EventID, now, m.Payload)
	if err != nil {
		return err
	}
	header.Set(webhooks.HeaderWebhookSignature, signature)
	header.Set(SignatureHeader, Signature(w.secret, m.Payload))
	return nil
}

// Signature returns the value of [SignatureHeader] for a body.
func Signature(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
