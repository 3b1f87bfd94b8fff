// Package mailserver parses the settings of the outgoing mail server.
package mailserver

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
)

// Config is the operator's mail server. The zero value disables e-mail.
type Config struct {
	Host, Port     string
	ImplicitTLS    bool
	User, Password string
	From           string
}

// Enabled reports whether e-mail can be sent.
func (c Config) Enabled() bool { return c.Host != "" }

// String is host:port, without the password.
func (c Config) String() string { return net.JoinHostPort(c.Host, c.Port) }

// GoString keeps %#v from printing the password.
func (c Config) GoString() string { return c.String() }

// Parse reads the settings smtp and smtp-from. An empty smtp gives the zero value.
func Parse(smtp, from string) (Config, error) {
	if smtp == "" {
		return Config{}, nil
	}
	c, err := parseSMTP(smtp)
	if err != nil {
		return Config{}, err
	}
	if err := CheckFrom(from); err != nil {
		return Config{}, err
	}
	c.From = from
	return c, nil
}

// CheckSMTP returns the problem with the setting smtp, or nil. The text contains no password.
func CheckSMTP(text string) error {
	_, err := parseSMTP(text)
	return err
}

// CheckFrom returns the problem with the setting smtp-from, or nil.
func CheckFrom(text string) error {
	if _, err := mail.ParseAddress(text); err != nil {
		return fmt.Errorf("got %q, want an address such as palisade@example.com or Palisade <palisade@example.com>", text)
	}
	return nil
}

var errSMTPForm = errors.New("want smtp://user:password@host:587 (STARTTLS) or smtps://user:password@host:465, " +
	"with special characters of the password percent-encoded")

func parseSMTP(text string) (Config, error) {
	u, err := url.Parse(text)
	if err != nil { // quotes the URL, including the password
		return Config{}, errSMTPForm
	}
	c := Config{Host: u.Hostname(), Port: u.Port()}
	switch u.Scheme {
	case "smtp":
		c.Port = cmp.Or(c.Port, "587")
	case "smtps":
		c.Port, c.ImplicitTLS = cmp.Or(c.Port, "465"), true
	default:
		return Config{}, fmt.Errorf("got a URL of scheme %q, %w", u.Scheme, errSMTPForm)
	}
	if n, err := strconv.ParseUint(c.Port, 10, 16); err != nil || n == 0 {
		return Config{}, fmt.Errorf("got port %q, want 1 to 65535", c.Port)
	}
	if c.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return Config{}, fmt.Errorf("got a URL without a host, or with more than a host: %w", errSMTPForm)
	}
	if u.User != nil {
		password, hasPassword := u.User.Password()
		if u.User.Username() == "" || !hasPassword || password == "" {
			return Config{}, errors.New("names a user without a password or a password without a user; give both, or none for a server that wants none")
		}
		c.User, c.Password = u.User.Username(), password
	}
	return c, nil
}
