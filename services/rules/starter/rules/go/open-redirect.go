//go:build ignore

package samples

import (
	"fmt"
	"net/http"
)

func next(w http.ResponseWriter, r *http.Request) {
	// ruleid: palisade.go.open-redirect
	http.Redirect(w, r, r.FormValue("next"), http.StatusFound)
	// ruleid: palisade.go.open-redirect
	http.Redirect(w, r, "/"+r.FormValue("next"), http.StatusFound)
	// ok: palisade.go.open-redirect
	http.Redirect(w, r, "/", http.StatusFound)
	// ok: palisade.go.open-redirect
	http.Redirect(w, r, "/items/"+r.PathValue("id"), http.StatusFound)
	// ok: palisade.go.open-redirect
	http.Redirect(w, r, fmt.Sprintf("/items/%s/edit", r.PathValue("id")), http.StatusFound)
	// ok: palisade.go.open-redirect
	http.Redirect(w, r, "https://login.acme.test/?next="+r.FormValue("next"), http.StatusFound)
}
