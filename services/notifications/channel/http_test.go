package channel

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/mailserver"
)

var sample = Message{
	Kind: "findings", EventID: "evt_1007", Subject: "1 new finding in acme/web", Text: "sqli at app/db.py:42 <!channel> & more",
	Payload: []byte(`[{"semgrep_finding":{"check_id":"py.sqli","path":"app/db.py","line":42,"message":"a < b \u00fc"}}]`),
	At:      time.Date(2026, 5, 4, 23, 30, 0, 0, time.FixedZone("", -3600)),
}

// receiver records the last request and answers as configured.
type receiver struct {
	*httptest.Server
	request *http.Request
	body    []byte

	status int
	header map[string]string
	answer string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.request = request
		r.body, _ = io.ReadAll(request.Body)
		for name, value := range r.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(r.status)
		_, _ = io.WriteString(w, r.answer)
	}))
	t.Cleanup(r.Close)
	return r
}

func open(t *testing.T, kind string, c config) Sender {
	t.Helper()
	s, err := Open(kind, c, newGuard(t, "127.0.0.1"), mailserver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWebhookIsSignedTwice(t *testing.T) {
	r := newReceiver(t)
	status, err := open(t, Webhook, config{"url": r.URL + "/hook?x=1", "secret": signingSecret}).Send(t.Context(), sample)
	if err != nil || status != 200 {
		t.Fatalf("got %d, %v", status, err)
	}
	if string(r.body) != string(sample.Payload) || r.request.Method != "POST" || r.request.URL.String() != "/hook?x=1" {
		t.Errorf("got %s %s %q", r.request.Method, r.request.URL, r.body)
	}
	mac := hmac.New(sha256.New, []byte(signingSecret))
	mac.Write(r.body)
	h := r.request.Header
	if h.Get("X-Semgrep-Signature-256") != hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("the contract's signature is %q", h.Get("X-Semgrep-Signature-256"))
	}
	// Standard Webhooks libraries need the secret in this form.
	verifier, err := webhooks.NewWebhook("whsec_" + base64.StdEncoding.EncodeToString([]byte(signingSecret)))
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(r.body, h); err != nil {
		t.Error(err)
	}
	if h.Get("Webhook-Id") != "evt_1007" || h.Get("Content-Type") != "application/json" || h.Get("User-Agent") != "Palisade/test" {
		t.Errorf("headers %v", h)
	}
}

func TestWebhookWithoutSecretIsNotSigned(t *testing.T) {
	r := newReceiver(t)
	r.status = http.StatusNoContent
	status, err := open(t, Webhook, config{"url": r.URL}).Send(t.Context(), sample)
	if err != nil || status != 204 {
		t.Fatalf("got %d, %v", status, err)
	}
	h := r.request.Header
	if h.Get("Webhook-Id") != "evt_1007" || h.Get("Webhook-Timestamp") == "" || h.Get("Webhook-Signature") != "" || h.Get(SignatureHeader) != "" {
		t.Errorf("headers %v", h)
	}
}

func TestAnswersOfAReceiver(t *testing.T) {
	r := newReceiver(t)
	secretPath := config{"url": r.URL + "/" + signingSecret, "secret": signingSecret}
	for name, c := range map[string]struct {
		status    int
		header    map[string]string
		permanent bool
		wait      time.Duration
		text      string
	}{
		"unauthorized":   {status: 401, text: "the receiver answered HTTP 401 Unauthorized"},
		"forbidden":      {status: 403, text: "HTTP 403 Forbidden"},
		"not found":      {status: 404, text: "HTTP 404 Not Found"},
		"gone":           {status: 410, permanent: true, text: "HTTP 410 Gone: it wants no more messages"},
		"too large":      {status: 413, text: "HTTP 413"},
		"rate limit":     {status: 429, header: map[string]string{"Retry-After": "120"}, wait: 2 * time.Minute, text: "HTTP 429"},
		"endless wait":   {status: 429, header: map[string]string{"Retry-After": "2147483648"}, wait: 24 * time.Hour, text: "HTTP 429"},
		"negative wait":  {status: 503, header: map[string]string{"Retry-After": "-5"}, text: "HTTP 503"},
		"strange wait":   {status: 503, header: map[string]string{"Retry-After": "soon"}, text: "HTTP 503"},
		"server error":   {status: 500, text: "HTTP 500 Internal Server Error"},
		"unknown status": {status: 599, text: "HTTP 599"},
		"redirect":       {status: 302, header: map[string]string{"Location": "http://127.0.0.1:1/"}, text: "redirects are not followed"},
	} {
		r.status, r.header = c.status, c.header
		for _, kind := range []string{Webhook, Slack, Chat} {
			conf := secretPath
			switch kind {
			case Slack:
				conf = config{"url": r.URL + "/" + signingSecret}
			case Chat:
				conf = config{"url": r.URL + "/" + signingSecret, "format": "teams"}
			}
			status, err := open(t, kind, conf).Send(t.Context(), sample)
			var e *Error
			if !errors.As(err, &e) || status != c.status {
				t.Fatalf("%s, %s: got %d, %v", name, kind, status, err)
			}
			permanent, text := c.permanent, c.text
			if kind != Webhook {
				permanent = permanent || c.status == 404
				text = strings.Replace(text, "the receiver", map[string]string{Slack: "Slack", Chat: "Microsoft Teams"}[kind], 1)
			}
			if e.Permanent != permanent || e.RetryAfter != c.wait || !strings.Contains(e.Public, text) || strings.Contains(e.Error(), signingSecret) {
				t.Errorf("%s, %s: got %+v", name, kind, e)
			}
		}
	}
}

func TestEndlessAnswerDoesNotHurt(t *testing.T) {
	r := newReceiver(t)
	r.answer = strings.Repeat("x", 4*maxAnswer)
	if status, err := open(t, Webhook, config{"url": r.URL}).Send(t.Context(), sample); err != nil || status != 200 {
		t.Errorf("a receiver that took the message: %d, %v", status, err)
	}
	r.status = 500
	if status, err := open(t, Webhook, config{"url": r.URL}).Send(t.Context(), sample); err == nil || status != 500 {
		t.Errorf("a receiver that did not: %d, %v", status, err)
	}
}

func TestUnreachableReadsTheSame(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	stop := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(func() { close(stop); silent.Close() })
	inner := newReceiver(t)
	for name, c := range map[string]struct{ url, allow string }{
		"refused by the host":  {"http://" + closed.Addr().String(), "127.0.0.1"},
		"time-out":             {silent.URL, "127.0.0.1"},
		"refused by the guard": {inner.URL, ""},
	} {
		for _, kind := range []string{Webhook, Slack, S3, Chat} {
			sender := unchecked(t, kind, c.url, newGuard(t, c.allow))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			status, err := sender.Send(ctx, sample)
			cancel()
			var e *Error
			if !errors.As(err, &e) || status != 0 || e.Permanent || e.Error() != "the host could not be reached" {
				t.Errorf("%s, %s: got %d, %v", name, kind, status, err)
			}
		}
	}
	if inner.request != nil {
		t.Error("the inner server was reached")
	}
}

// unchecked creates a sender without Validate: the operator's allow list may have changed since the rule was created.
func unchecked(t *testing.T, kind, url string, guard *egress.Guard) Sender {
	t.Helper()
	var s Sender
	var err error
	switch kind {
	case Webhook:
		s, err = newWebhook(config{"url": url}, guard)
	case Slack:
		s = newSlack(config{"url": url}, guard)
	case S3:
		s, err = newBucket(bucketConfig(config{"endpoint": url}), guard)
	case Chat:
		s, err = newChat(config{"url": url, "format": "discord"}, guard)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSlackGetsEscapedText(t *testing.T) {
	r := newReceiver(t)
	r.answer = "ok"
	status, err := open(t, Slack, config{"url": r.URL + "/services/T0/B0/x"}).Send(t.Context(), sample)
	if err != nil || status != 200 {
		t.Fatalf("got %d, %v", status, err)
	}
	var got struct {
		Text        string `json:"text"`
		UnfurlLinks *bool  `json:"unfurl_links"`
	}
	if err := json.Unmarshal(r.body, &got); err != nil {
		t.Fatal(err)
	}
	if got.Text != "*1 new finding in acme/web*\nsqli at app/db.py:42 &lt;!channel&gt; &amp; more" || got.UnfurlLinks == nil || *got.UnfurlLinks {
		t.Errorf("got %s", r.body)
	}
	long := sample
	long.Subject, long.Text = "", strings.Repeat("ü", maxSlackText)
	if text := slackText(long); len(text) > maxSlackText+len("…") || !strings.HasSuffix(text, "ü…") || strings.HasPrefix(text, "*") {
		t.Errorf("got %d bytes ending %q", len(text), text[len(text)-8:])
	}
}
