package egress

import (
	"log/slog"
	"strings"
	"testing"
)

func newGuard(t testing.TB, allow string) *Guard {
	t.Helper()
	g, err := New(Config{Allow: allow, UserAgent: "Palisade/test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

const publicOnly = "with a public host"

// secret is where users put credentials. No text may repeat it.
const secret = "hunter22"

func TestCheckURLRefuses(t *testing.T) {
	g := newGuard(t, "hooks.internal:8443,10.1.0.0/16")
	for raw, want := range map[string]string{
		"":                                              "got nothing",
		"hooks.example.com":                             "not a URL",
		"//hooks.example.com/x":                         "not a URL",
		"/x":                                            "not a URL",
		"mailto:a@example.com":                          "not a URL",
		"http:hooks.example.com":                        "not a URL",
		" https://hooks.example.com":                    "not a URL",
		"https://hooks.example.com\n":                   "not a URL",
		"https://ex ample.com":                          "not a URL",
		"https://[::1":                                  "not a URL",
		"https://a.test:port/":                          "not a URL",
		"https://a.test/%zz":                            "not a URL",
		"https:///path":                                 "with a host",
		"https://:443/":                                 "with a host",
		"http://hooks.example.com/x":                    "plain http",
		"http://hooks.internal/x":                       "plain http", // allowed on port 8443 only
		"http://10.2.0.1/":                              "plain http",
		"ftp://hooks.example.com/x":                     `got "ftp://hooks.example.com"`,
		"file:///etc/passwd":                            `got "file://"`,
		"javascript://x/%0aalert(1)":                    "https://",
		"gopher://127.0.0.1:25/_HELO":                   "https://",
		"unix:///var/run/docker.sock":                   "https://",
		"https://user:" + secret + "@a.test/":           "without user",
		"https://" + secret + "@a.test/":                "without user",
		"https://a.test:0/":                             "port",
		"https://a.test:65536/":                         "port",
		"https://127.0.0.1/":                            publicOnly,
		"https://127.0.0.1:8080/":                       publicOnly,
		"https://10.2.0.1/":                             publicOnly,
		"https://169.254.169.254/latest/meta-data/":     publicOnly,
		"https://0.0.0.0/":                              publicOnly,
		"https://[::]/":                                 publicOnly,
		"https://[::1]/":                                publicOnly,
		"https://[::ffff:127.0.0.1]/":                   publicOnly,
		"https://[0:0:0:0:0:ffff:7f00:1]/":              publicOnly,
		"https://[64:ff9b::7f00:1]/":                    publicOnly,
		"https://[fd00:ec2::254]/":                      publicOnly,
		"https://[fe80::1%25eth0]/":                     publicOnly,
		"https://%31%32%37.0.0.1/":                      "not a URL",
		"https://localhost/":                            publicOnly,
		"https://LOCALHOST./":                           publicOnly,
		"https://a.localhost/":                          publicOnly,
		"https://127.0.0.1./":                           "ends in a number",
		"https://127.1/":                                "ends in a number",
		"https://0x7f.1/":                               "ends in a number",
		"https://0x7f000001/":                           "ends in a number",
		"https://2130706433/":                           "ends in a number",
		"https://0177.0.0.1/":                           "ends in a number",
		"https://1.2.3.4.5/":                            "ends in a number",
		"https://①②⑦.⓪.⓪.①/":                            "xn--",
		"https://bücher.example/":                       "xn--",
		"https://a..test/":                              "empty",
		"https://a_b!.test/":                            "'!'",
		"https://-$.test/":                              "'$'",
		"https://" + strings.Repeat("a", 64) + ".test/": "63",
		"https://a.test/" + strings.Repeat("x", 3000):   "at most 2048 characters, got 3015",
	} {
		err := g.CheckURL(raw)
		if err == nil {
			t.Errorf("%q was accepted", raw)
			continue
		}
		if text := err.Error(); !strings.Contains(text, want) || !strings.HasPrefix(text, "must be an https:// URL") ||
			strings.Contains(text, secret) || len(text) > 300 {
			t.Errorf("%q: got %q, want %q", raw, text, want)
		}
	}
}

func TestCheckURLAccepts(t *testing.T) {
	g := newGuard(t, "hooks.internal:8443,10.1.0.0/16,localhost,[fd00::1]:8080")
	for _, raw := range []string{
		"https://hooks.example.com",
		"https://hooks.example.com./x",
		"HTTPS://Hooks.Example.com:8443/x?y=z#f",
		"https://xn--bcher-kva.example/",
		"https://a_b.example.com/",
		"https://8.8.8.8/",
		"https://[2606:4700:4700::1111]:443/",
		"https://0x7f.example.com/",
		"https://intranet/", // public or not: found out by a call
		"http://hooks.internal:8443/x",
		"http://HOOKS.internal.:8443/x",
		"http://10.1.2.3/x",
		"http://[::ffff:10.1.2.3]/x",
		"http://localhost:9000/",
		"http://[fd00::1]:8080/",
	} {
		if err := g.CheckURL(raw); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestCheckURLRepeatsNoPath(t *testing.T) {
	err := newGuard(t, "").CheckURL("http://hooks.example.com/services/" + secret + "?token=" + secret + "#" + secret)
	if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), `"http://hooks.example.com"`) {
		t.Errorf("got %v", err)
	}
}
