package console

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"
	"unicode"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/buckets"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
)

const (
	// attemptLife is how long a person may take at the identity provider.
	attemptLife = 10 * time.Minute
	// attemptPurpose keeps other sealed values from being used as an attempt.
	attemptPurpose = "sign-in to the console"
	// maxReturn is the longest path to return to, in bytes. It must fit in a cookie.
	maxReturn = 2 << 10
)

// attempt is a sign-in that a browser has begun. It is sealed in a cookie, so any node can finish it.
type attempt struct {
	access.Attempt
	Return string `json:"return"` // path after the sign-in
	Until  int64  `json:"until"`  // Unix time
}

// login sends the browser to the identity provider.
func (a *auth) login(w http.ResponseWriter, r *http.Request) {
	if a.flow == nil {
		a.fail(w, r, http.StatusNotFound, "Sign-in is not set up", "This server has no client at an identity provider. "+
			"An operator sets oidc-client-id, or makes a one-time link with: palisade console-link")
		return
	}
	begun, to, err := a.flow.Begin(r.Context())
	if err != nil {
		a.failed(w, r, err)
		return
	}
	path := r.URL.Query().Get("return")
	if len(path) > maxReturn {
		path = ""
	}
	sealed, err := a.seal(attempt{begun, a.within(path), time.Now().Add(attemptLife).Unix()})
	if err != nil {
		a.failed(w, r, err)
		return
	}
	a.set(w, attemptCookie, sealed, attemptLife)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// callback is where the identity provider sends the browser back. The attempt is used up, whatever the answer is.
func (a *auth) callback(w http.ResponseWriter, r *http.Request) {
	begun, ok := a.unseal(a.value(r, attemptCookie))
	a.drop(w, attemptCookie)
	switch {
	case a.flow == nil || !ok:
		a.fail(w, r, http.StatusBadRequest, "This sign-in has expired", "It took longer than ten minutes, was finished before, "+
			"or the browser does not keep cookies.")
		return
	case !a.redeems.Of(buckets.Network(addressOf(r))).Allow():
		w.Header().Set("Retry-After", "10")
		a.fail(w, r, http.StatusTooManyRequests, "Too many sign-ins", "Your network has sent too many sign-ins at once. Wait ten seconds.")
		return
	}
	who, err := a.flow.Finish(r.Context(), begun.Attempt, r.URL.Query())
	if err != nil {
		a.failed(w, r, err)
		return
	}
	if len(who.Grants) == 0 {
		a.noMember(w, r, who)
		return
	}
	session, err := a.sessions.SignIn(a.recorded(r, who, "console/sign-in"), who, access.MethodOIDC, browser(r))
	if err != nil {
		a.failed(w, r, err)
		return
	}
	a.open(w, r, session, begun.Return)
}

func (a *auth) seal(begun attempt) (string, error) {
	plain, err := json.Marshal(begun)
	if err != nil {
		return "", err
	}
	sealed, err := a.keyring.Seal(plain, []byte(attemptPurpose))
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// unseal returns the attempt of a cookie, unless it is missing, foreign or too old.
func (a *auth) unseal(value string) (begun attempt, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(sealed) == 0 {
		return attempt{}, false
	}
	plain, err := a.keyring.Unseal(sealed, []byte(attemptPurpose))
	if err != nil || json.Unmarshal(plain, &begun) != nil {
		return attempt{}, false
	}
	return begun, time.Now().Unix() < begun.Until
}

// failed explains an error of a sign-in.
func (a *auth) failed(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *access.IssuerError
	log := a.log.With("request_id", r.Header.Get("X-Request-Id"), "remote", addressOf(r))
	switch {
	case errors.Is(err, access.ErrAnswerRefused):
		log.WarnContext(r.Context(), "a sign-in was refused", "error", err)
		a.fail(w, r, http.StatusBadRequest, "This sign-in is not valid",
			"The answer of the identity provider belongs to another sign-in, or was used before. Nothing has changed.")
	case errors.As(err, &refusal) && refusal.Code == "access_denied":
		log.InfoContext(r.Context(), "the OpenID Connect issuer refused a sign-in", "error", err)
		a.fail(w, r, http.StatusForbidden, "The identity provider refused", "You cancelled the sign-in, or your identity provider "+
			"does not let your account use Palisade. Its administrators can change that."+quoted(refusal))
	case errors.As(err, &refusal):
		log.WarnContext(r.Context(), "the OpenID Connect issuer refused a sign-in", "error", err)
		a.fail(w, r, http.StatusBadGateway, "The identity provider reports an error",
			"Try again. If it stays, the client of Palisade at the provider needs an administrator."+quoted(refusal))
	case errors.Is(err, access.ErrIssuerUnreachable):
		log.WarnContext(r.Context(), "a sign-in failed", "error", err)
		a.fail(w, r, http.StatusBadGateway, "The identity provider does not answer",
			"Try again in a minute. The server's log has the cause. An operator can make a one-time link with: palisade console-link")
	case apierr.Is(err, errorsv1.Reason_REASON_PERMISSION_DENIED):
		a.fail(w, r, http.StatusForbidden, "You are not a member", sentence(apierr.Plain(err).Error()))
	default:
		log.ErrorContext(r.Context(), "a sign-in failed", "error", err)
		a.fail(w, r, http.StatusServiceUnavailable, "Palisade could not sign you in", "Try again in a minute. The server's log has the cause.")
	}
}

// noMember explains why a known user sees nothing.
func (a *auth) noMember(w http.ResponseWriter, r *http.Request, who *access.Principal) {
	a.fail(w, r, http.StatusForbidden, "You are not a member", "The account "+who.Name+" belongs to no organization here. "+
		"Ask an administrator of Palisade to invite you, or of your identity provider to give you access.")
}

// quoted is what the provider says, for its administrators.
func quoted(e *access.IssuerError) string {
	text := e.Code
	if e.Description != "" {
		text += ": " + e.Description
	}
	return " It says: " + printable(text, 300)
}

// printable keeps the first characters of a text of somebody else that can be shown.
func printable(text string, most int) string {
	var kept []rune
	for _, c := range text {
		if len(kept) == most {
			return string(kept) + "…"
		}
		if unicode.IsPrint(c) {
			kept = append(kept, c)
		}
	}
	return string(kept)
}

// sentence begins an error text with a capital letter and ends it with a full stop.
func sentence(text string) string {
	runes := []rune(text)
	if len(runes) == 0 {
		return ""
	}
	runes[0] = unicode.ToUpper(runes[0])
	return string(runes) + "."
}
