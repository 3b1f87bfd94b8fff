package egress

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// FuzzCheckURL: an accepted URL is https, has no credentials, and its host is not a private address in any notation.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://hooks.example.com/x", "http://10.0.0.1", "https://0x7f.1", "https://[::ffff:127.0.0.1]", "https://a:b@c",
		"https://2130706433", "https://[fe80::1%25eth0]/", "https://①.②", "https://localhost.", "https://a.test:99999",
	} {
		f.Add(seed)
	}
	g := newGuard(f, "")
	f.Fuzz(func(t *testing.T, raw string) {
		if err := g.CheckURL(raw); err != nil {
			if !strings.HasPrefix(err.Error(), "must be an https:// URL") {
				t.Errorf("%q: the text does not say what is allowed: %q", raw, err)
			}
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Hostname() == "" {
			t.Fatalf("%q was accepted", raw)
		}
		if a, err := netip.ParseAddr(strings.TrimSuffix(u.Hostname(), ".")); err == nil && (refusalOf(a) != "" || a.Zone() != "") {
			t.Errorf("%q was accepted with the address %v", raw, a)
		}
	})
}

// FuzzAllowList: an entry is refused with its name, or permits exactly what it says.
func FuzzAllowList(f *testing.F) {
	for _, seed := range []string{
		"git.internal", "git.internal:443", "10.0.0.0/8", "10.0.0.0/8:443", "[::1]:25", "::1", "[fd00::/8]:443", "fd00::/8:443",
		"1.2.3.4:5", "[", "]:1", ":", "/", "a/b:c", "::ffff:10.0.0.0/104",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		list, err := parseAllowList(entry)
		if err != nil {
			return
		}
		if strings.Trim(entry, ", \t\r\n\v\f\u0085\u00a0") != "" && len(list.hosts)+len(list.prefixes) == 0 && strings.TrimSpace(strings.ReplaceAll(entry, ",", " ")) != "" {
			t.Fatalf("%q allows nothing and is no error", entry)
		}
		for _, h := range list.hosts {
			if hostProblem(h.name) != "" || !list.hostListed(h.name, max(h.port, 1)) {
				t.Errorf("%q: host %+v", entry, h)
			}
		}
		for _, p := range list.prefixes {
			if !p.prefix.IsValid() || !list.addressListed(p.prefix.Addr(), max(p.port, 1)) && !p.prefix.Addr().Is4In6() {
				t.Errorf("%q: range %+v", entry, p)
			}
		}
	})
}
