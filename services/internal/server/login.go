package server

import (
	_ "embed"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

var (
	//go:embed login_form.html
	loginForm string
	//go:embed login_incomplete.html
	loginIncomplete string
)

// loginPage is the page of a scanner's interactive login (scan protocol, section 2, row 9). A user who may send results
// is signed in to the console, or enters a JSON Web Token. The page sends it to ConfirmTokenRequest in a header; it is
// never part of a URL.
type loginPage struct {
	form       string
	incomplete string
	policy     string
}

// loginRequest is the content of the page.
type loginRequest struct {
	// Key is the scanner's key. It is empty for an incomplete link.
	Key string
	// Tail is the end of the key, for people to compare.
	Tail string
	// Asks names the program that requests a token.
	Asks string
}

// tailLength is how many characters of the key people compare.
const tailLength = 6

// requestKey is the form of keys that ConfirmTokenRequest accepts.
var requestKey = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// How a user without a session of the console signs in, with and without an identity provider.
const (
	signInByProvider = "<a id=\"provider\">Sign in with your identity provider</a>, or enter a token."
	signInByLink     = "Open a link of <code>palisade console-link</code> in this browser and load this page again, or enter a token."
)

func newLoginPage(provider bool) *loginPage {
	const title = "Log a scanner in"
	signIn := signInByLink
	if provider {
		signIn = signInByProvider
	}
	form := newPage(title, strings.ReplaceAll(loginForm, "{{sign-in}}", signIn))
	return &loginPage{
		form:       form,
		incomplete: newPage(title, loginIncomplete),
		policy:     basePolicy + "; script-src " + hashOf(form, "script") + "; style-src " + hashOf(form, "style") + "; connect-src 'self'",
	}
}

// ServeHTTP writes the page.
func (p *loginPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := newLoginRequest(r.URL.Query())
	body := p.incomplete
	if request.Key != "" {
		body = strings.NewReplacer("{{asks}}", html.EscapeString(request.Asks), "{{tail}}", html.EscapeString(request.Tail),
			"{{key}}", html.EscapeString(request.Key)).Replace(p.form)
	}
	status := http.StatusOK
	if request.Key == "" {
		status = http.StatusBadRequest
	}
	writePage(w, status, p.policy, body)
}

func newLoginRequest(query url.Values) loginRequest {
	key := query.Get("cli-token")
	if !requestKey.MatchString(key) {
		return loginRequest{}
	}
	request := loginRequest{Key: key, Tail: key[len(key)-tailLength:], Asks: "A scanner"}
	if docker, _ := strconv.ParseBool(query.Get("docker")); docker {
		request.Asks = "A scanner in a container"
	}
	if actions, _ := strconv.ParseBool(query.Get("gha")); actions {
		request.Asks = "A scanner in a GitHub Actions workflow"
	}
	return request
}
