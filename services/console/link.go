package console

import (
	"html"
	"net/http"
)

// linkPage is what a one-time link opens. It uses nothing up: programs that preview links open them, too. The button on
// the page signs in.
func (a *auth) linkPage(w http.ResponseWriter, r *http.Request) {
	code := r.URL.Query().Get("code")
	who, err := a.sessions.LinkUser(r.Context(), code)
	switch {
	case err != nil:
		a.failed(w, r, err)
	case who == nil:
		a.deadLink(w, r)
	default:
		a.page(w, http.StatusOK, "Open the console", "<p>You sign in as <strong>"+html.EscapeString(who.Name)+"</strong>.</p>\n"+
			`<form method="post" action="`+html.EscapeString(a.prefix)+`/auth/link"><input type="hidden" name="code" value="`+html.EscapeString(code)+`">`+
			"<button>Sign in</button></form>\n<p class=\"hint\">The link works once. Whoever has it can sign in, so pass it to nobody.</p>\n")
	}
}

// useLink signs in with a link.
func (a *auth) useLink(w http.ResponseWriter, r *http.Request) {
	code := r.PostFormValue("code")
	who, err := a.sessions.LinkUser(r.Context(), code)
	if err != nil {
		a.failed(w, r, err)
		return
	}
	if who == nil {
		a.deadLink(w, r)
		return
	}
	if len(who.Grants) == 0 {
		a.noMember(w, r, who)
		return
	}
	session, err := a.sessions.SignInByLink(a.recorded(r, who, "console/sign-in"), who, code, browser(r))
	switch {
	case err != nil:
		a.failed(w, r, err)
	case session == "":
		a.deadLink(w, r)
	default:
		a.open(w, r, session, a.prefix+"/console/")
	}
}

func (a *auth) deadLink(w http.ResponseWriter, r *http.Request) {
	a.fail(w, r, http.StatusGone, "This link does not work any more", "It was used, is older than 15 minutes, or was copied only in part. "+
		"Make another on the server's machine with: palisade console-link")
}
