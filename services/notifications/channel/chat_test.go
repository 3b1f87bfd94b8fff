package channel

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/palisade/palisade/services/notifications/payload"
)

// hostile is a message about source code that tries to mention people and to hide links.
var hostile = Message{
	Kind: "findings", EventID: "msg_1", At: sample.At, Link: "https://palisade.acme.test/console/acme/triage?project=acme_web&more=%7B%7D", Home: "https://palisade.acme.test/console/",
	Subject: "2 new findings in *acme/web*",
	Text: "2 in all\nList: https://palisade.acme.test/console/acme/triage?project=acme_web&more=%7B%7D\n\n" +
		"high: @here @everyone <@U1> <users/all> <!channel> ~town #tag\n    [click](https://evil.test) <https://evil.test|safe> `x` ||y|| a_b\\\n",
}

// post sends a message in a format, and returns the body that the chat got.
func post(t *testing.T, conf config, m Message, status int) string {
	t.Helper()
	r := newReceiver(t)
	r.status = status
	conf["url"] = r.URL + "/hook"
	if got, err := open(t, Chat, conf).Send(t.Context(), m); err != nil || got != status {
		t.Fatalf("got %d, %v", got, err)
	}
	if kind := r.request.Header.Get("Content-Type"); r.request.Method != http.MethodPost || !strings.HasPrefix(kind, "application/json") {
		t.Errorf("%s with %s", r.request.Method, kind)
	}
	return string(r.body)
}

type teamsMessage struct {
	Type        string
	Attachments []struct {
		ContentType string
		Content     struct {
			Type, Version string
			Body          []struct {
				Type    string
				Inlines []struct{ Type, Text string }
			}
			Actions []struct{ Type, URL string }
		}
	}
}

// lines are the lines of the card, the title first.
func (m teamsMessage) lines() (lines []string) {
	for _, block := range m.Attachments[0].Content.Body {
		lines = append(lines, block.Inlines[0].Text)
	}
	return lines
}

func readTeams(t *testing.T, body string) (m teamsMessage) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.Type != "message" || len(m.Attachments) != 1 {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// Teams gets a card of text runs, which have no Markdown, and a button. 202 is success.
func TestTeams(t *testing.T) {
	m := readTeams(t, post(t, config{"format": "teams"}, hostile, http.StatusAccepted))
	card := m.Attachments[0]
	if card.ContentType != "application/vnd.microsoft.card.adaptive" || card.Content.Type != "AdaptiveCard" || card.Content.Version != "1.4" {
		t.Errorf("got %+v", card)
	}
	for _, block := range card.Content.Body {
		if block.Type != "RichTextBlock" || block.Inlines[0].Type != "TextRun" {
			t.Errorf("a block may have Markdown: %+v", block)
		}
	}
	lines := m.lines()
	if lines[0] != hostile.Subject || lines[1] != "2 in all" || len(lines) != 5 {
		t.Errorf("lines %q", lines)
	}
	if a := card.Content.Actions; len(a) != 1 || a[0].Type != "Action.OpenUrl" || a[0].URL != hostile.Link {
		t.Errorf("actions %+v", a)
	}
	plain := hostile
	plain.Link = ""
	if m := readTeams(t, post(t, config{"format": "teams"}, plain, http.StatusOK)); len(m.Attachments[0].Content.Actions) != 0 {
		t.Error("a button without a link")
	}
}

func TestChatsShortenTheText(t *testing.T) {
	long := hostile
	long.Subject = strings.Repeat("ü", 5000)
	long.Text += strings.Repeat("low: a.rule at \"x\"<y>.go:7\n\tö", 3000)
	for format, most := range map[string]int{"teams": maxTeams, "google-chat": maxGoogleChat, "mattermost": maxMattermost} {
		body := post(t, config{"format": format}, long, http.StatusOK)
		if len(body) > most || len(body) < most/2 || !json.Valid([]byte(body)) || !strings.Contains(body, "…") || !strings.Contains(body, hostile.Link) {
			t.Errorf("%s got %d bytes: %.300s", format, len(body), body)
		}
	}
	var got struct{ Content string }
	if err := json.Unmarshal([]byte(post(t, config{"format": "discord"}, long, http.StatusNoContent)), &got); err != nil {
		t.Fatal(err)
	}
	if n := len(utf16.Encode([]rune(got.Content))); n > maxDiscord || n < maxDiscord/2 || !strings.HasSuffix(got.Content, "…") || !strings.Contains(got.Content, hostile.Link) {
		t.Errorf("Discord got %d: %s", n, got.Content)
	}
}

func TestDiscordMentionsNobody(t *testing.T) {
	body := post(t, config{"format": "discord"}, hostile, http.StatusNoContent)
	var got struct {
		Content string
		Allowed struct{ Parse []string } `json:"allowed_mentions"`
		Flags   int
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Allowed.Parse == nil || len(got.Allowed.Parse) != 0 || got.Flags != 4 {
		t.Errorf("got %s", body)
	}
	if !strings.HasPrefix(got.Content, `**2 new findings in \*acme/web\***`+"\n") {
		t.Errorf("title of %s", got.Content)
	}
	for _, part := range []string{"List\\: " + hostile.Link + "\n", `\<@U1\>`, `\[click\]\(https\://evil.test\)`, "\\`x\\`", `\|\|y\|\| a\_b\\`} {
		if !strings.Contains(got.Content, part) {
			t.Errorf("no %q in %s", part, got.Content)
		}
	}
}

func TestGoogleChatAndMattermostMentionNobody(t *testing.T) {
	for format, parts := range map[string][]string{
		"google-chat": {"*2 new findings in", "<\u200busers/all>", "<\u200bhttps:\u200b//evil.test|safe>"},
		"mattermost":  {"**2 new findings in \\*acme", "@\u200bhere", "\\~\u200btown", "\\#\u200btag", `\[click\]\(https\://evil.test\)`},
	} {
		var got map[string]string
		if err := json.Unmarshal([]byte(post(t, config{"format": format}, hostile, http.StatusOK)), &got); err != nil || len(got) != 1 {
			t.Fatalf("%v: %v", err, got)
		}
		for _, part := range append(parts, hostile.Link+"\n") {
			if !strings.Contains(got["text"], part) {
				t.Errorf("%s: no %q in %s", format, part, got["text"])
			}
		}
	}
}

// A template gives any JSON. A long text is shortened until the result is small enough.
func TestTemplate(t *testing.T) {
	conf := config{"format": "custom", "template": `{"title":"{{title}}","body":"{{text}}","url":"{{ link }}","kind":"{{kind}}","at":"{{at}}"}`}
	var got struct{ Title, Body, URL, Kind, At string }
	if err := json.Unmarshal([]byte(post(t, conf, hostile, http.StatusOK)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Title != hostile.Subject || got.Body != hostile.Text || got.URL != hostile.Link || got.Kind != "findings" || got.At != "2026-05-05T00:30:00Z" {
		t.Errorf("got %+v", got)
	}
	long := hostile
	long.Text = strings.Repeat(`"\`, 20_000)
	if body := post(t, conf, long, http.StatusOK); len(body) > maxTemplated || len(body) < maxTemplated/4 || !json.Valid([]byte(body)) {
		t.Errorf("got %d bytes", len(body))
	}
}

// A template with more than fits is an error that names it, and the message is tried again.
func TestTemplateFailsLater(t *testing.T) {
	r := newReceiver(t)
	sender := open(t, Chat, config{"url": r.URL, "format": "custom", "template": `["` + strings.Repeat("{{link}}", 20) + `"]`})
	long := hostile
	long.Link = "https://palisade.acme.test/" + strings.Repeat("x", 2000)
	_, err := sender.Send(t.Context(), long)
	if e, ok := err.(*Error); !ok || e.Permanent || !strings.Contains(e.Public, "config.template gives more than 28000 bytes") || r.request != nil {
		t.Errorf("got %v", err)
	}
}

// A digest in the Slack app has the menus of a message about a scan, and says which project each finding is in.
func TestSlackAppShowsDigests(t *testing.T) {
	body := payload.Collected{
		DeploymentID: 1, Counts: []payload.SeverityCount{{Severity: "high", Count: 1}}, Projects: []payload.CollectedProject{{ID: 7, Name: "acme/web"}},
		Named: []payload.DigestFinding{{ID: 90019, Severity: "high", Rule: "r", Path: "app/db.py", Line: 42, Project: "acme/<web>"}}, Refs: []string{"refs/heads/main"},
		Link: "https://palisade.acme.test/console/acme/triage",
	}.Body()
	blocks := slackBlocks(Message{Subject: "1 new finding", Payload: body})
	shown, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) != 2 || !strings.Contains(string(shown), `app/db.py:42 in acme/\u0026lt;web\u0026gt;, finding 90019`) || !strings.Contains(string(shown), `"accessory":{`) {
		t.Errorf("got %s", shown)
	}
}
