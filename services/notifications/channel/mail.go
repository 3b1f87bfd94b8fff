package channel

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
)

// MailConfig is the operator's mail server. The zero value means that no e-mail is sent.
type MailConfig struct {
	host, port     string
	implicitTLS    bool
	user, password string
	from           string
}

// Enabled tells whether e-mail can be sent.
func (c MailConfig) Enabled() bool { return c.host != "" }

// String is host:port, so that a password is never printed.
func (c MailConfig) String() string { return net.JoinHostPort(c.host, c.port) }

// GoString is String: %#v prints no password either.
func (c MailConfig) GoString() string { return c.String() }

// ParseMail reads the settings smtp and smtp-from. An empty smtp gives the zero value.
func ParseMail(smtp, from string) (MailConfig, error) {
	if smtp == "" {
		return MailConfig{}, nil
	}
	c, err := parseSMTP(smtp)
	if err != nil {
		return MailConfig{}, err
	}
	if err := CheckFrom(from); err != nil {
		return MailConfig{}, err
	}
	c.from = from
	return c, nil
}

// CheckSMTP says what is wrong with the setting smtp; nil when nothing is. The text has no password in it.
func CheckSMTP(text string) error {
	_, err := parseSMTP(text)
	return err
}

// CheckFrom says what is wrong with the setting smtp-from; nil when nothing is.
func CheckFrom(text string) error {
	if _, err := mail.ParseAddress(text); err != nil {
		return fmt.Errorf("got %q, want an address such as palisade@example.com or Palisade <palisade@example.com>", text)
	}
	return nil
}

var errSMTPForm = errors.New("want smtp://user:password@host:587 (STARTTLS) or smtps://user:password@host:465, " +
	"with special characters of the password percent-encoded")

func parseSMTP(text string) (MailConfig, error) {
	u, err := url.Parse(text)
	if err != nil { // quotes the URL, and with it the password
		return MailConfig{}, errSMTPForm
	}
	c := MailConfig{host: u.Hostname(), port: u.Port()}
	switch u.Scheme {
	case "smtp":
		c.port = firstOf(c.port, "587")
	case "smtps":
		c.port, c.implicitTLS = firstOf(c.port, "465"), true
	default:
		return MailConfig{}, fmt.Errorf("got a URL of scheme %q, %w", u.Scheme, errSMTPForm)
	}
	if n, err := strconv.ParseUint(c.port, 10, 16); err != nil || n == 0 {
		return MailConfig{}, fmt.Errorf("got port %q, want 1 to 65535", c.port)
	}
	if c.host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return MailConfig{}, fmt.Errorf("got a URL without a host, or with more than a host: %w", errSMTPForm)
	}
	if u.User != nil {
		password, hasPassword := u.User.Password()
		if u.User.Username() == "" || !hasPassword || password == "" {
			return MailConfig{}, errors.New("names a user without a password or a password without a user; give both, or none for a server that wants none")
		}
		c.user, c.password = u.User.Username(), password
	}
	return c, nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
