package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	webhookSecret = "correct-horse-battery"
	findingBody   = `[{"semgrep_finding":{"check_id":"py.sqli","path":"app/db.py","line":42,"repo_name":"acme/web","ref":"refs/heads/main"}}]`
	scanBody      = `{"semgrep_scan":{"id":55}}`
)

// lockedBuffer lets a running command write and a test read concurrently.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// listening is a running `palisade listen`.
type listening struct {
	t        *testing.T
	url      string
	out, err lockedBuffer
	stop     context.CancelFunc
	ended    chan int
}

func startListen(t *testing.T, environ []string, args ...string) *listening {
	t.Helper()
	address := freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	l := &listening{t: t, url: "http://" + address + "/hook", stop: stop, ended: make(chan int, 1)}
	go func() {
		l.ended <- run(ctx, append([]string{"listen", "--addr", address}, args...),
			streams{in: strings.NewReader(""), out: &l.out, err: &l.err, environ: environ, now: time.Now})
	}()
	t.Cleanup(stop)
	for { // the port answers as soon as the command listens; the test's timeout ends a futile wait
		response, err := http.Get(l.url)
		if err == nil {
			_ = response.Body.Close()
			return l
		}
		select {
		case status := <-l.ended:
			t.Fatalf("listen ended with status %d: %s", status, l.err.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// end stops the command like Ctrl-C, unless it has already ended.
func (l *listening) end() {
	l.t.Helper()
	l.stop()
	l.wait()
}

func (l *listening) wait() {
	l.t.Helper()
	select {
	case status := <-l.ended:
		if status != exitOK {
			l.t.Errorf("status %d: %s", status, l.err.String())
		}
	case <-time.After(2 * time.Minute):
		l.t.Fatal("listen does not end")
	}
}

func (l *listening) send(method, body string, header map[string]string) (int, string) {
	l.t.Helper()
	request, err := http.NewRequest(method, l.url, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func contractDigest(body string) string {
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// signed returns the headers of a sender that uses both signatures.
func signed(t *testing.T, id, body string, at time.Time) map[string]string {
	t.Helper()
	signer, err := webhooks.NewWebhookRaw([]byte(webhookSecret))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"webhook-id": id, "webhook-timestamp": strconv.FormatInt(at.Unix(), 10), "webhook-signature": signature,
		"X-Semgrep-Signature-256": contractDigest(body),
	}
}

func TestListenPrintsAndCounts(t *testing.T) {
	l := startListen(t, []string{"PALISADE_WEBHOOK_SECRET=" + webhookSecret})
	two := strings.TrimSuffix(findingBody, "]") + `,{"text":"for Slack","username":"x"}]`
	for _, m := range []struct{ id, body string }{{"evt_1", findingBody}, {"evt_2", scanBody}, {"evt_1", findingBody}, {"evt_3", two}, {"evt_4", "[]"}} {
		if status, text := l.send(http.MethodPost, m.body, signed(t, m.id, m.body, time.Now())); status != 200 {
			t.Errorf("%s: %d %s", m.id, status, text)
		}
	}
	l.end()
	lines := strings.Split(strings.TrimSpace(l.out.String()), "\n")
	if len(lines) != 6 {
		t.Fatalf("%d lines:\n%s", len(lines), l.out.String())
	}
	for i, want := range []string{
		"finding  evt_1  py.sqli  app/db.py:42  acme/web main", "scan     evt_2  scan 55", "acme/web main  (duplicate)",
		"finding  evt_3", `other    evt_3  {"text":"for Slack"`, "empty    evt_4",
	} {
		wantParts(t, lines[i], want)
	}
	summary := strings.Join(strings.Fields(l.err.String()), " ")
	wantParts(t, summary, "Listening on "+strings.TrimSuffix(l.url, "hook")+";", "messages 5", "accepted 5", "distinct ids 4", "duplicates 1", "findings 2", "scans 1", "other events 1")
	if strings.Contains(summary, "refused") || strings.Contains(l.out.String()+summary, webhookSecret) {
		t.Errorf("got %s", summary)
	}
}

func TestListenChecksSignatures(t *testing.T) {
	l := startListen(t, nil, "--secret", webhookSecret)
	good := signed(t, "evt_1", findingBody, time.Now())
	with := func(name, value string) map[string]string {
		changed := map[string]string{}
		for k, v := range good {
			changed[k] = v
		}
		changed[name] = value
		return changed
	}
	for name, c := range map[string]struct {
		header map[string]string
		body   string
		status int
		want   string
	}{
		"both":               {good, findingBody, 200, "ok"},
		"contract's alone":   {map[string]string{contractSignature: contractDigest(findingBody)}, findingBody, 200, "ok"},
		"with prefix, upper": {map[string]string{contractSignature: "sha256=" + strings.ToUpper(contractDigest(findingBody))}, findingBody, 200, "ok"},
		"standard alone":     {with(contractSignature, ""), findingBody, 200, "ok"},
		"none":               {nil, findingBody, 401, "not signed"},
		"id alone":           {map[string]string{"webhook-id": "evt_9"}, findingBody, 401, "not signed"},
		"another body":       {good, findingBody + " ", 401, contractSignature + " does not match the body"},
		"no digest":          {with(contractSignature, "abc"), findingBody, 401, "not a SHA-256 digest"},
		"short digest":       {with(contractSignature, "abcd"), findingBody, 401, "not a SHA-256 digest"},
		"wrong digest":       {with(contractSignature, contractDigest("x")), findingBody, 401, "does not match the body"},
		"wrong standard":     {with("webhook-signature", "v1,AAAA"), findingBody, 401, "webhook-signature does not match"},
		"another id":         {with("webhook-id", "evt_2"), findingBody, 401, "webhook-signature does not match"},
		"no id":              {with("webhook-id", ""), findingBody, 401, "requires webhook-id"},
		"no time":            {with("webhook-timestamp", "now"), findingBody, 401, "not a number of seconds"},
		"replayed later":     {signed(t, "evt_1", findingBody, time.Now().Add(-time.Hour)), findingBody, 401, "five minutes"},
		"from the future":    {signed(t, "evt_1", findingBody, time.Now().Add(time.Hour)), findingBody, 401, "five minutes"},
		"no JSON":            {signed(t, "evt_1", "hello", time.Now()), "hello", 400, "not JSON"},
		"empty":              {signed(t, "evt_1", "", time.Now()), "", 400, "not JSON"},
		"too large":          {good, strings.Repeat(" ", maxWebhook+1), 413, "larger than"},
	} {
		if status, text := l.send(http.MethodPost, c.body, c.header); status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %d %s", name, status, text)
		}
	}
	l.end()
	wantParts(t, strings.Join(strings.Fields(l.err.String()), " "), "messages 19", "accepted 4", "refused: signature 12", "refused: malformed 3")
	wantParts(t, l.out.String(), "refused  evt_2  401 webhook-signature does not match", "413 the body is larger")
}

func TestListenAnswersProbes(t *testing.T) {
	l := startListen(t, nil)
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodOptions: 204, http.MethodPut: 405, http.MethodDelete: 405} {
		if status, _ := l.send(method, "", nil); status != want {
			t.Errorf("%s: got %d, want %d", method, status, want)
		}
	}
	if status, _ := l.send(http.MethodPost, `"text"`, nil); status != 200 {
		t.Errorf("without a secret nothing is checked: got %d", status)
	}
	l.end()
	wantParts(t, l.err.String(), "signatures are not checked", "PALISADE_WEBHOOK_SECRET")
}

func TestListenFailsAndEndsByCount(t *testing.T) {
	l := startListen(t, nil, "--fail", "1")
	if status, _ := l.send(http.MethodPost, scanBody, nil); status != 500 {
		t.Errorf("got %d", status)
	}
	l.end()
	wantParts(t, l.out.String(), "failed", "500 on purpose")

	l = startListen(t, nil, "--fail", "0.5", "--count", "20", "-o", "json")
	failed := 0
	for i := range 20 {
		for { // retry like a sender
			status, _ := l.send(http.MethodPost, findingBody, map[string]string{"webhook-id": "evt_" + strconv.Itoa(i)})
			if status == 200 {
				break
			}
			failed++
		}
	}
	l.wait()
	decoder := json.NewDecoder(strings.NewReader(l.out.String()))
	ids := map[string]int{}
	for decoder.More() {
		var e listenEvent
		if err := decoder.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == "finding" {
			ids[e.ID]++
			if e.Rule != "py.sqli" || e.Path != "app/db.py" || e.Line != 42 || e.Status != 200 || e.Duplicate || !strings.Contains(string(e.Payload), "semgrep_finding") {
				t.Errorf("got %+v", e)
			}
		}
	}
	if len(ids) != 20 || failed == 0 {
		t.Errorf("%d ids, %d failures", len(ids), failed)
	}
}

func TestListenUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--fail", "2"}, "--fail: got 2, want a share from 0 to 1"},
		{[]string{"--fail", "NaN"}, "--fail"},
		{[]string{"--count", "-1"}, "--count: got -1"},
		{[]string{"-o", "xml"}, `--output: got "xml", want text, json`},
		{[]string{"--addr", "8099"}, "--addr"},
		{[]string{"now"}, "takes no arguments"},
	} {
		got := palisade(t, "", nil, append([]string{"listen"}, c.args...)...)
		if got.status != exitError {
			t.Errorf("%v: status %d", c.args, got.status)
		}
		wantParts(t, got.err, c.want, "palisade listen --help")
	}
	help := palisade(t, "", nil, "listen", "--help")
	wantParts(t, help.out, "Examples:", "PALISADE_WEBHOOK_SECRET", "--egress-allow", "whsec_")
}

func TestPrintedEventCannotRewriteTheTerminal(t *testing.T) {
	var out bytes.Buffer
	textEvents{&out}.print(listenEvent{Kind: "finding", ID: "\x1b[2J", Rule: "a\nb", Path: "\u202e"})
	if strings.ContainsAny(out.String(), "\x1b\u202e") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("got %q", out.String())
	}
}
