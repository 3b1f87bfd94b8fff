package notifications_test

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// read returns the subject and the text of an e-mail.
func (m sentMail) read(t testing.TB) (subject, text string) {
	t.Helper()
	parsed, err := mail.ReadMessage(strings.NewReader(m.text))
	if err != nil {
		t.Fatal(err)
	}
	if subject, err = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject")); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(parsed.Body))
	if err != nil {
		t.Fatal(err)
	}
	return subject, strings.ReplaceAll(string(body), "\r\n", "\n")
}

// named are the severities of the findings that a text names, in their order.
func named(text string) (severities []string) {
	for _, match := range regexp.MustCompile(`(?m)^(critical|high|medium|low): `).FindAllStringSubmatch(text, -1) {
		severities = append(severities, match[1])
	}
	return severities
}

// mixed is a report with high and low findings, and then critical ones.
func mixed(high, low, critical int) []byte {
	var results []string
	for i := range high + low + critical {
		severity := "high"
		if i >= high {
			severity = "low"
		}
		if i >= high+low {
			severity = "critical"
		}
		results = append(results, fmt.Sprintf(`{"ruleId":"go.%s","message":{"text":"Result %d"},"locations":[{"physicalLocation":{
			"artifactLocation":{"uri":"app/f%05d.go"},"region":{"startLine":7,"snippet":{"text":"call(%d)"}}}}]}`, severity, i, i, i))
	}
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","rules":[
		{"id":"go.high","properties":{"security-severity":"8.0"}},{"id":"go.low","properties":{"security-severity":"2.0"}},
		{"id":"go.critical","properties":{"security-severity":"9.8"}}]}},"results":[` + strings.Join(results, ",") + `]}]}`)
}

// People get one message about a scan with any number of findings: it has the totals and a link, and names the worst
// findings first.
func TestPeopleGetTheWorstFirst(t *testing.T) {
	eachMail(t, "ada@acme.test", func(t *testing.T, s caller, m *mailbox, _ int64) {
		s.Upload(t, "acme/web", "main", report("old"), "category", "old")
		s.waitState(t, "DELIVERED", 1)
		s.Upload(t, "acme/web", "main", mixed(1100, 1100, 1))
		s.waitState(t, "DELIVERED", 2)
		subject, text := m.taken()[1].read(t)
		if subject != "2201 new findings in acme/web (main): 1 critical, 1100 high, 1100 low" {
			t.Errorf("subject %q", subject)
		}
		if got := named(text); len(got) != 50 || got[0] != "critical" || slices.ContainsFunc(got[1:], func(s string) bool { return s != "high" }) {
			t.Errorf("named %v", got)
		}
		for _, part := range []string{"2201 in all: 1 critical, 1100 high, 1100 low\nList: http", "critical: go.critical at app/f02200.go:7, finding ", "\n    Result 2200\n", "\nand 2151 more\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in %s", part, text)
			}
		}
		_, rest, _ := strings.Cut(text, "List: ")
		link, err := url.Parse(strings.SplitN(rest, "\n", 2)[0])
		if err != nil {
			t.Fatal(err)
		}
		query := link.Query()
		if link.Path != "/console/acme/triage" || query.Get("project") != "acme/web" || query.Get("ref") != "refs/heads/main" || query.Get("sort") != "severity" || query.Get("type") != "sast,ai_sast" {
			t.Errorf("link %s", link)
		}
		// With the filter of the link, the API lists the new findings, and not the old one.
		var more string
		decode(t, query.Get("more"), &more)
		filter := strings.TrimSuffix(more, "}") + `,"repositoryNames":["acme/web"],"refs":["refs/heads/main"]}`
		var list struct{ Issues []json.RawMessage }
		decode(t, s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/issues", s.DeploymentID),
			`{"issueType":"ISSUE_TYPE_SAST","limit":3000,"filter":`+filter+`}`, 200), &list)
		if len(list.Issues) != 2201 {
			t.Errorf("the filter %s finds %d", filter, len(list.Issues))
		}
	})
}

// Critical findings are named up to 150, in three messages; the last one counts the others.
func TestPeopleGetAtMostThreeMessages(t *testing.T) {
	eachMail(t, "ada@acme.test", func(t *testing.T, s caller, m *mailbox, _ int64) {
		s.Upload(t, "acme/web", "main", mixed(5, 3, 24))
		s.waitState(t, "DELIVERED", 1)
		if subject, text := m.taken()[0].read(t); !strings.HasSuffix(subject, ": 24 critical, 5 high, 3 low") || len(named(text)) != 32 || strings.Contains(text, "\nand ") {
			t.Errorf("%q: %s", subject, text)
		}
		s.Upload(t, "acme/api", "main", mixed(5, 3, 160))
		s.waitState(t, "DELIVERED", 4)
		parts := map[string]bool{}
		var all []string
		for _, one := range m.taken()[1:] {
			subject, text := one.read(t)
			parts[subject[strings.LastIndexByte(subject, '['):]] = true
			all = append(all, named(text)...)
			if last := strings.HasSuffix(subject, "[3 of 3]"); last != strings.Contains(text, "\nand 18 more, 10 of them critical\n") {
				t.Errorf("%q ends with %s", subject, text[len(text)-100:])
			}
		}
		if len(parts) != 3 || len(all) != 150 || slices.ContainsFunc(all, func(s string) bool { return s != "critical" }) {
			t.Errorf("parts %v name %d: %v", parts, len(all), all)
		}
	})
}

// chat is a receiver for messages to Slack.
type chat struct {
	*httptest.Server

	mu    sync.Mutex
	texts []string
	at    []time.Time
}

func newChat(t testing.TB) *chat {
	c := &chat{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Text string }
		err := json.NewDecoder(r.Body).Decode(&body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			c.texts, c.at = append(c.texts, body.Text), append(c.at, time.Now())
		}
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(c.Close)
	return c
}

// Messages to one URL of Slack are a second apart, also of several rules. Webhooks get all findings, in parts.
func TestSlackGetsOneMessageASecond(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		to, hook := newChat(t), newReceiver(t, nil)
		for _, name := range []string{"one", "two"} {
			s.Body(t, s.Token, http.MethodPost, s.actions(""), fmt.Sprintf(`{"notificationRule":{"name":%q,"channel":"slack_webhook","config":{"url":%q}}}`, name, to.URL+"/services/T0/B0/x"), 200)
		}
		s.rule(t, "hook", hook.URL, `,"send_scan_completion":false`)
		s.Upload(t, "acme/web", "main", mixed(240, 0, 1))
		s.waitState(t, "DELIVERED", 2+3)
		to.mu.Lock()
		defer to.mu.Unlock()
		if len(to.texts) != 2 || to.texts[0] != to.texts[1] || !strings.HasPrefix(to.texts[0], "*241 new findings in acme/web (main): 1 critical, 240 high*\n241 in all") {
			t.Fatalf("the chat got %q", to.texts)
		}
		if apart := to.at[1].Sub(to.at[0]); apart < time.Second {
			t.Errorf("the messages are %s apart", apart)
		}
		if got := hook.taken(); len(got) != 3 || len(got[0].findings)+len(got[1].findings)+len(got[2].findings) != 241 {
			t.Errorf("the webhook got %d messages", len(got))
		}
	})
}
