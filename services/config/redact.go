package config

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
)

const redacted = "[redacted]"

// String prints every key without its secrets, so that the whole configuration can be logged.
func (c Config) String() string {
	var b strings.Builder
	for i, f := range Fields() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(f.Name + "=" + c.shown(f))
	}
	return b.String()
}

// GoString keeps %#v from printing secrets.
func (c Config) GoString() string { return "config.Config{" + c.String() + "}" }

// LogValue is the configuration as a group of log attributes, without secrets.
func (c Config) LogValue() slog.Value {
	fields := Fields()
	attrs := make([]slog.Attr, len(fields))
	for i, f := range fields {
		attrs[i] = slog.String(f.Name, c.shown(f))
	}
	return slog.GroupValue(attrs...)
}

// MarshalJSON writes the keys as strings, without secrets.
func (c Config) MarshalJSON() ([]byte, error) {
	shown := map[string]string{}
	for _, f := range Fields() {
		shown[f.Name] = c.shown(f)
	}
	return json.Marshal(shown)
}

// shown is the value of a field without its secrets.
func (c Config) shown(f Field) string {
	text := c.get(f)
	switch reflect.TypeFor[Config]().Field(f.index).Tag.Get("secret") {
	case "":
		return text
	case "url":
		return redactURL(text)
	default:
		if text == "" {
			return ""
		}
		return redacted
	}
}

// redactURL hides the passwords in a URL: the user's password, and libpq query parameters that carry one. Text that is
// not a URL is hidden completely.
func redactURL(text string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" && u.Opaque != "" || isCutShort(u) {
		return redacted
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return redacted
	}
	for key := range query {
		if lower := strings.ToLower(key); strings.Contains(lower, "pass") || strings.Contains(lower, "secret") {
			query.Set(key, "xxxxx")
			u.RawQuery = query.Encode()
		}
	}
	return u.Redacted()
}

// isCutShort reports whether the host of a URL may be part of a password. An unescaped #, / or ? in a password ends the
// host early and leaves a colon or an @ in the rest of the URL.
func isCutShort(u *url.URL) bool {
	return u.Fragment != "" || strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "[") || strings.Contains(u.Path+u.RawQuery, "@")
}
