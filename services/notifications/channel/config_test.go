package channel

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/mailserver"
)

func newGuard(t testing.TB, allow string) *egress.Guard {
	t.Helper()
	g, err := egress.New(egress.Config{Allow: allow, UserAgent: "Palisade/test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// signingSecret must not appear in error texts.
const signingSecret = "correct-horse-battery"

type config = map[string]string

func bucketConfig(change config) config {
	c := config{"bucket": "acme-findings", "region": "eu-central-1", "access_key_id": "PALISADETESTKEY", "secret_access_key": signingSecret}
	for key, value := range change {
		c[key] = value
	}
	return c
}

func TestValidateAccepts(t *testing.T) {
	guard := newGuard(t, "127.0.0.1:9000")
	for name, c := range map[string]struct {
		channel string
		config  config
	}{
		"stored webhook":     {Webhook, config{"webhook_id": "1007"}},
		"own webhook":        {Webhook, config{"url": "https://hooks.example.com/x", "secret": signingSecret}},
		"unsigned webhook":   {Webhook, config{"url": "https://hooks.example.com/x", "secret": ""}},
		"Slack":              {Slack, config{"url": "https://hooks.slack.com/services/T000/B000/xxxx"}},
		"one recipient":      {Email, config{"to": "security@example.com"}},
		"several recipients": {Email, config{"to": "security@example.com, Ada <ada@example.com>,security@example.com"}},
		"Amazon":             {S3, bucketConfig(nil)},
		"Teams":              {Chat, config{"url": "https://x.webhook.office.com/a", "format": "teams"}},
		"another chat":       {Chat, config{"url": "https://chat.example.com/a", "format": "custom", "template": `{"t":"{{title}}","b":["{{ link }}",1,null]}`}},
		"own S3":             {S3, bucketConfig(config{"endpoint": "http://127.0.0.1:9000", "prefix": "palisade/acme/"})},
	} {
		if err := Validate(c.channel, c.config, guard); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	guard := newGuard(t, "")
	for name, c := range map[string]struct {
		channel string
		config  config
		want    string
	}{
		"no channel":               {"", nil, `channel must be one of CHANNEL_CHAT_WEBHOOK, CHANNEL_EMAIL, CHANNEL_S3, CHANNEL_SLACK_APP, CHANNEL_SLACK_WEBHOOK, CHANNEL_WEBHOOK, got ""`},
		"unknown channel":          {"CHANNEL_FAX", nil, `got "CHANNEL_FAX"`},
		"unknown key":              {Slack, config{"url": "https://a.test", "chanel": "#x"}, `config has the key "chanel", which CHANNEL_SLACK_WEBHOOK does not know; its keys are url`},
		"unknown keys":             {Webhook, config{"url": "https://a.test", "b": "", "a": "1"}, `the keys "a", "b", which CHANNEL_WEBHOOK does not know; its keys are webhook_id, url, secret`},
		"long unknown key":         {Email, config{"to": "a@b.test", strings.Repeat("k", 5000): ""}, `kkk…"`},
		"nothing":                  {Webhook, nil, "config.webhook_id or config.url is required"},
		"secret alone":             {Webhook, config{"secret": signingSecret}, "config.webhook_id or config.url is required"},
		"two webhooks":             {Webhook, config{"webhook_id": "1", "url": "https://a.test"}, "cannot be set together"},
		"webhook and secret":       {Webhook, config{"webhook_id": "1", "secret": signingSecret}, "cannot be set together"},
		"webhook id":               {Webhook, config{"webhook_id": "x"}, `config.webhook_id must be the id of a notification webhook, got "x"`},
		"webhook id zero":          {Webhook, config{"webhook_id": "0"}, "config.webhook_id"},
		"http":                     {Webhook, config{"url": "http://a.test/" + signingSecret}, `config.url must be an https:// URL, got "http://a.test"`},
		"private":                  {Webhook, config{"url": "https://10.0.0.1/" + signingSecret}, "config.url must be an https:// URL with a public host"},
		"short secret":             {Webhook, config{"url": "https://a.test", "secret": "fourteen-chars"}, "config.secret must have 15 to 255 characters, got 14"},
		"long secret":              {Webhook, config{"url": "https://a.test", "secret": strings.Repeat("ü", 256)}, "got 256"},
		"no Slack URL":             {Slack, config{}, "config.url is required for CHANNEL_SLACK_WEBHOOK"},
		"Slack URL":                {Slack, config{"url": "hooks.slack.com/" + signingSecret}, "config.url must be"},
		"no recipient":             {Email, config{"to": ""}, "config.to is required"},
		"bad recipient":            {Email, config{"to": "a@b.test,,"}, `config.to must be e-mail addresses separated by commas, such as security@example.com; "" is none`},
		"header in recipient":      {Email, config{"to": "a@b.test\r\nBcc: c@d.test"}, "is none"},
		"too many recipients":      {Email, config{"to": manyRecipients(51)}, "at most 50 addresses, got 51"},
		"large value":              {Email, config{"to": manyRecipients(2000)}, "at most 16384 bytes"},
		"nothing for S3":           {S3, nil, "config.bucket is required for CHANNEL_S3: name of the bucket; config.region is required"},
		"bucket":                   {S3, bucketConfig(config{"bucket": "Acme_Findings"}), `config.bucket must be a bucket name of 3 to 63 lower-case letters, digits, dots and hyphens, got "Acme_Findings"`},
		"bucket is an address":     {S3, bucketConfig(config{"bucket": "192.168.1.1"}), "config.bucket"},
		"region":                   {S3, bucketConfig(config{"region": "eu central"}), `config.region must be a region such as eu-central-1, got "eu central"`},
		"region becomes a host":    {S3, bucketConfig(config{"region": "evil.test/"}), "config.region"},
		"endpoint":                 {S3, bucketConfig(config{"endpoint": "http://s3.test"}), "config.endpoint must be an https:// URL"},
		"endpoint with bucket":     {S3, bucketConfig(config{"endpoint": "https://s3.test/bucket"}), "without path"},
		"endpoint inside":          {S3, bucketConfig(config{"endpoint": "https://169.254.169.254"}), "public host"},
		"prefix with slash":        {S3, bucketConfig(config{"prefix": "/palisade"}), "config.prefix"},
		"prefix up":                {S3, bucketConfig(config{"prefix": "a/../b"}), "config.prefix"},
		"prefix with control":      {S3, bucketConfig(config{"prefix": "a\x00"}), "config.prefix"},
		"key with blank":           {S3, bucketConfig(config{"secret_access_key": signingSecret + " "}), "config.secret_access_key must have at most"},
		"key with line":            {S3, bucketConfig(config{"access_key_id": "A\nB"}), "config.access_key_id"},
		"no format":                {Chat, config{"url": "https://a.test"}, "config.format is required for CHANNEL_CHAT_WEBHOOK"},
		"unknown format":           {Chat, config{"url": "https://a.test", "format": "irc"}, `config.format must be one of custom, discord, google-chat, mattermost, teams, got "irc"`},
		"no template":              {Chat, config{"url": "https://a.test", "format": "custom"}, "config.template is required for the format custom"},
		"template of Teams":        {Chat, config{"url": "https://a.test", "format": "teams", "template": "{}"}, "config.template is for the format custom only"},
		"no chat URL":              {Chat, config{"format": "teams"}, "config.url is required for CHANNEL_CHAT_WEBHOOK"},
		"template does not parse":  {Chat, customChat("{\n\"a\":{{title}}"), "config.template is not usable: it must be JSON: invalid character '{' looking for beginning of object key string, in line 2, byte 6"},
		"template knows no field":  {Chat, customChat(`{"a":"{{secret}}"}`), `it has the placeholder "{{secret}}"; known are {{title}}, {{text}}, {{link}}, {{kind}}, {{at}}`},
		"template calls":           {Chat, customChat(`{"a":"{{json .Title}}"}`), `it has the placeholder "{{json .Title}}"`},
		"template grows":           {Chat, customChat(`["` + strings.Repeat("{{text}}", 21) + `"]`), "it has 21 placeholders, and at most 20 are allowed"},
		"template has more":        {Chat, customChat(`{} {}`), "it must be JSON"},
		"template is large":        {Chat, customChat(`["` + strings.Repeat("x", 17<<10) + `"]`), "config.template must have at most 16384 bytes"},
		"several problems at once": {Webhook, config{"x": "", "url": "ftp://a.test", "secret": "short"}, "; config.secret"},
	} {
		err := Validate(c.channel, c.config, guard)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), signingSecret) || len(err.Error()) > 800 {
			t.Errorf("%s: got %q, want %q", name, err, c.want)
		}
		if _, opened := Open(c.channel, c.config, guard, mailserver.Config{}); opened == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

func customChat(text string) config {
	return config{"url": "https://a.test", "format": "custom", "template": text}
}

func manyRecipients(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.Repeat("a", i%50+1) + strings.Repeat("b", i/50) + "@example.com"
	}
	return strings.Join(list, ",")
}

func TestKeys(t *testing.T) {
	secrets := map[string]string{}
	for _, channel := range Channels() {
		if len(Keys(channel)) == 0 {
			t.Errorf("%s has no keys", channel)
		}
		for _, k := range Keys(channel) {
			if k.Doc == "" {
				t.Errorf("%s %s is not documented", channel, k.Name)
			}
			if k.Secret {
				secrets[channel] += k.Name
			}
		}
	}
	if secrets[Webhook] != "secret" || secrets[Slack] != "url" || secrets[Email] != "" || secrets[S3] != "secret_access_key" || secrets[Chat] != "url" {
		t.Errorf("secret keys: %v", secrets)
	}
	if Keys("CHANNEL_FAX") != nil {
		t.Error("an unknown channel has keys")
	}
}

func TestOpenSaysWhyNot(t *testing.T) {
	guard := newGuard(t, "")
	if _, err := Open(Webhook, config{"webhook_id": "5"}, guard, mailserver.Config{}); err == nil || !strings.Contains(err.Error(), "config.webhook_id names does not exist") {
		t.Errorf("a webhook that was not replaced: %v", err)
	}
	if _, err := Open(Email, config{"to": "a@example.com"}, guard, mailserver.Config{}); err == nil || !strings.Contains(err.Error(), "sends no e-mail") {
		t.Errorf("no mail server: %v", err)
	}
}
