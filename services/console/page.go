package console

import (
	_ "embed"
	"html"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/internal/gateway"
)

// Pages of the sign-in work without scripts and without the console's own files.
var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
)

// page writes a page. content is HTML.
func (a *auth) page(w http.ResponseWriter, status int, title, content string) {
	body := strings.NewReplacer("{{prefix}}", html.EscapeString(a.prefix), "{{title}}", html.EscapeString(title), "{{content}}", content).Replace(pageHTML)
	secure(w.Header())
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the caller may be gone
}

// fail writes a page about a sign-in that did not succeed, with a way to try again.
func (a *auth) fail(w http.ResponseWriter, r *http.Request, status int, title, text string) {
	a.page(w, status, title, "<p>"+html.EscapeString(text)+"</p>\n"+
		`<p><a class="button" href="`+html.EscapeString(a.prefix)+`/console/sign-in">Back to the sign-in page</a></p>`+"\n"+
		`<p class="hint">Request `+html.EscapeString(gateway.RequestID(r.Context()))+"</p>\n")
}

// stylesheet serves the style of the pages.
func stylesheet(w http.ResponseWriter, _ *http.Request) {
	secure(w.Header())
	w.Header().Set("Content-Type", contentTypes[".css"])
	_, _ = io.WriteString(w, pageCSS) // the caller may be gone
}
