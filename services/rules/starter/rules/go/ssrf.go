//go:build ignore

package samples

import (
	"fmt"
	"net/http"
)

func fetch(w http.ResponseWriter, r *http.Request) {
	// ruleid: palisade.go.ssrf
	http.Get(r.FormValue("url"))
	// ruleid: palisade.go.ssrf
	http.Get("https://" + r.FormValue("host") + "/status")
	// ok: palisade.go.ssrf
	http.Get("https://api.acme.test/status")
	// ok: palisade.go.ssrf
	http.Get("https://api.acme.test/users/" + r.PathValue("id"))
	// ok: palisade.go.ssrf
	http.Get(fmt.Sprintf("https://api.acme.test/users/%s", r.PathValue("id")))
}
