//go:build ignore

package samples

import "net/http"

func cookies(w http.ResponseWriter, session string, secure bool) {
	// ruleid: palisade.go.cookie-not-secure
	http.SetCookie(w, &http.Cookie{Name: "session", Value: session, Secure: false})
	// ok: palisade.go.cookie-not-secure
	http.SetCookie(w, &http.Cookie{Name: "session", Value: session, Secure: true, HttpOnly: true})
	// ok: palisade.go.cookie-not-secure
	http.SetCookie(w, &http.Cookie{Name: "session", Value: session, Secure: secure, HttpOnly: true})
	// ok: palisade.go.cookie-not-secure
	_ = http.Cookie{Name: "theme", Value: "dark"}
}
