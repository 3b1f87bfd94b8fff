package server_test

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// browser is the Accept header of browsers.
const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// visit requests a path with an Accept header. "" sends none.
func visit(t *testing.T, method, url, accept string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	return exchange(t, request)
}

// The links that scanners print lead to pages with the commands that show the same.
func TestLinkPages(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.PublicURL = "https://palisade.acme.test/scans"
	s, _ := apitest.StartConfigured(t, cfg)
	base := "http://" + s.Addresses().HTTP
	for path, want := range map[string]string{
		"/orgs/-/findings?repo=acme/web&ref=refs/pull/7/merge": "palisade findings --repos=acme/web --ref=refs/pull/7/merge",
		"/orgs/-/findings": "palisade findings\n",
		"/orgs/-/supply-chain/vulnerabilities?repo=acme%2Fweb": "palisade findings --issue-type=sca --repos=acme/web",
		"/orgs/acme/policies":                "palisade rules list --deployment=acme",
		"/orgs/-/policies":                   "/remediation-policies",
		"/orgs/-/settings/tokens/":           "palisade token create --name=ci --scopes=agent",
		"/orgs/-/findings/17":                "palisade findings\n",
		"/orgs/-/findings/17/":               "/api/findings/v1/deployments/SLUG/findings/17\"",
		"/r/acme.go.md5":                     "palisade rules show acme.go.md5",
		"/r/a/b":                             "palisade rules show a/b",
		"/r/it's%20%3Cb%3E":                  `palisade rules show 'it'\''s <b>'`,
		"/orgs/-/findings?repo=a,b%22c":      `--repos='"a,b""c"'`,
		"/orgs/-/findings?repo=$(reboot)":    `--repos='$(reboot)'`,
		"/orgs/-/findings?ref=a%0Areboot":    "--ref=REF",
		"/orgs/-/findings?ref=a%E2%80%AEb":   "--ref=REF",
		"/orgs/-/findings?ref=%FF":           "--ref=REF",
		"/orgs/-/findings?repo=%3Cscript%3E": "--repos='<script>'",
		"/orgs/-/findings?repo=-x":           "--repos=REPOSITORY",
	} {
		response, page := visit(t, http.MethodGet, base+path, browser)
		if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %v", path, response.StatusCode, response.Header)
		}
		commands := html.UnescapeString(page)
		if !strings.Contains(strings.ReplaceAll(commands, "</pre>", "\n"), want) {
			t.Errorf("%s: %q is not in the page:\n%s", path, want, page)
		}
		if regexp.MustCompile(`(?i)<script|<b>|\bon[a-z]+=|\b(src|href|style)=`).MatchString(page) {
			t.Errorf("%s: the page has a script, or loads something:\n%s", path, page)
		}
		policy := response.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "script-src") || strings.Contains(policy, "unsafe") ||
			response.Header.Get("X-Frame-Options") != "DENY" || response.Header.Get("Vary") == "" {
			t.Errorf("%s: headers %v", path, response.Header)
		}
	}
	_, page := visit(t, http.MethodGet, base+"/orgs/default/policies", browser)
	if !strings.Contains(page, "export PALISADE_URL=https://palisade.acme.test/scans\n") {
		t.Errorf("no public URL:\n%s", page)
	}
	_, unknown := visit(t, http.MethodGet, base+"/orgs/nobody/policies", browser)
	if strings.ReplaceAll(page, "=default", "") != strings.ReplaceAll(unknown, "=nobody", "") {
		t.Errorf("an unknown organization has another page:\n%s\n%s", page, unknown)
	}
}

// API clients, and scanners that fetch rules, never get a page.
func TestLinkPagesAreForBrowsers(t *testing.T) {
	s, out := apitest.StartConfigured(t, apitest.EmptyConfig(t))
	base := "http://" + s.Addresses().HTTP
	for _, accept := range []string{"", "*/*", "application/json", "application/json, text/html;q=0.5", "application/*"} {
		for path, want := range map[string]int{
			"/": http.StatusNotFound, "/orgs/-/findings": http.StatusNotFound, "/r/palisade.go": http.StatusUnauthorized,
		} {
			response, body := visit(t, http.MethodGet, base+path, accept)
			if response.StatusCode != want || response.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s for %q: %d %s", path, accept, response.StatusCode, body)
			}
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/r/palisade.go", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+out.Token())
	request.Header.Set("Accept", "*/*")
	if response, body := exchange(t, request); response.StatusCode != http.StatusOK || !strings.HasPrefix(body, `{"rule_config":{"rules"`) &&
		!strings.HasPrefix(body, `{"rules"`) {
		t.Errorf("rules for a scanner: %d %.200s", response.StatusCode, body)
	}
	for _, path := range []string{"/orgs/-/nothing", "/orgs//findings", "/orgs/-/findings/x", "/orgs/Acme%20Inc/findings/17/more", "/orgs/-/findings/99999999999999999999", "/r/", "/api/v1/deployments"} {
		if response, body := visit(t, http.MethodGet, base+path, browser); response.StatusCode < 400 || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s in a browser: %d %s", path, response.StatusCode, body)
		}
	}
	if response, _ := visit(t, http.MethodPost, base+"/orgs/-/findings", browser); response.StatusCode != http.StatusNotFound {
		t.Errorf("POST: %d", response.StatusCode)
	}
}

// TestFindingLinks: the link of a finding leads browsers to the console and others to its JSON, without a look at the
// store.
func TestFindingLinks(t *testing.T) {
	cfg := apitest.EmptyConfig(t)
	cfg.PublicURL = "https://palisade.acme.test/scans"
	s, _ := apitest.StartConfigured(t, cfg)
	base := "http://" + s.Addresses().HTTP
	follow := *http.DefaultClient
	follow.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	get := func(method, path, accept string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		response, err := follow.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode, response.Header.Get("Location")
	}
	for _, slug := range []string{"default", "nobody"} { // one exists
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			for _, accept := range []string{browser, "application/json", ""} {
				code, to := get(method, "/orgs/"+slug+"/findings/17?next=https://evil.test", accept)
				want := "/scans/api/findings/v1/deployments/" + slug + "/findings/17"
				if accept == browser {
					want = "/scans/console/" + slug + "/findings/17"
				}
				if code != http.StatusFound || to != want {
					t.Errorf("%s for %q: %d to %q, want %q", method, accept, code, to, want)
				}
			}
		}
	}
	for _, path := range []string{
		"/orgs/default/findings/x", "/orgs/default/findings/-1", "/orgs/default/findings/17/more", "/orgs//evil.test/findings/17", "/orgs/%2Fevil.test/findings/17",
		"/orgs/..%2F..%2Fx/findings/17", "/orgs/Acme%20Inc/findings/17", "/orgs/a%0d%0ab/findings/17", "/orgs/-/findings/17", "/orgs/default/findings/99999999999999999999",
	} {
		if code, to := get(http.MethodGet, path, "application/json"); code != http.StatusNotFound || to != "" {
			t.Errorf("%s: %d to %q", path, code, to)
		}
	}
	for path, want := range map[string]string{
		"/":                    "/scans/console/",
		"/orgs/acme/findings":  "/scans/console/acme/triage",
		"/orgs/acme/findings/": "/scans/console/acme/triage",
		"/orgs/acme/findings?repo=acme/web&ref=refs/pull/7/merge":                         "/scans/console/acme/pull-requests?number=7&project=acme%2Fweb",
		"/orgs/acme/supply-chain/vulnerabilities?repo=a,b&ref=refs/merge-requests/9/head": "/scans/console/acme/pull-requests?number=9&project=a%2Cb",
		"/orgs/acme/findings?ref=refs/pull/7/merge":                                       "/scans/console/acme/triage?ref=refs%2Fpull%2F7%2Fmerge",
		"/orgs/acme/findings?repo=a,b%22%26x=1%23":                                        "/scans/console/acme/triage?project=a%5C%2Cb%22%26x%3D1%23",
		"/orgs/acme/findings?repo=%FF&ref=":                                               "/scans/console/acme/triage",
		"/orgs/acme/supply-chain/vulnerabilities?repo=web":                                "/scans/console/acme/triage?project=web&type=sca",
		"/orgs/Acme%20Inc/findings?repo=web":                                              "/scans/console/Acme%20Inc/triage?project=web",
		"/orgs/Acme%20Inc/findings/17":                                                    "/scans/console/Acme%20Inc/findings/17",
		"/orgs/a%3Fb%23c%25/findings/17/":                                                 "/scans/console/a%3Fb%23c%25/findings/17",
	} {
		if code, to := get(http.MethodGet, path, browser); code != http.StatusFound || to != want {
			t.Errorf("%s: %d to %q, want %q", path, code, to, want)
		}
		if code, to := get(http.MethodGet, path, "application/json"); code != http.StatusNotFound || to != "" {
			t.Errorf("%s for an API client: %d to %q", path, code, to)
		}
	}
	if code, _ := get(http.MethodPost, "/orgs/default/findings/17", ""); code != http.StatusNotFound {
		t.Errorf("POST: %d", code)
	}
}
