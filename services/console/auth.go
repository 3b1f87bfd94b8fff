package console

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/buckets"
	"github.com/palisade/palisade/services/internal/gateway"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/server"
)

const (
	// maxForm limits the body of a request to sign in or out, in bytes.
	maxForm = 4 << 10
	// redeemRate and redeemBurst limit the sign-ins of one network that this server finishes with the issuer, per
	// second. A company behind one address signs in in the morning.
	redeemRate, redeemBurst = 5, 60
	maxNetworks             = 10_000
)

// auth signs people in and out. It is the only part of the API that only browsers use.
type auth struct {
	*site
	sessions *access.Sessions
	trail    *audit.Trail
	keyring  *secret.Keyring
	log      *slog.Logger
	lifetime time.Duration            // of sessions
	issuer   string                   // "" without a client at the issuer
	flow     *access.CodeFlow         // nil without a client at the issuer
	redeems  *buckets.Buckets[string] // by network: limits what callers can make this server ask the issuer
}

func newAuth(d *server.Deps, s *site) *auth {
	a := &auth{
		site: s, sessions: d.Sessions, trail: d.Trail, keyring: d.Keyring, log: d.Log,
		lifetime: d.Config.SessionLifetime, redeems: buckets.New[string](maxNetworks, redeemRate, redeemBurst),
	}
	if d.OIDC != nil && d.Config.OIDCClientID != "" {
		a.issuer = d.Config.OIDCIssuer
		a.flow = d.OIDC.NewCodeFlow(access.CodeFlowOptions{
			ClientID: d.Config.OIDCClientID, ClientSecret: d.Config.OIDCClientSecret,
			Scopes: strings.Fields(d.Config.OIDCScopes), RedirectURL: s.base + "/auth/callback",
		})
	}
	return a
}

// handler serves the paths below /auth/.
func (a *auth) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /auth/options", a.options)
	mux.HandleFunc("GET /auth/login", a.login)
	mux.HandleFunc("GET /auth/callback", a.callback)
	mux.HandleFunc("GET /auth/link", a.linkPage)
	mux.HandleFunc("POST /auth/link", a.sameSite(a.useLink))
	mux.HandleFunc("POST /auth/logout", a.sameSite(a.logout))
	mux.HandleFunc("GET /auth/page.css", stylesheet)
	mux.HandleFunc("/auth/", func(w http.ResponseWriter, r *http.Request) {
		apierr.WriteHTTP(w, apierr.RouteNotFound(r.URL.Path), gateway.RequestID(r.Context()))
	})
	return mux
}

// sameSite refuses requests that a page of another site makes, with or without a cookie: such a page must not be able
// to sign a browser in as somebody else either.
func (a *auth) sameSite(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := a.protection.Check(r); err != nil {
			apierr.WriteHTTP(w, apierr.PermissionDenied("a page of another site sent this request"), gateway.RequestID(r.Context()))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next(w, r)
	}
}

// options tells the sign-in page how people can sign in.
func (a *auth) options(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct { // the caller may be gone
		Issuer string `json:"issuer"`
	}{a.issuer})
}

// logout revokes the session of the browser and deletes its cookie. It answers in the same way without a session.
func (a *auth) logout(w http.ResponseWriter, r *http.Request) {
	who, err := a.sessions.User(r.Context(), a.value(r, sessionCookie))
	if err == nil && who != nil {
		err = a.sessions.SignOut(a.recorded(r, who, "console/sign-out"), who)
	}
	if err != nil {
		a.log.ErrorContext(r.Context(), "sign-out failed", "error", err)
		apierr.WriteHTTP(w, apierr.Map(err), gateway.RequestID(r.Context()))
		return
	}
	a.drop(w, sessionCookie)
	w.WriteHeader(http.StatusNoContent)
}

// open sets the cookie of a new session and ends the earlier session of the browser, if it has one.
func (a *auth) open(w http.ResponseWriter, r *http.Request, session, path string) {
	if earlier, err := a.sessions.User(r.Context(), a.value(r, sessionCookie)); err == nil && earlier != nil {
		if err := a.sessions.SignOut(a.recorded(r, earlier, "console/sign-out"), earlier); err != nil {
			a.log.WarnContext(r.Context(), "the earlier session of a browser was not revoked", "error", err)
		}
	}
	a.set(w, sessionCookie, session, a.lifetime)
	http.Redirect(w, r, path, http.StatusSeeOther)
}

// recorded makes a user the actor of a sign-in or sign-out in the audit trail. Like other calls outside a deployment,
// it belongs to the first deployment of the user.
func (a *auth) recorded(r *http.Request, who *access.Principal, method string) context.Context {
	call := audit.Call{
		Actor:  audit.Actor{Kind: string(access.KindUser), ID: who.ID, Name: who.Name, UserID: who.UserID},
		Method: method, RequestID: gateway.RequestID(r.Context()), Remote: addressOf(r),
	}
	if len(who.Grants) > 0 {
		call.Home = who.Grants[0].DeploymentID
	}
	ctx, _ := a.trail.Record(r.Context(), call)
	return ctx
}

// browser describes the sender of a request.
func browser(r *http.Request) access.Browser {
	return access.Browser{Address: addressOf(r), Agent: r.UserAgent()}
}

// addressOf is the address of the sender, as in the access log.
func addressOf(r *http.Request) string {
	if address, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		return address.Addr().Unmap().String()
	}
	return r.RemoteAddr
}
