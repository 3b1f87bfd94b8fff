package server

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// pageHTML is the frame of all pages. html/template would keep every exported method of the program in the binary.
//
//go:embed page.html
var pageHTML string

// newPage puts a title and a content into the frame. Both are HTML.
func newPage(title, content string) string {
	return strings.NewReplacer("{{title}}", title, "{{content}}", content).Replace(pageHTML)
}

// basePolicy forbids everything. Pages add what they need.
const basePolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// hashOf allows what is between the tags, and nothing else, in a Content-Security-Policy.
func hashOf(page, tag string) string {
	_, rest, _ := strings.Cut(page, "<"+tag+">")
	content, _, _ := strings.Cut(rest, "</"+tag+">")
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// writePage answers with a page and its Content-Security-Policy.
func writePage(w http.ResponseWriter, status int, policy, body string) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the caller may be gone
}
