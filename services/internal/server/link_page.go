package server

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/munnerz/goautoneg"
)

// linkPages serves the links that scanners print, such as /orgs/acme/findings?repo=acme/web, to browsers. With the slug
// or the display name of an organization they lead to the console, and / does, too. A hyphen names no organization: a
// page then names the commands that show the same. All of it depends on the URL and the server's configuration only:
// nothing is looked up, and an organization or a finding that does not exist has the same answer.
type linkPages struct {
	base   string // the server's public URL
	prefix string // its path
	policy string
}

func newLinkPages(base string) *linkPages {
	p := &linkPages{base: base, policy: basePolicy + "; style-src " + hashOf(pageHTML, "style")}
	if u, err := url.Parse(base); err == nil {
		p.prefix = strings.TrimRight(u.EscapedPath(), "/")
	}
	return p
}

// linkPage is the content of a page.
type linkPage struct {
	title, intro string
	// remote commands run anywhere with a token, local ones on the server's machine.
	remote, local []string
}

// Page returns the page for a request. It is nil for paths without a page, and for API clients, which do not prefer
// HTML: scanners fetch rules at /r/. The link of a finding with a slug leads API clients to its JSON.
func (p *linkPages) Page(r *http.Request) http.Handler {
	finding := oneFinding.FindStringSubmatch(r.URL.Path)
	reads := goautoneg.Negotiate(r.Header.Get("Accept"), []string{"application/json", "text/html"}) == "text/html"
	switch {
	case r.URL.Path == "/console":
		return p.lead("/console/")
	case finding != nil && !reads:
		return p.lead("/api/findings/v1/deployments/" + finding[1] + "/findings/" + finding[2])
	case !reads:
		return nil
	}
	if path := consolePath(r); path != "" {
		return p.lead(path)
	}
	page, ok := linkPageOf(r)
	if !ok {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Vary", "Accept")
		writePage(w, http.StatusOK, p.policy, p.render(page))
	})
}

// lead redirects to a path of this server.
func (p *linkPages) lead(path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept")
		http.Redirect(w, r, p.prefix+path, http.StatusFound)
	})
}

// consolePath returns the screen of the console for a link, or "".
func consolePath(r *http.Request) string {
	if r.URL.Path == "/" {
		return "/console/"
	}
	match := organization.FindStringSubmatch(r.URL.Path)
	if match == nil || !namesOrganization(match[1]) {
		return ""
	}
	root := "/console/" + url.PathEscape(match[1])
	filter := url.Values{}
	switch section := match[2]; {
	case section == "findings":
	case strings.HasPrefix(section, "findings/"):
		return root + "/" + section
	case section == "supply-chain/vulnerabilities":
		filter.Set("type", "sca")
	default:
		return ""
	}
	query := r.URL.Query()
	for name, param := range map[string]string{"repo": "project", "ref": "ref"} {
		if value := query.Get(name); value != "" && len(value) <= 1024 && utf8.ValidString(value) {
			filter.Set(param, strings.ReplaceAll(value, ",", `\,`)) // the console separates values by commas
		}
	}
	screen := "triage"
	if pull := pullRequestRef.FindStringSubmatch(filter.Get("ref")); pull != nil && filter.Has("project") {
		screen, filter = "pull-requests", url.Values{"project": {query.Get("repo")}, "number": {pull[1]}}
	}
	path := root + "/" + screen
	if len(filter) > 0 {
		path += "?" + filter.Encode()
	}
	return path
}

// namesOrganization reports whether the console can find an organization by the name in a link. Names that a browser
// would take for a step in the path are left out.
func namesOrganization(name string) bool {
	return name != "-" && name != "." && name != ".." && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// pullRequestRef matches the refs that services/projects/gitref takes for pull requests.
var pullRequestRef = regexp.MustCompile(`^refs/(?:pull|pull-requests|merge-requests)/([1-9][0-9]{0,17})/(?:head|merge|from)$`)

// oneFinding matches the link of a finding for API clients: the slug of an organization and a number. Nothing else of a
// link gets into the address that it leads to.
var oneFinding = regexp.MustCompile(`^/orgs/([a-z0-9][a-z0-9_-]{0,62})/findings/([0-9]{1,19})/?$`)

// organization matches the path of a page of an organization. Scanners print its display name, the slug, or a hyphen.
var organization = regexp.MustCompile(`^/orgs/([^/]{1,255})/(findings|findings/[0-9]{1,19}|supply-chain/vulnerabilities|policies|settings/tokens)/?$`)

func linkPageOf(r *http.Request) (linkPage, bool) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/r/"); ok && name != "" {
		return linkPage{
			title: "A rule", intro: "This shows the rule, its mode and its versions:",
			remote: []string{"palisade rules show " + argument(name, "RULE")},
		}, true
	}
	match := organization.FindStringSubmatch(r.URL.Path)
	if match == nil {
		return linkPage{}, false
	}
	return organizationPage(r, match[1], match[2]), true
}

func organizationPage(r *http.Request, slug, section string) linkPage {
	of := ""
	if deploymentSlug.MatchString(slug) {
		of = " --deployment=" + slug
	}
	switch section {
	case "policies":
		return linkPage{
			title: "Policies", intro: "These show the modes of rules, and the remediation policies:",
			remote: []string{
				"palisade rules list" + of,
				`curl -H "Authorization: Bearer $PALISADE_TOKEN" "$PALISADE_URL/api/v1/deployments"    # has the id`,
				`curl -H "Authorization: Bearer $PALISADE_TOKEN" "$PALISADE_URL/api/policies/v2/deployments/ID/remediation-policies"`,
			},
		}
	case "settings/tokens":
		return linkPage{
			title: "API tokens", intro: "An administrator of the server creates and lists tokens. This one is for a pipeline:",
			local: []string{"palisade token create --name=ci --scopes=agent" + of, "palisade token list" + of},
		}
	}
	if id, ok := strings.CutPrefix(section, "findings/"); ok {
		return linkPage{
			title: "A finding", intro: "The first command lists the findings, the last one shows this finding:",
			remote: []string{
				"palisade findings",
				`curl -H "Authorization: Bearer $PALISADE_TOKEN" "$PALISADE_URL/api/v1/deployments"    # has the slug`,
				`curl -H "Authorization: Bearer $PALISADE_TOKEN" "$PALISADE_URL/api/findings/v1/deployments/SLUG/findings/` + id + `"`,
			},
		}
	}
	command, title := "palisade findings", "Findings"
	if section != "findings" {
		command, title = command+" --issue-type=sca", "Supply-chain findings"
	}
	query := r.URL.Query()
	if repo := query.Get("repo"); repo != "" {
		command += " --repos=" + argument(listItem(repo), "REPOSITORY")
	}
	if ref := query.Get("ref"); ref != "" {
		command += " --ref=" + argument(ref, "REF")
	}
	return linkPage{title: title, intro: "This lists the findings that the scan reported:", remote: []string{command}}
}

// deploymentSlug is the form of slugs. A display name is no slug.
var deploymentSlug = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)

func (p *linkPages) render(page linkPage) string {
	var b strings.Builder
	b.WriteString("<p>" + html.EscapeString(page.intro) + "</p>\n")
	if len(page.remote) > 0 {
		b.WriteString(`<pre>export PALISADE_URL=` + html.EscapeString(shellQuote(p.base)) + "\nexport PALISADE_TOKEN=…\n" +
			html.EscapeString(strings.Join(page.remote, "\n")) + "</pre>\n" +
			"<p>The token needs the scope <code>web-api</code>. Without <code>--deployment</code>, the commands use its own deployment.</p>\n")
	}
	if len(page.local) > 0 {
		b.WriteString("<pre>" + html.EscapeString(strings.Join(page.local, "\n")) + "</pre>\n" +
			"<p>Run it on the server's machine, with the server's settings. Without them, use <code>POST /api/tokens/v1/…</code>.</p>\n")
	}
	b.WriteString("<p>The API is described in <code>/openapi.json</code>.</p>\n")
	return newPage(html.EscapeString(page.title), b.String())
}

// listItem quotes an item for a flag that takes a comma-separated list.
func listItem(text string) string {
	if strings.ContainsAny(text, `",`) {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}

// argument is text from a link as an argument of a command. People paste the command into a shell, so it must not begin
// a flag or contain control or bidirectional characters: then it is a placeholder.
func argument(text, placeholder string) string {
	if len(text) > 1024 || !utf8.ValidString(text) || strings.HasPrefix(text, "-") ||
		strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return placeholder
	}
	return shellQuote(text)
}

var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// shellQuote quotes text for a POSIX shell.
func shellQuote(text string) string {
	if shellSafe.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
