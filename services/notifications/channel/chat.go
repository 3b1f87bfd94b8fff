package channel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/palisade/palisade/services/internal/egress"
)

// formatCustom is the format of a rule with a template.
const formatCustom = "custom"

// chatFormats are the known formats of config.format: what a chat is called, and how a message looks there.
var chatFormats = map[string]struct {
	title string
	body  func(m Message) []byte
}{
	"teams":       {"Microsoft Teams", teamsBody},
	"google-chat": {"Google Chat", googleChatBody},
	"discord":     {"Discord", discordBody},
	"mattermost":  {"Mattermost", mattermostBody},
}

// ChatFormats lists the values of config.format.
func ChatFormats() []string {
	list := []string{formatCustom}
	for name := range chatFormats {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

const (
	// maxTeams is in bytes of JSON: Teams refuses messages with more than 28 KB.
	maxTeams = 28_000
	// maxGoogleChat and maxMattermost are in bytes of JSON: the chats take 32,000 bytes, and 16,383 characters.
	maxGoogleChat = 30_000
	maxMattermost = 16_000
	// maxDiscord is in UTF-16 code units of the content. Discord counts characters, which are never more.
	maxDiscord = 2000
)

// chatWebhook posts to an incoming webhook of a chat.
type chatWebhook struct {
	url    string
	title  string
	body   func(m Message) ([]byte, error)
	client *http.Client
}

func newChat(config map[string]string, guard *egress.Guard) (*chatWebhook, error) {
	c := &chatWebhook{url: config["url"], client: guard.Client(egress.Limits{Timeout: sendTimeout, MaxResponse: maxAnswer})}
	if known, ok := chatFormats[config["format"]]; ok {
		c.title, c.body = known.title, func(m Message) ([]byte, error) { return known.body(m), nil }
		return c, nil
	}
	parsed, err := parseTemplate(config["template"])
	if err != nil {
		return nil, err
	}
	c.title, c.body = "the chat", parsed.body
	return c, nil
}

// Send implements Sender.
func (c *chatWebhook) Send(ctx context.Context, m Message) (int, error) {
	body, err := c.body(m)
	if err != nil {
		return 0, &Error{Public: err.Error(), cause: err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, connectError(err)
	}
	request.Header.Set("Content-Type", "application/json; charset=UTF-8")
	response, err := c.client.Do(request)
	if err != nil {
		return 0, connectError(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body) // lets the connection be reused; only the status counts
	e := statusError(c.title, response.StatusCode, response.Header)
	if e == nil {
		return response.StatusCode, nil
	}
	if response.StatusCode == http.StatusNotFound {
		e.Permanent = true
		e.Public += ": the incoming webhook no longer exists"
	}
	return response.StatusCode, e
}

// checkChatForm requires a template for the format that needs one, and for no other.
func checkChatForm(config map[string]string) string {
	switch custom := config["format"] == formatCustom; {
	case custom && config["template"] == "":
		return "config.template is required for the format " + formatCustom + ": the JSON that is posted"
	case !custom && config["template"] != "":
		return "config.template is for the format " + formatCustom + " only"
	}
	return ""
}

func checkFormat(value string) string {
	if slices.Contains(ChatFormats(), value) {
		return ""
	}
	return fmt.Sprintf("must be one of %s, got %q", strings.Join(ChatFormats(), ", "), value)
}

// teamsBody is an Adaptive Card, as the workflow "when a Teams webhook request is received" takes it. Text runs have no
// Markdown, so that source code in findings cannot mention anybody or hide a link.
func teamsBody(m Message) []byte {
	type object map[string]any
	return fit(m, maxTeams, func(m Message) []byte {
		blocks := []object{{"type": "RichTextBlock", "inlines": []object{{"type": "TextRun", "text": cutBytes(m.Subject, maxSubject), "weight": "Bolder", "size": "Medium"}}}}
		for line := range strings.Lines(m.Text) {
			if line = strings.TrimSpace(line); line != "" {
				blocks = append(blocks, object{"type": "RichTextBlock", "spacing": "None", "inlines": []object{{"type": "TextRun", "text": line}}})
			}
		}
		card := object{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": blocks, "msteams": object{"width": "Full"}}
		if m.Link != "" {
			card["actions"] = []object{{"type": "Action.OpenUrl", "title": "Open in Palisade", "url": m.Link}}
		}
		return encode(object{"type": "message", "attachments": []object{{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": card}}})
	})
}

// googleChatBody has no way to escape, so a character without width takes the sense from what the chat would read as a
// mention or a link.
func googleChatBody(m Message) []byte {
	return fit(m, maxGoogleChat, func(m Message) []byte {
		return encode(map[string]string{"text": chatText(m, "*", strings.NewReplacer("<", "<"+nothing, "@", "@"+nothing, "://", ":"+nothing+"//"))})
	})
}

// discordBody mentions nobody and shows no previews of links.
func discordBody(m Message) []byte {
	escape := escaper(`\*_~|>#-[]()<:` + "`")
	m.Text = longest(m.Text, maxDiscord, func(text string) int {
		m.Text = text
		return len(utf16.Encode([]rune(chatText(m, "**", escape))))
	})
	content := chatText(m, "**", escape)
	return encode(map[string]any{"content": content, "allowed_mentions": map[string]any{"parse": []string{}}, "flags": discordNoPreviews})
}

// discordNoPreviews is SUPPRESS_EMBEDS of https://discord.com/developers/docs/resources/message.
const discordNoPreviews = 1 << 2

func mattermostBody(m Message) []byte {
	// Mattermost looks for mentions, channels and tags after it has read the Markdown, so escapes do not prevent them.
	escape := escaper(`\*_|>-[]()<:!`+"`", "@", "@"+nothing, "~", "\\~"+nothing, "#", "\\#"+nothing)
	return fit(m, maxMattermost, func(m Message) []byte { return encode(map[string]string{"text": chatText(m, "**", escape)}) })
}

// nothing is a character without width.
const nothing = "\u200b"

// escaper puts a backslash before characters, and replaces the pairs.
func escaper(characters string, pairs ...string) *strings.Replacer {
	for _, c := range characters {
		pairs = append(pairs, string(c), `\`+string(c))
	}
	return strings.NewReplacer(pairs...)
}

// chatText is the message in the Markdown of a chat. Links to this server stay as they are.
func chatText(m Message, bold string, escape *strings.Replacer) string {
	var text strings.Builder
	if m.Link != "" && !strings.Contains(m.Text, m.Link) {
		text.WriteString(m.Link + "\n")
	}
	for rest := m.Text; rest != ""; {
		before, after, found := strings.Cut(rest, m.Home)
		if !found || m.Home == "" {
			text.WriteString(escape.Replace(rest))
			break
		}
		path := after[:len(after)-len(strings.TrimLeft(after, urlCharacters))]
		text.WriteString(escape.Replace(before) + m.Home + path)
		rest = after[len(path):]
	}
	return bold + escape.Replace(cutBytes(m.Subject, maxSubject)) + bold + "\n" + text.String()
}

// urlCharacters may follow the begin of a link to this server. None of them begins a mention.
const urlCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~%?=&+"

// maxSubject is in bytes, so that there is room for the text.
const maxSubject = 300

// fit gives the body with as much of the text as leaves it below a limit.
func fit(m Message, most int, render func(m Message) []byte) []byte {
	text := longest(m.Text, most, func(text string) int { m.Text = text; return len(render(m)) })
	m.Text = text
	return render(m)
}

// longest is as much of a text as has at most so much size.
func longest(text string, most int, size func(text string) int) string {
	text = cutBytes(text, most)
	if size(text) <= most {
		return text
	}
	tooMany := sort.Search(len(text), func(n int) bool { return size(cutBytes(text, n)) > most })
	return cutBytes(text, max(tooMany-1, 0))
}

// cutBytes cuts a text to at most this number of bytes, without the ellipsis.
func cutBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

func encode(body any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		panic(err) // texts and numbers
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
