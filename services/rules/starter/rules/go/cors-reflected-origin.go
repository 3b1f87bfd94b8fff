//go:build ignore

package samples

import "net/http"

func share(w http.ResponseWriter, r *http.Request, allowed func(string) bool) {
	// ruleid: palisade.go.cors-reflected-origin
	w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	// ok: palisade.go.cors-reflected-origin
	w.Header().Set("Access-Control-Allow-Origin", "https://app.acme.test")
	if allowed(r.Header.Get("Origin")) {
		// ok: palisade.go.cors-reflected-origin
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	}
}
