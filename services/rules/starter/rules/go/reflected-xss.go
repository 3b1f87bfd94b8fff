//go:build ignore

package samples

import (
	"fmt"
	"html"
	"io"
	"net/http"
)

func greet(w http.ResponseWriter, r *http.Request) {
	// ruleid: palisade.go.reflected-xss
	fmt.Fprintf(w, "<p>Hello %s</p>", r.FormValue("name"))
	// ruleid: palisade.go.reflected-xss
	io.WriteString(w, "Hello "+r.FormValue("name"))
	// ok: palisade.go.reflected-xss
	fmt.Fprintf(w, "<p>Hello %s</p>", html.EscapeString(r.FormValue("name")))
	// ok: palisade.go.reflected-xss
	fmt.Fprintln(w, len(r.FormValue("name")))
}

func plain(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// ok: palisade.go.reflected-xss
	fmt.Fprintln(w, "Hello", r.FormValue("name"))
}
