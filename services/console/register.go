// Package console serves the web console and signs people in to it. The console is a client of the same API as
// everybody else; only signing in has paths of its own, below /auth/.
package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
)

// Register adds the console to a server.
func Register(d *server.Deps) server.Parts {
	site := newSite(d.Config)
	return server.Parts{
		Background: []jobs.Work{ended(d.Store, d.Sessions)},
		Sites: map[string]http.Handler{
			"/console/": newAssets(site.prefix),
			"/auth/":    newAuth(d, site).handler(),
		},
		Identify: site.identify,
	}
}

// site is where browsers reach this server.
type site struct {
	base   string // URL without a trailing slash
	prefix string // path of base; "" without one
	// cookies need TLS. Without it, on this machine, browsers keep no Secure cookies.
	secure bool
	// protection refuses requests of other sites.
	protection *http.CrossOriginProtection
}

func newSite(cfg config.Config) *site {
	s := &site{base: cfg.BaseURL(), secure: overTLS(cfg), protection: http.NewCrossOriginProtection()}
	if u, err := url.Parse(s.base); err == nil {
		s.prefix = strings.TrimRight(u.EscapedPath(), "/")
		// Old browsers send the origin only, and a proxy may change the host. The URL is a valid origin: it has a scheme
		// and a host.
		_ = s.protection.AddTrustedOrigin(u.Scheme + "://" + u.Host)
	}
	return s
}

// overTLS reports whether browsers reach the server over TLS. Without TLS, only this machine can.
func overTLS(cfg config.Config) bool {
	u, err := url.Parse(cfg.PublicURL)
	if err != nil || u.Scheme == "" {
		return cfg.TLSCert != "" || cfg.BehindProxy
	}
	return u.Scheme == "https"
}

// cookie is the name of a cookie. The prefix makes browsers refuse one that another host has set.
func (s *site) cookie(name string) string {
	if s.secure {
		return "__Host-" + name
	}
	return name
}

// sessionCookie is the cookie of a session, and attemptCookie the one of a sign-in that a browser has begun.
const (
	sessionCookie = "palisade"
	attemptCookie = "palisade-sign-in"
)

// set sets a cookie for a time. The server decides when its content becomes invalid.
func (s *site) set(w http.ResponseWriter, name, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie(name), Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	})
}

// drop deletes a cookie.
func (s *site) drop(w http.ResponseWriter, name string) { s.set(w, name, "", -time.Second) }

// value returns a cookie of the request, or "".
func (s *site) value(r *http.Request, name string) string {
	c, err := r.Cookie(s.cookie(name))
	if err != nil {
		return ""
	}
	return c.Value
}

// identify adds the session of a cookie to a request without the header Authorization. A browser sends cookies also
// when a page of another site makes the request, so such a request may only read, and that page cannot see the answer.
func (s *site) identify(r *http.Request) (context.Context, error) {
	if len(r.Header["Authorization"]) > 0 {
		return r.Context(), nil
	}
	secret := s.value(r, sessionCookie)
	if secret == "" {
		return r.Context(), nil
	}
	if err := s.protection.Check(r); err != nil {
		return nil, apierr.PermissionDenied("a page of another site sent this request: only the console may use the cookie")
	}
	return access.WithSession(r.Context(), secret), nil
}

// within returns a path of this server for a redirect, and the start page of the console for anything else.
func (s *site) within(path string) string {
	start := s.prefix + "/console/"
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || strings.ContainsFunc(path, func(c rune) bool { return c == '\\' || c < ' ' || c == 0x7f }) {
		return start
	}
	return path
}
