//go:build ignore

package samples

import (
	"net/http"
	"os/exec"
	"strconv"
)

func convert(w http.ResponseWriter, r *http.Request) {
	// ruleid: palisade.go.command-from-request
	exec.Command("convert", r.FormValue("file"))
	name := r.URL.Query().Get("name")
	// ruleid: palisade.go.command-from-request
	exec.CommandContext(r.Context(), "git", "clone", name)
	// ok: palisade.go.command-from-request
	exec.Command("convert", "-version")
	size, _ := strconv.Atoi(r.FormValue("size"))
	// ok: palisade.go.command-from-request
	exec.Command("convert", "-size", strconv.Itoa(size))
}
