package server

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// The page and its contents. html/template would keep every exported method of the program in the binary.
var (
	//go:embed login.html
	loginHTML string
	//go:embed login_form.html
	loginForm string
	//go:embed login_incomplete.html
	loginIncomplete string
)

// loginPage is the page of a scanner's interactive login (scan protocol, section 2, row 9). A user who may send results
// enters a JSON Web Token. The page sends it to ConfirmTokenRequest in a header; it is never part of a URL.
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

func newLoginPage() *loginPage {
	form := strings.Replace(loginHTML, "{{content}}", loginForm, 1)
	return &loginPage{
		form:       form,
		incomplete: strings.Replace(loginHTML, "{{content}}", loginIncomplete, 1),
		policy: "default-src 'none'; script-src " + hashOf(form, "script") + "; style-src " + hashOf(form, "style") +
			"; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

// hashOf allows what is between the tags, and nothing else, in a Content-Security-Policy.
func hashOf(page, tag string) string {
	_, rest, _ := strings.Cut(page, "<"+tag+">")
	content, _, _ := strings.Cut(rest, "</"+tag+">")
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// ServeHTTP writes the page.
func (p *loginPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := newLoginRequest(r.URL.Query())
	body := p.incomplete
	if request.Key != "" {
		body = strings.NewReplacer("{{asks}}", html.EscapeString(request.Asks), "{{tail}}", html.EscapeString(request.Tail),
			"{{key}}", html.EscapeString(request.Key)).Replace(p.form)
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", p.policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if request.Key == "" {
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = io.WriteString(w, body) // the caller may be gone
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
