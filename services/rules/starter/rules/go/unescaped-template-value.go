//go:build ignore

package samples

import (
	"html/template"
	"net/http"
)

func comment(r *http.Request) {
	// ruleid: palisade.go.unescaped-template-value
	_ = template.HTML(r.FormValue("text"))
	// ruleid: palisade.go.unescaped-template-value
	_ = template.JS("var name = " + r.FormValue("name"))
	// ok: palisade.go.unescaped-template-value
	_ = template.HTML("<hr>")
	// ok: palisade.go.unescaped-template-value
	_ = template.HTMLEscapeString(r.FormValue("text"))
}
