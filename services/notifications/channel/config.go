package channel

import (
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/palisade/palisade/services/internal/egress"
)

// Key is a configuration key of a channel. The contract does not define the keys (facts 3.16).
type Key struct {
	Name     string
	Secret   bool // sealed in the database, and never returned
	Required bool
	Doc      string // one sentence
}

// channelKeys lists the configuration keys of each channel.
var channelKeys = map[string][]Key{
	Webhook: {
		{Name: "webhook_id", Doc: "id of a notification webhook of the deployment; instead of url and secret"},
		{Name: "url", Doc: "https:// URL that messages are posted to"},
		{Name: "secret", Secret: true, Doc: "what messages are signed with, at least 15 characters; without it they are not signed"},
	},
	Slack: {
		{Name: "url", Secret: true, Required: true, Doc: "URL of a Slack incoming webhook; whoever knows it can post, so it is kept as a secret"},
	},
	SlackApp: {
		{Name: "channel_id", Required: true, Doc: "Slack's id of the channel, such as C0123456789; the operation chat-app/available_channels lists them"},
		{Name: "channel_name", Doc: "name of the channel without #, for people"},
	},
	Email: {
		{Name: "to", Required: true, Doc: "addresses that get the message, separated by commas"},
	},
	S3: {
		{Name: "bucket", Required: true, Doc: "name of the bucket"},
		{Name: "region", Required: true, Doc: "region of the bucket, such as eu-central-1"},
		{Name: "endpoint", Doc: "https:// URL of an S3-compatible service; empty means Amazon S3 of the region"},
		{Name: "prefix", Doc: "what the names of objects begin with, such as palisade/"},
		{Name: "access_key_id", Required: true, Doc: "id of the access key"},
		{Name: "secret_access_key", Secret: true, Required: true, Doc: "the access key itself"},
	},
	Chat: {
		{Name: "url", Secret: true, Required: true, Doc: "URL of an incoming webhook; whoever knows it can post, so it is kept as a secret"},
		{Name: "format", Required: true, Doc: "teams, google-chat, discord, mattermost, or custom for any other chat"},
		{Name: "template", Doc: "for the format custom: the JSON that is posted, with the placeholders {{title}}, {{text}}, {{link}}, {{kind}} and {{at}} in its texts"},
	},
}

// Channels lists the names of all channels, sorted.
func Channels() []string { return []string{Chat, Email, S3, SlackApp, Slack, Webhook} }

// Keys lists the configuration keys of a channel; none for an unknown channel.
func Keys(channel string) []Key { return slices.Clone(channelKeys[channel]) }

const (
	minSecret     = 15 // characters (facts section 9)
	maxSecret     = 255
	maxRecipients = 50
	maxValue      = 16 << 10 // bytes
)

var (
	regionPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	// slackChannel is the id of a public (C) or private (G, older) channel of Slack.
	slackChannel = regexp.MustCompile(`^[CG][A-Z0-9]{7,20}$`)
)

// Validate checks a rule's configuration without network access: the channel exists, all keys are known, required keys
// are present, and values are well-formed. The error lists all problems and contains no secret.
func Validate(channel string, config map[string]string, guard *egress.Guard) error {
	keys, known := channelKeys[channel]
	if !known {
		return fmt.Errorf("channel must be one of %s, got %q", strings.Join(Channels(), ", "), channel)
	}
	var problems []string
	if text := unknownKeys(channel, keys, config); text != "" {
		problems = append(problems, text)
	}
	for _, k := range keys {
		switch value := config[k.Name]; {
		case value == "" && k.Required:
			problems = append(problems, fmt.Sprintf("config.%s is required for %s: %s", k.Name, channel, k.Doc))
		case len(value) > maxValue:
			problems = append(problems, fmt.Sprintf("config.%s must have at most %d bytes, got %d", k.Name, maxValue, len(value)))
		case value != "":
			if text := checkValue(k.Name, value, guard); text != "" {
				problems = append(problems, "config."+k.Name+" "+text)
			}
		}
	}
	if channel == Webhook {
		if text := checkWebhookForm(config); text != "" {
			problems = append(problems, text)
		}
	}
	if channel == Chat {
		if text := checkChatForm(config); text != "" {
			problems = append(problems, text)
		}
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// unknownKeys reports keys that the channel does not have, and lists the known ones.
func unknownKeys(channel string, keys []Key, config map[string]string) string {
	var allowed, unknown []string
	for _, k := range keys {
		allowed = append(allowed, k.Name)
	}
	for name := range config {
		if !slices.Contains(allowed, name) {
			if len(name) > 64 {
				name = strings.ToValidUTF8(name[:64], "") + "…"
			}
			unknown = append(unknown, strconv.Quote(name))
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	slices.Sort(unknown)
	noun := "the key"
	if len(unknown) > 1 {
		noun = "the keys"
	}
	return fmt.Sprintf("config has %s %s, which %s does not know; its keys are %s",
		noun, strings.Join(unknown[:min(len(unknown), 10)], ", "), channel, strings.Join(allowed, ", "))
}

// checkWebhookForm requires either a stored webhook or a URL.
func checkWebhookForm(config map[string]string) string {
	switch id, url, secret := config["webhook_id"], config["url"], config["secret"]; {
	case id == "" && url == "":
		return "config.webhook_id or config.url is required for " + Webhook
	case id != "" && (url != "" || secret != ""):
		return "config.webhook_id cannot be set together with config.url or config.secret: the webhook has its own"
	}
	return ""
}

// checkValue returns what is wrong with a value, to follow the key's name; "" if nothing is.
func checkValue(name, value string, guard *egress.Guard) string {
	switch name {
	case "url", "endpoint":
		if err := guard.CheckURL(value); err != nil {
			return err.Error()
		}
		if name == "endpoint" {
			return checkEndpoint(value)
		}
	case "format":
		return checkFormat(value)
	case "template":
		if _, err := parseTemplate(value); err != nil {
			return "is not usable: " + err.Error()
		}
	case "webhook_id":
		if id, err := strconv.ParseInt(value, 10, 64); err != nil || id <= 0 {
			return fmt.Sprintf("must be the id of a notification webhook, got %q", value)
		}
	case "secret":
		if n := utf8.RuneCountInString(value); n < minSecret || n > maxSecret {
			return fmt.Sprintf("must have %d to %d characters, got %d", minSecret, maxSecret, n)
		}
	case "to":
		_, text := recipients(value)
		return text
	case "channel_id":
		if !slackChannel.MatchString(value) {
			return fmt.Sprintf("must be the id of a channel such as C0123456789, not its name; got %q", value)
		}
	case "channel_name":
		if len(value) > 80 || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' }) {
			return "must be the name of a channel, at most 80 bytes without blanks"
		}
	case "bucket":
		if err := s3utils.CheckValidBucketNameStrict(value); err != nil {
			return fmt.Sprintf("must be a bucket name of 3 to 63 lower-case letters, digits, dots and hyphens, got %q", value)
		}
	case "region":
		if !regionPattern.MatchString(value) {
			return fmt.Sprintf("must be a region such as eu-central-1, got %q", value)
		}
	case "prefix":
		return checkPrefix(value)
	case "access_key_id", "secret_access_key":
		if strings.TrimSpace(value) != value || len(value) > maxSecret || strings.ContainsFunc(value, notGraphic) {
			return fmt.Sprintf("must have at most %d printable characters without blanks around them", maxSecret)
		}
	}
	return ""
}

func notGraphic(r rune) bool { return r <= ' ' || r >= 0x7f }

func checkPrefix(value string) string {
	switch {
	case len(value) > 512 || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) || !utf8.ValidString(value):
		return "must have at most 512 bytes of printable text"
	case strings.HasPrefix(value, "/") || strings.Contains(value, "//") || slices.Contains(strings.Split(value, "/"), ".."):
		return fmt.Sprintf("must be a prefix such as palisade/ without a leading slash, empty parts and .., got %q", value)
	}
	return ""
}

// recipients parses the list of addresses. problem names the first invalid address.
func recipients(list string) (addresses []string, problem string) {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		address, err := mail.ParseAddress(text)
		if err != nil || len(address.Address) > 254 || strings.ContainsFunc(address.Address, notGraphic) {
			return nil, fmt.Sprintf("must be e-mail addresses separated by commas, such as security@example.com; %q is none", text)
		}
		if !slices.Contains(addresses, address.Address) {
			addresses = append(addresses, address.Address)
		}
	}
	if len(addresses) > maxRecipients {
		return nil, fmt.Sprintf("must have at most %d addresses, got %d", maxRecipients, len(addresses))
	}
	return addresses, ""
}
