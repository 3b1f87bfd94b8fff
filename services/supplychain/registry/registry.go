// Package registry knows package registries: how they may be addressed, and which kinds of credentials they take.
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

// Kind is a kind of credentials, in the words of the API.
type Kind string

// The kinds of credentials of the contract (Package manager config).
const (
	None         Kind = ""
	Maven        Kind = "maven"
	PyPI         Kind = "pypi"
	CodeArtifact Kind = "codeArtifact"
	NPM          Kind = "npm"
)

// NoEcosystem is the word for a registry of no particular ecosystem.
const NoEcosystem = "no_package_manager"

// withCredentials lists the ecosystems whose registries take credentials.
var withCredentials = []string{"maven", "npm", "pypi"}

// Supported says which ecosystems take which credentials, for error texts.
const Supported = "maven (maven or codeArtifact), npm (npm or codeArtifact), pypi (pypi or codeArtifact)"

// Kinds lists the kinds of credentials that the registries of an ecosystem take; none for most of them.
func Kinds(ecosystem string) []Kind {
	if !slices.Contains(withCredentials, ecosystem) {
		return nil
	}
	return []Kind{Kind(ecosystem), CodeArtifact}
}

// CheckURL says what a URL that can be called must not have as the URL of a registry. It is shown to everybody who may
// see the configuration, so that it must not carry credentials; for the same reason no error repeats it.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.RawQuery != "" || u.ForceQuery || strings.ContainsRune(raw, '#') {
		return errors.New("must be an https:// URL without query and fragment: send tokens as credentials")
	}
	return nil
}

// HostPattern checks the pattern of a malware firewall, host[:port] with an optional "*." in front (contract facts,
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

// hostName is the form of DNS names; underscores occur in practice.
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
