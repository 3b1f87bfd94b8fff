//go:build ignore

package samples

import (
	"net/http"
	"os"
	"path/filepath"
)

func report(w http.ResponseWriter, r *http.Request) {
	// ruleid: palisade.go.path-traversal
	os.Open("/srv/reports/" + r.FormValue("name"))
	// ruleid: palisade.go.path-traversal
	http.ServeFile(w, r, filepath.Join("/srv/reports", r.PathValue("name")))
	// ok: palisade.go.path-traversal
	os.Open("/srv/reports/" + filepath.Base(r.FormValue("name")))
	// ok: palisade.go.path-traversal
	os.Open("/srv/reports/index.html")
}
