// Package registry defines the URL formats and credential kinds of package registries.
package registry

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kind is a kind of credentials, as in the API.
type Kind string

// Kinds of credentials in the contract (Package manager config).
const (
	None         Kind = ""
	Maven        Kind = "maven"
	PyPI         Kind = "pypi"
	CodeArtifact Kind = "codeArtifact"
	NPM          Kind = "npm"
)

// NoEcosystem is the word for a registry without an ecosystem.
const NoEcosystem = "no_package_manager"

// withCredentials lists the ecosystems with registries that accept credentials.
var withCredentials = []string{"maven", "npm", "pypi"}

// Supported lists the credential kinds per ecosystem, for error texts.
const Supported = "maven (maven or codeArtifact), npm (npm or codeArtifact), pypi (pypi or codeArtifact)"

// Kinds lists the credential kinds of an ecosystem's registries; usually none.
func Kinds(ecosystem string) []Kind {
	if !slices.Contains(withCredentials, ecosystem) {
		return nil
	}
	return []Kind{Kind(ecosystem), CodeArtifact}
}

// CheckURL rejects callable URLs that are not allowed for a registry. All readers of the configuration see the URL, so
// it must not contain credentials, and errors never repeat it.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.RawQuery != "" || u.ForceQuery || strings.ContainsRune(raw, '#') {
		return errors.New("must be an https:// URL without query and fragment: send tokens as credentials")
	}
	return nil
}

// HostPattern validates the pattern of a malware firewall, host[:port] with an optional "*." prefix (contract facts,
// 3.3), and returns it in lower case.
func HostPattern(pattern string) (string, error) {
	pattern = strings.ToLower(pattern)
	host, wildcard := strings.CutPrefix(pattern, "*.")
	if end := strings.LastIndexByte(host, ':'); end >= 0 && !strings.HasSuffix(host, "]") {
		if !portNumber(host[end+1:]) {
			return "", errors.New("must be host[:port] with a port from 1 to 65535")
		}
		host = host[:end]
	}
	literal := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if literal {
		host = host[1 : len(host)-1]
	}
	address, err := netip.ParseAddr(host)
	switch {
	case literal && (err != nil || !address.Is6() || address.Zone() != ""), !literal && err == nil && address.Is6(), !isHost(host):
		return "", fmt.Errorf("must be a host pattern: host[:port], with *. in front for its subdomains, and without https:// and a path")
	case wildcard && err == nil:
		return "", errors.New("must not combine *. with an IP address")
	}
	return pattern, nil
}

// hostName matches DNS names; underscores occur in practice.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*\.?$`)

func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return len(host) <= 253 && hostName.MatchString(host)
}

func portNumber(text string) bool {
	number, err := strconv.ParseUint(text, 10, 16)
	return err == nil && number > 0
}
