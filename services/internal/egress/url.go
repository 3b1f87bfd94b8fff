package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// maxURL is in bytes. Hosts and proxies do not accept longer URLs either.
const maxURL = 2048

// CheckURL returns why the URL of a setting cannot be called, or nil. The text follows the name of the field ("url must
// be an https:// URL …"). It makes no DNS request: a call finds out whether the host resolves to a private address.
//
// Plain http is permitted only to hosts and addresses on the allow list. The text repeats only scheme and host, since
// user, path and query may be secret.
func (g *Guard) CheckURL(raw string) error {
	if raw == "" {
		return errors.New("must be an https:// URL with a host, got nothing")
	}
	if len(raw) > maxURL {
		return fmt.Errorf("must be an https:// URL of at most %d characters, got %d", maxURL, len(raw))
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Scheme == "" {
		return errors.New("must be an https:// URL with a host, such as https://hooks.example.com/palisade; got text that is not a URL")
	}
	return g.checkParsed(u)
}

func (g *Guard) checkParsed(u *url.URL) error {
	host, shown := u.Hostname(), shownURL(u)
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("must be an https:// URL, got %q", shown)
	case u.User != nil:
		return fmt.Errorf("must be an https:// URL without user and password in it, got %q with them", shown)
	case host == "":
		return fmt.Errorf("must be an https:// URL with a host, got %q", shown)
	}
	port, err := urlPort(u)
	if err != nil {
		return fmt.Errorf("must be an https:// URL with a port of 1 to 65535 or none, got %q", shown)
	}
	listed := g.Listed(host, port)
	if u.Scheme == "http" && !listed {
		return fmt.Errorf("must be an https:// URL, got %q (plain http is only for hosts that the operator allows)", shown)
	}
	if listed {
		return nil
	}
	return checkHost(host, shown)
}

// checkHost refuses what can be refused without a DNS request.
func checkHost(host, shown string) error {
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" || refusalOf(address) != "" {
			return fmt.Errorf("must be an https:// URL with a public host, got %q (other addresses are only for hosts that the operator allows)", shown)
		}
		return nil
	}
	name := normalHost(host)
	if problem := hostProblem(name); problem != "" {
		return fmt.Errorf("must be an https:// URL with a host; the host of %q %s", shown, problem)
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return fmt.Errorf("must be an https:// URL with a public host, got %q (other addresses are only for hosts that the operator allows)", shown)
	}
	return nil
}

// normalHost is the form of a name for comparison.
func normalHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// hostProblem returns why a normalized host name is invalid, or "". Some resolvers read a name that ends in a number as
// an IPv4 address (0x7f.1, 2130706433), and letters beyond ASCII may normalize to digits and dots.
func hostProblem(name string) string {
	if name == "" {
		return "is not a host name"
	}
	if len(name) > 253 {
		return "is longer than 253 characters"
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "has a part between dots that is empty or longer than 63 characters"
		}
		last = label
	}
	for _, r := range name {
		switch {
		case r > 127:
			return "has letters beyond ASCII: write it in its xn-- form"
		case r != '.' && r != '-' && r != '_' && !isDigit(r) && (r < 'a' || r > 'z'):
			return fmt.Sprintf("has the character %q, which no host name has", r)
		}
	}
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return "ends in a number but is no IPv4 address of four decimal numbers"
	}
	return ""
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func urlPort(u *url.URL) (uint16, error) {
	if text := u.Port(); text != "" {
		return parsePort(text)
	}
	if u.Scheme == "http" {
		return 80, nil
	}
	return 443, nil
}

// shownURL is the part of a URL that error texts repeat. Webhook URLs carry their secret in the path or the query.
func shownURL(u *url.URL) string {
	host := u.Host
	if len(host) > 100 {
		host = host[:100] + "…"
	}
	return u.Scheme + "://" + host
}
