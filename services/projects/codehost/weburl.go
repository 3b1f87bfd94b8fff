package codehost

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// RepositoryRule says what WebURL accepts.
const RepositoryRule = "must be the URL of a Git repository, such as https://github.com/acme/web or git@github.com:acme/web.git"

// scpForm is the form user@host:path of Git's SSH addresses.
var scpForm = regexp.MustCompile(`^(?:[\w.~-]+@)?([\w.-]+\.[\w-]+|localhost):([^/:\\].*)$`)

// WebURL returns the web URL of a Git repository: http or https, without credentials, query and ".git". It is safe to
// be shown as a link. Addresses of SSH are converted. It returns "" for anything else.
func WebURL(text string) string {
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return ""
	}
	if match := scpForm.FindStringSubmatch(text); match != nil {
		text = "ssh://" + match[1] + "/" + match[2]
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return ""
	}
	host := u.Host
	switch scheme := strings.ToLower(strings.TrimPrefix(u.Scheme, "git+")); scheme {
	case "http", "https":
		u.Scheme = scheme
	case "ssh", "git":
		u.Scheme, host = "https", u.Hostname() // the port is another service's
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
	default:
		return ""
	}
	path := strings.TrimSuffix(strings.Trim(u.EscapedPath(), "/"), ".git")
	if parts := strings.Split(path, "/"); host == "ssh.dev.azure.com" && len(parts) == 4 && parts[0] == "v3" {
		host, path = "dev.azure.com", parts[1]+"/"+parts[2]+"/_git/"+parts[3]
	}
	if path == "" || slices.Contains(strings.Split(u.Path, "/"), "..") {
		return ""
	}
	return u.Scheme + "://" + host + "/" + path
}

// Plain is the URL of a repository without the endings that hosts accept.
func Plain(address string) string {
	return strings.TrimSuffix(strings.TrimRight(address, "/"), ".git")
}

// SameHost compares the hosts of two URLs. A URL without a host is at none.
func SameHost(a, b string) bool {
	first, err := url.Parse(a)
	second, err2 := url.Parse(b)
	return err == nil && err2 == nil && first.Host != "" && strings.EqualFold(first.Host, second.Host)
}

// Shown is a refused URL without its credentials, for error messages.
func Shown(text string) string {
	if u, err := url.Parse(strings.TrimSpace(text)); err == nil {
		return u.Redacted()
	}
	return "a text that is no URL"
}
