package channel

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"
)

// Mask replaces each secret part in a displayed URL.
const Mask = "***"

// capabilityHosts are chat and automation services with webhook URLs that are credentials by themselves. A leading dot
// includes all subdomains.
var capabilityHosts = []string{
	"discord.com", "discordapp.com", "hooks.slack.com", ".webhook.office.com", ".logic.azure.com", ".powerplatform.com",
	"chat.googleapis.com", "hooks.zapier.com", "maker.ifttt.com", ".pipedream.net",
}

// secretName matches names of query parameters that contain credentials.
var secretName = regexp.MustCompile(`(?i)key|token|secret|sig|auth|pass|code|cred|session|access`)

// MaskURL replaces each part of path, query and fragment that looks like a token by Mask, and reports whether there was
// one: anyone with such a URL can post to it. In doubt it masks, but it keeps words:
// https://hooks.example.com/palisade/findings has no secret. An invalid URL is returned unchanged.
func MaskURL(raw string) (masked string, secret bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw, false
	}
	shown, query, fragment := u.EscapedPath(), u.RawQuery, u.EscapedFragment()
	if path := maskPath(u.Hostname(), shown); path != shown {
		shown, secret = path, true
	}
	if parameters := maskQuery(query); parameters != query {
		query, secret = parameters, true
	}
	if looksLikeToken(fragment) {
		fragment, secret = Mask, true
	}
	if !secret {
		return raw, false
	}
	masked = u.Scheme + "://" + u.Host + shown
	if query != "" {
		masked += "?" + query
	}
	if fragment != "" {
		masked += "#" + fragment
	}
	return masked, true
}

// IsMasked reports whether parts of a URL are masked, so that it cannot be called.
func IsMasked(raw string) bool { return strings.Contains(raw, Mask) }

func maskPath(host, path string) string {
	known := slices.ContainsFunc(capabilityHosts, func(name string) bool {
		host := strings.ToLower(strings.TrimSuffix(host, "."))
		return host == name || strings.HasPrefix(name, ".") && strings.HasSuffix(host, name)
	})
	parts := strings.Split(path, "/")
	for i, part := range parts {
		// The first path segment of a known service names its API: /api, /services, /webhookb2.
		if looksLikeToken(part) || known && i > 1 && part != "" {
			parts[i] = Mask
		}
	}
	return strings.Join(parts, "/")
}

func maskQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, found := strings.Cut(pair, "=")
		switch {
		case found && value != "" && (secretName.MatchString(name) || looksLikeToken(value)):
			pairs[i] = name + "=" + Mask
		case !found && looksLikeToken(name):
			pairs[i] = Mask
		}
	}
	return strings.Join(pairs, "&")
}

// looksLikeToken distinguishes random text from words: a UUID, or a long run of mixed letters and digits without a
// separator.
func looksLikeToken(escaped string) bool {
	text, err := url.PathUnescape(escaped)
	if err != nil {
		text = escaped
	}
	if _, err := uuid.Parse(text); err == nil {
		return true
	}
	for _, run := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		upper := strings.ContainsFunc(run, unicode.IsUpper)
		lower := strings.ContainsFunc(run, unicode.IsLower)
		digit := strings.ContainsFunc(run, unicode.IsDigit)
		switch n := len(run); {
		case upper && lower && digit && n >= 8, digit && n >= 12, upper && lower && n >= 20, n >= 32:
			return true
		}
	}
	return false
}
