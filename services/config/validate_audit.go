package config

import (
	"net/url"
	"path/filepath"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
)

// minAnchorInterval is the shortest time between two anchors.
const minAnchorInterval = 10 * time.Second

// validateAuditAnchor checks the destination of anchors.
func (c Config) validateAuditAnchor(p *problemList) {
	if c.AuditAnchorEvery < minAnchorInterval {
		p.add("audit-anchor-every", "got %v, want %v or more", c.AuditAnchorEvery, minAnchorInterval)
	}
	if c.AuditAnchor == "" {
		return
	}
	const want = "want file:///path, syslog://host:514, syslog+udp://host:514 or an https:// URL"
	u, err := url.Parse(c.AuditAnchor)
	if err != nil {
		p.add("audit-anchor", "is not a URL; %s", want)
		return
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) || u.RawQuery != "" {
			p.add("audit-anchor", "got %q, want file:// and an absolute path, such as file:///var/log/palisade/anchors.ndjson", redactURL(c.AuditAnchor))
		}
	case "syslog", "syslog+udp":
		if u.Hostname() == "" || u.Path != "" || u.User != nil {
			p.add("audit-anchor", "got %q, want a host and nothing behind it, such as syslog://logs.acme.test:514", redactURL(c.AuditAnchor))
		}
	case "http", "https":
		guard, err := egress.New(egress.Config{Allow: c.EgressAllow})
		if err != nil {
			return // validateOutgoing reports it
		}
		if err := guard.CheckURL(c.AuditAnchor); err != nil {
			p.add("audit-anchor", "%v", err)
		}
	default:
		p.add("audit-anchor", "got the scheme %q, %s", u.Scheme, want)
	}
}

// AnchorFile is the file that audit-anchor names. ok is false when it names none.
func (c Config) AnchorFile() (path string, ok bool) {
	u, err := url.Parse(c.AuditAnchor)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return u.Path, true
}
