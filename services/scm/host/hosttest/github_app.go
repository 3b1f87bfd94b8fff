package hosttest

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// application accepts the application's own tokens for application endpoints.
func (h *GitHub) application(r *http.Request) bool {
	if h.AppKey == nil || !strings.HasSuffix(r.URL.Path, "/installation") && !strings.HasPrefix(r.URL.Path+"/", "/api/v3/app/") {
		return false
	}
	raw := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	_, err := jwt.Parse(raw, func(*jwt.Token) (any, error) { return h.AppKey, nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer("4711"), jwt.WithExpirationRequired())
	return err == nil
}

func (h *GitHub) installation(w http.ResponseWriter, r *http.Request) {
	if h.AppKey == nil || r.PathValue("org") != "acme" {
		h.notFound(w)
		return
	}
	write(w, http.StatusOK, object{
		"id": 8801, "app_id": 4711, "app_slug": "palisade-acme", "account": h.user("acme", 7001, "Organization"), "target_type": "Organization",
		"permissions": object{"contents": "read", "metadata": "read", "pull_requests": "write", "organization_hooks": "write"}, "suspended_at": nil,
	})
}

func (h *GitHub) installationToken(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != "8801" {
		h.notFound(w)
		return
	}
	write(w, http.StatusCreated, object{
		"token": h.Token, "expires_at": "2099-07-11T22:14:10Z", "repository_selection": "all",
		"permissions": object{"contents": "read", "metadata": "read", "pull_requests": "write", "organization_hooks": "write"},
	})
}

func (h *GitHub) app(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, object{
		"id": 4711, "slug": "palisade-acme", "name": "Palisade of Acme", "owner": h.user("acme", 7001, "Organization"),
		"permissions": object{"contents": "read", "metadata": "read"}, "events": []string{"pull_request"},
	})
}

func (h *GitHub) setAppHook(w http.ResponseWriter, r *http.Request) {
	var request struct{ URL string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	write(w, http.StatusOK, object{"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": request.URL})
}
