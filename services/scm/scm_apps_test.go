package scm_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// registrar is a GitHub Enterprise server that registers applications in the wire format of GitHub's manifest flow. The
// code "c0de" is valid once, and returns application 4711.
type registrar struct {
	url string
	key *rsa.PrivateKey

	mu                  sync.Mutex
	used                bool
	hookURL, hookSecret string
	down                bool
}

const (
	appSecret     = "registered-webhook-secret-0123456789"
	appClientText = "registered-client-secret-0123456789"
)

var registrarKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newRegistrar(t testing.TB) *registrar {
	t.Helper()
	key, err := registrarKey()
	if err != nil {
		t.Fatal(err)
	}
	g := &registrar{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v3/app-manifests/{code}/conversions", g.convert)
	mux.HandleFunc("GET /api/v3/app", g.asApp(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, map[string]any{"id": 4711, "slug": "palisade-acme", "name": "Palisade of Acme", "permissions": map[string]any{"contents": "read", "metadata": "read"}})
	}))
	mux.HandleFunc("PATCH /api/v3/app/hook/config", g.asApp(g.setHook))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 404, map[string]any{"message": "Not Found", "status": "404"})
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		down := g.down
		g.mu.Unlock()
		if down {
			reply(w, 502, map[string]any{"message": "Server Error"})
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (g *registrar) convert(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.PathValue("code") != "c0de" || g.used || r.Header.Get("Authorization") != "" {
		reply(w, 404, map[string]any{"message": "Not Found", "status": "404"})
		return
	}
	g.used = true
	reply(w, 201, map[string]any{
		"id": 4711, "slug": "palisade-acme", "node_id": "MDxOkludGVncmF0aW9uMQ==", "owner": map[string]any{"login": "acme", "id": 7001, "type": "Organization"},
		"name": "Palisade of Acme", "description": "", "external_url": "https://palisade.acme.test", "html_url": g.url + "/github-apps/palisade-acme",
		"client_id": "Iv1.8a61f9b3a7aba766", "client_secret": appClientText, "webhook_secret": appSecret,
		"pem":         string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(g.key)})),
		"permissions": map[string]any{"contents": "read", "metadata": "read"}, "events": []string{"pull_request"}, "created_at": "2026-05-04T10:20:30Z",
	})
}

// asApp accepts the application's own credential.
func (g *registrar) asApp(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := jwt.Parse(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), func(*jwt.Token) (any, error) { return &g.key.PublicKey, nil },
			jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer("4711"), jwt.WithExpirationRequired())
		if err != nil {
			reply(w, 401, map[string]any{"message": "A JSON web token could not be decoded", "status": "401"})
			return
		}
		next(w, r)
	}
}

func (g *registrar) setHook(w http.ResponseWriter, r *http.Request) {
	var request struct{ URL, Secret string }
	_ = json.NewDecoder(r.Body).Decode(&request)
	g.mu.Lock()
	g.hookURL, g.hookSecret = request.URL, request.Secret
	g.mu.Unlock()
	reply(w, 200, map[string]any{"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": request.URL})
}

func (g *registrar) hook() (address, secret string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hookURL, g.hookSecret
}

func (g *registrar) set(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
}

// apps is the path of a deployment's applications.
func (c configCaller) apps(more string) string {
	return fmt.Sprintf("/api/scm/deployments/%d/scm_apps%s", c.DeploymentID, more)
}

// request starts a registration and returns its id.
func (c configCaller) request(t testing.TB, token, more string) string {
	t.Helper()
	body := c.Body(t, token, http.MethodPost, "/api/scm/app_request", fmt.Sprintf(`{"deploymentId":"%d"%s}`, c.DeploymentID, more), 200)
	var answer map[string]string
	if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer) != 1 || len(answer["requestId"]) != 43 {
		t.Fatalf("%s: %v", body, err)
	}
	return answer["requestId"]
}

func complete(request string) string { return fmt.Sprintf(`{"requestId":%q,"code":"c0de"}`, request) }

// TestScmApp tests the whole lifecycle of an application.
func TestScmApp(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		g := newRegistrar(t)
		chief := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin)
		config, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", g.url, "acme", "", "")
		request := s.request(t, chief, fmt.Sprintf(`,"deploymentScmConfigId":"%d"`, config))
		golden := func(name, body string) {
			t.Helper()
			goldenBody(t, name, g.url, strings.ReplaceAll(body, request, "REQUEST"))
		}
		golden("get_scm_app_pending", s.Body(t, chief, http.MethodGet, s.apps("/"+request), "", 200))
		golden("list_scm_apps_none", s.Get(t, s.apps("")))
		golden("complete_scm_app_request", s.Body(t, chief, http.MethodPut, "/api/scm/app_request_complete", complete(request), 200))
		golden("list_scm_apps", s.Get(t, s.apps("")))
		if address, secret := g.hook(); address != "https://palisade.acme.test/api/scm/webhooks/"+request || secret != appSecret {
			t.Errorf("the host was told %s %s", address, secret)
		}
		if row := s.row(t, config); row.ScmAppID == nil {
			t.Error("the connection has no application")
		}
		row := s.Store.Reader.ScmApp.Query().OnlyX(s.System(t))
		for _, sealed := range [][]byte{row.ClientSecret, row.PrivateKey, row.WebhookSecret} {
			if len(sealed) == 0 || bytes.Contains(sealed, []byte("registered-")) || bytes.Contains(sealed, []byte("PRIVATE KEY")) {
				t.Error("a credential is not sealed")
			}
		}
		s.Body(t, chief, http.MethodPut, "/api/scm/app_request_complete", complete(request), 404)

		golden("rotate_scm_app_webhook_secret", s.Body(t, chief, http.MethodPost, s.apps(fmt.Sprintf("/%d/rotate_webhook_secret", row.ID)), "{}", 200))
		_, fresh := g.hook()
		if fresh == appSecret || len(fresh) < 32 {
			t.Errorf("the host was told %q", fresh)
		}
		ping := `{"zen":"Design for failure."}`
		for _, secret := range []string{fresh, appSecret} {
			receiver{s, "/api/scm/webhooks/" + request, secret}.gitHub(t, "ping", ping, 200, `{"status":"ignored"}`)
		}
		g.set(true)
		s.Body(t, chief, http.MethodPost, s.apps(fmt.Sprintf("/%d/rotate_webhook_secret", row.ID)), "{}", 503)
		g.set(false)
		receiver{s, "/api/scm/webhooks/" + request, fresh}.gitHub(t, "ping", ping, 200, `{"status":"ignored"}`)

		golden("delete_scm_app", s.do(t, http.MethodDelete, s.apps(fmt.Sprintf("/%d", row.ID)), "", 200))
		s.do(t, http.MethodDelete, s.apps(fmt.Sprintf("/%d", row.ID)), "", 404)
		if row := s.row(t, config); row.ScmAppID != nil {
			t.Error("the connection still has the application")
		}
		receiver{s, "/api/scm/webhooks/" + request, fresh}.gitHub(t, "ping", ping, 404, "there is no webhook")
		s.noAppSecrets(t)
	})
}

// noAppSecrets searches the audit trail for the application's credentials.
func (c configCaller) noAppSecrets(t testing.TB) {
	t.Helper()
	for _, entry := range c.Store.Reader.AuditEntry.Query().AllX(c.System(t)) {
		text := fmt.Sprintf("%+v %s", entry, entry.Changes)
		for _, secret := range []string{appSecret, appClientText, "PRIVATE KEY", "c0de"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s is in %s", secret, text)
			}
		}
	}
}

// TestWhoseScmAppRequest: only administrators of the request's deployment can complete it, before it expires.
func TestWhoseScmAppRequest(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		g := newRegistrar(t)
		chief := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin)
		member := s.AddUser(t, s.Tenant, "member@acme.test", access.RoleMember)
		globex := s.AddTenant(t, "globex")
		stranger := s.AddUser(t, globex, "chief@globex.test", access.RoleAdmin)
		request := s.request(t, chief, fmt.Sprintf(`,"baseUrl":%q,"namespace":"acme"`, g.url))
		for _, token := range []string{member, stranger} {
			s.Body(t, token, http.MethodPut, "/api/scm/app_request_complete", complete(request), 404)
		}
		s.Body(t, s.Token, http.MethodPut, "/api/scm/app_request_complete", complete(request), 403)
		s.Body(t, stranger, http.MethodGet, fmt.Sprintf("/api/scm/deployments/%d/scm_apps/%s", globex.DeploymentID, request), "", 404)
		body := s.Body(t, chief, http.MethodPut, "/api/scm/app_request_complete", fmt.Sprintf(`{"requestId":%q,"code":"other"}`, request), 400)
		if !strings.Contains(body, "the host does not know the code") {
			t.Error(body)
		}
		for _, body := range []string{`{}`, `{"requestId":"x"}`, `{"requestId":"x","code":"a/../b"}`, `{"code":"c0de"}`} {
			s.Body(t, chief, http.MethodPut, "/api/scm/app_request_complete", body, 400)
		}
		app := s.Store.Reader.ScmApp.Query().Where(scmapp.RequestID(request)).OnlyX(s.System(t))
		rotate, one := fmt.Sprintf("/%d/rotate_webhook_secret", app.ID), fmt.Sprintf("/%d", app.ID)
		elsewhere := fmt.Sprintf("/api/scm/deployments/%d/scm_apps", globex.DeploymentID)
		s.Body(t, stranger, http.MethodPost, elsewhere+rotate, "{}", 404)
		s.Body(t, stranger, http.MethodDelete, elsewhere+one, "", 404)
		s.Body(t, chief, http.MethodPost, s.apps(rotate), "{}", 400)
		another := s.request(t, chief, `,"namespace":"acme"`)
		unfinished := s.Store.Reader.ScmApp.Query().Where(scmapp.RequestID(another)).OnlyX(s.System(t))
		s.Body(t, chief, http.MethodDelete, s.apps(fmt.Sprintf("/%d", unfinished.ID)), "", 200)
		s.Body(t, chief, http.MethodGet, s.apps("/"+another), "", 404)
		s.expire(t, request)
		s.Body(t, chief, http.MethodPut, "/api/scm/app_request_complete", complete(request), 404)
		s.Body(t, chief, http.MethodGet, s.apps("/"+request), "", 404)
		s.Body(t, chief, http.MethodPost, s.apps(rotate), "{}", 404)
		s.Body(t, chief, http.MethodDelete, s.apps(one), "", 404)
	})
}

// expire makes a request expire.
func (c configCaller) expire(t testing.TB, request string) {
	t.Helper()
	err := c.Store.Write(c.System(t), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE scm_apps SET expires_at = %d WHERE request_id = '%s'", store.Micros(time.Now().Add(-time.Second)), request))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestScmAppRequestInvalid(t *testing.T) {
	t.Parallel()
	eachConfig(t, func(t *testing.T, s configCaller) {
		chief := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin)
		gitHub, _ := s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", "http://127.0.0.1:7", "acme", "", "")
		gitLab, _ := s.create(t, "SCM_TYPE_GITLAB_SELFMANAGED", "http://127.0.0.1:8", "acme", "", "")
		for more, want := range map[string]string{
			``:                        "namespace is required without deploymentScmConfigId",
			`,"namespace":"acme/web"`: "namespace",
			`,"namespace":"acme","baseUrl":"http://github.example.com"`:                            "baseUrl must be an https:// URL",
			`,"namespace":"acme","baseUrl":"https://10.0.0.1"`:                                     "baseUrl must be an https:// URL with a public host",
			`,"namespace":"acme","githubEntityType":"GITHUB_ENTITY_TYPE_TEAM"`:                     "githubEntityType",
			fmt.Sprintf(`,"deploymentScmConfigId":"%d"`, gitLab):                                   "applications can be registered at GitHub and GitHub Enterprise only",
			fmt.Sprintf(`,"deploymentScmConfigId":"%d","baseUrl":"https://git.acme.test"`, gitHub): "baseUrl must be the baseUrl of SCM config",
		} {
			body := s.Body(t, chief, http.MethodPost, "/api/scm/app_request", fmt.Sprintf(`{"deploymentId":%d%s}`, s.DeploymentID, more), 400)
			if !strings.Contains(body, want) {
				t.Errorf("%s: %s, want %q", more, body, want)
			}
		}
		for _, body := range []string{``, `{}`, `{"deploymentId":0}`, `{"namespace":"acme"}`} {
			if got := s.Body(t, chief, http.MethodPost, "/api/scm/app_request", body, 400); !strings.Contains(got, "deploymentId is required") {
				t.Errorf("%s: %s", body, got)
			}
		}
		_, err := scmv1.NewScmAppsServiceClient(s.Conn).CreateScmAppRequest(s.Context(t, chief), &scmv1.CreateScmAppRequestRequest{Namespace: "acme"})
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "deploymentId is required") {
			t.Errorf("over gRPC: %v", err)
		}
		s.Body(t, "", http.MethodPost, "/api/scm/app_request", `{}`, 401)
		s.Body(t, chief, http.MethodPost, "/api/scm/app_request", `{"deploymentId":999999,"namespace":"acme"}`, 404)
		s.Body(t, chief, http.MethodPost, "/api/scm/app_request", fmt.Sprintf(`{"deploymentId":%d,"deploymentScmConfigId":999999}`, s.DeploymentID), 404)
		s.Body(t, s.Token, http.MethodPost, "/api/scm/app_request", fmt.Sprintf(`{"deploymentId":%d,"namespace":"acme"}`, s.DeploymentID), 403)
		if n := s.Store.Reader.ScmApp.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d applications are stored", n)
		}
		s.request(t, chief, `,"namespace":"octavia","githubEntityType":"GITHUB_ENTITY_TYPE_USER"`)
		row := s.Store.Reader.ScmApp.Query().OnlyX(s.System(t))
		if row.BaseURL != "https://github.com" || row.ScmType != "SCM_TYPE_GITHUB" || row.EntityType != "USER" || row.CreatedBy == 0 {
			t.Errorf("%+v", row)
		}
	})
}

// TestGitHubAppStatusBeforeAnyApp answers from the known connections.
func TestGitHubAppStatusBeforeAnyApp(t *testing.T) {
	s := apitest.Start(t, nil)
	c := configCaller{Server: s}
	reader := s.AddUser(t, s.Tenant, "reader@acme.test", access.RoleReadOnly)
	apitest.Golden(t, "get_github_app_status", c.Body(t, reader, http.MethodGet, c.apps("/public_gha?namespace=acme"), "", 200))
	c.Body(t, reader, http.MethodGet, c.apps("/public_gha"), "", 400)
	c.Body(t, s.Token, http.MethodGet, c.apps("/public_gha?namespace=acme"), "", 403)
}
