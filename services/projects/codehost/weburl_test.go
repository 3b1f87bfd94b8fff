package codehost

import "testing"

func TestWebURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://github.com/acme/web":                   "https://github.com/acme/web",
		" https://github.com/acme/web.git/ ":            "https://github.com/acme/web",
		"http://git.acme.test:3000/acme/web":            "http://git.acme.test:3000/acme/web",
		"HTTPS://kim:pw@git.acme.test/acme/web?x=1#y":   "https://git.acme.test/acme/web",
		"https://git.acme.test/a%20b/web":               "https://git.acme.test/a%20b/web",
		"git+https://github.com/acme/web.git":           "https://github.com/acme/web",
		"git://github.com/acme/web.git":                 "https://github.com/acme/web",
		"git@github.com:acme/web.git":                   "https://github.com/acme/web",
		"github.com:acme/web":                           "https://github.com/acme/web",
		"ssh://git@github.com/acme/web.git":             "https://github.com/acme/web",
		"git+ssh://git@git.acme.test:7999/acme/web.git": "https://git.acme.test/acme/web",
		"git@ssh.dev.azure.com:v3/acme/tools/web":       "https://dev.azure.com/acme/tools/_git/web",
		"https://dev.azure.com/acme/tools/_git/web":     "https://dev.azure.com/acme/tools/_git/web",
		"ssh://git@[2001:db8::1]:7999/acme/web":         "https://[2001:db8::1]/acme/web",
		"":                                              "",
		"https://github.com":                            "",
		"https://github.com/":                           "",
		"https:///acme/web":                             "",
		"https://git.acme.test/acme/../web":             "",
		"https://git.acme.test/acme web":                "",
		"https://git.acme.test/acme\nweb":               "",
		"javascript:alert(1)":                           "",
		"javascript://github.com/%0aalert(1)":           "",
		"data:text/html,x":                              "",
		"file:///srv/git/web":                           "",
		"/srv/git/web":                                  "",
		`C:\git\web`:                                    "",
		"acme/web":                                      "",
		"ftp://git.acme.test/acme/web":                  "",
	} {
		if got := WebURL(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := Shown("https://kim:pw@git.acme.test"); got != "https://kim:xxxxx@git.acme.test" {
		t.Errorf("shown as %q", got)
	}
}
