package egress

import (
	"strings"
	"testing"
)

func TestAllowList(t *testing.T) {
	list, err := parseAllowList(" git.internal , Hooks.Internal.:8443,,10.1.0.0/16, 192.168.7.0/24:443,172.16.5.4,172.16.5.5:25," +
		"fd00:1::/32,[fd00:2::/32]:443,fd00:3::/32:443,fd00:4::1,[fd00:4::2]:443,[fd00:4::3],::ffff:10.9.0.0/112,xn--bcher-kva.example,")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host string
		port uint16
		want bool
	}{
		{"git.internal", 1, true},
		{"hooks.internal", 8443, true},
		{"hooks.internal", 443, false},
		{"internal", 443, false},
		{"evil-git.internal", 443, false},
		{"a.git.internal", 443, false},
		{"xn--bcher-kva.example", 443, true},
	} {
		if got := list.hostListed(normalHost(c.host), c.port); got != c.want {
			t.Errorf("host %s:%d: got %v", c.host, c.port, got)
		}
	}
	for addressPort, refused := range map[string]bool{
		"10.1.2.3:80":             false,
		"[::ffff:10.1.2.3]:80":    false,
		"10.2.0.1:80":             true,
		"192.168.7.9:443":         false,
		"192.168.7.9:80":          true,
		"172.16.5.4:1":            false,
		"172.16.5.5:25":           false,
		"172.16.5.5:26":           true,
		"[fd00:1::5]:80":          false,
		"[fd00:2::5]:443":         false,
		"[fd00:2::5]:80":          true,
		"[fd00:3::5]:443":         false,
		"[fd00:3::5]:80":          true,
		"[fd00:4::1]:80":          false,
		"[fd00:4::1%eth0]:80":     false,
		"[fd00:4::2]:443":         false,
		"[fd00:4::2]:80":          true,
		"[fd00:4::3]:80":          false,
		"10.9.1.1:80":             false,
		"127.0.0.1:80":            true,
		"8.8.8.8:80":              false,
		"[64:ff9b::10.1.2.3]:443": true, // the range permits its addresses in no other form
		"no address":              true,
	} {
		if got := list.refusal(addressPort); (got != "") != refused {
			t.Errorf("%s: got %q, want refused %v", addressPort, got, refused)
		}
	}
}

func TestAllowListProblems(t *testing.T) {
	for entry, want := range map[string]string{
		"https://git.internal":    "without scheme",
		"git.internal/path":       "without scheme",
		"git.internal:0":          `port "0"`,
		"git.internal:https":      `port "https"`,
		"git.internal:70000":      `port "70000"`,
		"git.internal:":           `port ""`,
		"*.internal":              "'*'",
		"git internal":            "' '",
		"10.0.0.0/33":             "is not a range",
		"10.1.2.3/8":              "write 10.0.0.0/8",
		"fd00::1/64":              "write fd00::/64",
		"300.1.1.1":               "ends in a number",
		"127.1":                   "ends in a number",
		"0x7f.1":                  "ends in a number",
		"2130706433":              "ends in a number",
		"[fd00::1":                "'['",
		"[fd00::1]443":            "'['",
		"fe80::1%eth0":            "zone",
		"bücher.example":          "xn--",
		"git..internal":           "empty",
		strings.Repeat("a", 64):   "63",
		strings.Repeat("a.", 200): "253",
		":443":                    "is not a host name",
		"user@git.internal":       "'@'",
	} {
		_, err := New(Config{Allow: "ok.internal," + entry})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"`+entry+`"`) {
			t.Errorf("%s: got %v, want %s", entry, err, want)
		}
	}
	if _, err := New(Config{Allow: "a b,c/d,ok"}); err == nil || strings.Count(err.Error(), ";") < 2 {
		t.Errorf("not all problems are named: %v", err)
	}
}

func TestListed(t *testing.T) {
	g := newGuard(t, "git.internal:443,10.0.0.0/8")
	for host, want := range map[string]bool{"GIT.internal.": true, "10.1.1.1": true, "::ffff:10.1.1.1": true, "11.1.1.1": false, "other.internal": false} {
		if got := g.Listed(host, 443); got != want {
			t.Errorf("%s: got %v", host, got)
		}
	}
	wider, err := g.Allowing("mail.internal:587")
	if err != nil {
		t.Fatal(err)
	}
	if !wider.Listed("mail.internal", 587) || wider.Listed("mail.internal", 25) || !wider.Listed("git.internal", 443) || g.Listed("mail.internal", 587) {
		t.Error("Allowing must add to a copy only")
	}
	if _, err := g.Allowing("mail internal:587"); err == nil {
		t.Error("a host that is none was allowed")
	}
}
