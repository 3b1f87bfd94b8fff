package scm_test

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
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

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

const (
	entraTenant = "1d2c4a5b-0000-4000-8000-000000000001"
	entraClient = "7a6b5c4d-0000-4000-8000-000000000002"
	entraToken  = "eyJ0eXAi.entra-token-0123456789.c2ln"
)

// entra is a Microsoft Entra ID with one application, to which a certificate may be uploaded.
type entra struct {
	url string

	mu          sync.Mutex
	certificate *x509.Certificate
}

func newEntra(t testing.TB) *entra {
	t.Helper()
	e := &entra{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{tenant}/oauth2/v2.0/token", e.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// upload adds a certificate to the application.
func (e *entra) upload(t testing.TB, text string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || strings.Contains(text, "PRIVATE") {
		t.Fatalf("no certificate: %s", text)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.certificate = certificate
	return certificate
}

func (e *entra) token(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	certificate := e.certificate
	e.mu.Unlock()
	refuse := func(code, text string) {
		reply(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": code + ": " + text + "\r\nTrace ID: 0", "error_codes": []int{7000}})
	}
	switch {
	case r.PathValue("tenant") != entraTenant:
		reply(w, http.StatusBadRequest, map[string]any{"error": "invalid_request", "error_description": "AADSTS90002: Tenant not found."})
		return
	case r.PostFormValue("client_id") != entraClient || r.PostFormValue("grant_type") != "client_credentials" || r.PostFormValue("scope") != "499b84ac-1321-427f-aa17-267ca6975798/.default" ||
		r.PostFormValue("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
		refuse("AADSTS700016", "Application was not found in the directory")
		return
	case certificate == nil:
		refuse("AADSTS700027", "The certificate with identifier used to sign the client assertion is not registered on application")
		return
	}
	_, err := jwt.Parse(r.PostFormValue("client_assertion"), func(t *jwt.Token) (any, error) {
		if hash := sha256.Sum256(certificate.Raw); t.Header["x5t#S256"] != base64.RawURLEncoding.EncodeToString(hash[:]) {
			return nil, fmt.Errorf("thumbprint %v", t.Header["x5t#S256"])
		}
		return certificate.PublicKey, nil
	}, jwt.WithValidMethods([]string{"PS256"}), jwt.WithIssuer(entraClient), jwt.WithSubject(entraClient), jwt.WithExpirationRequired(),
		jwt.WithAudience("http://"+r.Host+r.URL.Path))
	if err != nil {
		refuse("AADSTS50027", err.Error())
		return
	}
	reply(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": 3599, "ext_expires_in": 3599, "access_token": entraToken})
}

// eachAzureApp runs a test with an Azure DevOps and its Microsoft Entra ID.
func eachAzureApp(t *testing.T, test func(t *testing.T, s configCaller, h *hosttest.Azure, e *entra)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		e, h := newEntra(t), hosttest.NewAzure(t)
		h.Repositories = []hosttest.Repository{azureWeb}
		server := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow, c.EntraURL = "127.0.0.1", e.url })
		test(t, configCaller{server, scmv1.NewScmServiceClient(server.Conn), scmv1.NewScmSubscriptionsServiceClient(server.Conn)}, h, e)
	})
}

// azureApp creates an application, and returns its id and certificate.
func (c configCaller) azureApp(t testing.TB, baseURL, more string) (id, certificate string) {
	t.Helper()
	body := c.do(t, http.MethodPost, "/api/scm/ado_app", fmt.Sprintf(
		`{"deploymentId":"%d","baseUrl":%q,"tenantId":%q,"clientId":%q,"organizationName":"acme","projectName":"tools"%s}`, c.DeploymentID, baseURL, entraTenant, entraClient, more), http.StatusOK)
	var answer struct{ ScmAppID, PublicCertificatePem string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.ScmAppID == "" {
		t.Fatalf("%s: %v", body, err)
	}
	return answer.ScmAppID, answer.PublicCertificatePem
}

func (c configCaller) install(t testing.TB, id string, want int) string {
	t.Helper()
	return c.do(t, http.MethodPut, "/api/scm/ado_app_install", fmt.Sprintf(`{"deploymentId":"%d","scmAppId":%q}`, c.DeploymentID, id), want)
}

func (c configCaller) addProject(t testing.TB, id, project string, want int) string {
	t.Helper()
	return c.do(t, http.MethodPost, c.apps("/"+id+"/add_ado_project"), fmt.Sprintf(`{"organizationName":"acme","projectName":%q}`, project), want)
}

// TestAzureApp tests the whole life of an application for Azure DevOps.
func TestAzureApp(t *testing.T) {
	t.Parallel()
	eachAzureApp(t, func(t *testing.T, s configCaller, h *hosttest.Azure, e *entra) {
		id, certificate := s.azureApp(t, h.URL, "")
		if body := s.install(t, id, http.StatusBadRequest); !strings.Contains(body, "AADSTS700027") || !strings.Contains(body, "certificate is uploaded") || !strings.Contains(body, "FAILED_PRECONDITION") {
			t.Errorf("before the upload: %s", body)
		}
		s.addProject(t, id, "tools", http.StatusBadRequest)
		uploaded := e.upload(t, certificate)
		if key, ok := uploaded.PublicKey.(*rsa.PublicKey); !ok || key.N.BitLen() < 2048 || time.Until(uploaded.NotAfter) < 700*24*time.Hour {
			t.Errorf("certificate %+v", uploaded)
		}
		if body := s.install(t, id, http.StatusBadRequest); !strings.Contains(body, "access level Basic") || s.Store.Reader.ScmConfig.Query().CountX(s.System(t)) != 0 {
			t.Errorf("before it is added to the organization: %s", body)
		}
		h.AcceptBearer(entraToken)
		goldenBody(t, "complete_ado_scm_app", h.URL, s.requestless(t, s.install(t, id, http.StatusOK)))
		s.install(t, id, http.StatusOK)
		row := s.Store.Reader.ScmConfig.Query().OnlyX(s.System(t))
		if row.Namespace != "acme/tools" || row.ScmAppID == nil || !row.Installed || !row.CheckOk || row.ScmID != hosttest.AzureProject || len(row.AccessToken) != 0 {
			t.Errorf("%+v", row)
		}
		s.sync(t, row.ID)
		if web := s.project(t, "acme/tools/web"); web.RepositoryURL != h.URL+"/acme/tools/_git/web" {
			t.Errorf("%+v", web)
		}
		if body := s.Get(t, s.path("/%d/check", row.ID)); !strings.Contains(body, `"ok":true`) {
			t.Errorf("check %s", body)
		}
		s.do(t, http.MethodPut, s.subscriptions(row.ID, ""), "", http.StatusOK)
		if body := s.Get(t, s.apps("")); !strings.Contains(body, `"tenantId":"`+entraTenant) || !strings.Contains(body, `"codeAccess":true`) {
			t.Errorf("list %s", body)
		}
		chief := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin)
		if body := s.Body(t, chief, http.MethodPost, s.apps("/"+id+"/rotate_webhook_secret"), "{}", http.StatusBadRequest); !strings.Contains(body, "rotate their secrets") {
			t.Errorf("rotate %s", body)
		}
		s.do(t, http.MethodDelete, s.path("/%d", row.ID), "", http.StatusNoContent)
		if body := s.addProject(t, id, "TOOLS", http.StatusOK); body != "{}" {
			t.Errorf("add %s", body)
		}
		s.addProject(t, id, "tools", http.StatusOK)
		if again := s.Store.Reader.ScmConfig.Query().OnlyX(s.System(t)); again.ID == row.ID || again.Namespace != "acme/tools" {
			t.Errorf("%+v", again)
		}
		if body := s.addProject(t, id, "none", http.StatusBadRequest); !strings.Contains(body, "acme/none") {
			t.Errorf("no project: %s", body)
		}
		s.do(t, http.MethodDelete, s.apps("/"+id), "", http.StatusOK)
		s.addProject(t, id, "tools", http.StatusNotFound)
		s.install(t, id, http.StatusNotFound)
		if again := s.Store.Reader.ScmConfig.Query().OnlyX(s.System(t)); again.ScmAppID != nil || again.Installed {
			t.Errorf("after the application: %+v", again)
		}
		s.noAppSecrets(t)
	})
}

// requestless replaces the random id of a request.
func (c configCaller) requestless(t testing.TB, body string) string {
	t.Helper()
	return strings.ReplaceAll(body, c.Store.Reader.ScmApp.Query().OnlyX(c.System(t)).RequestID, "REQUEST")
}

// TestAzureAppOfAConnection: a connection without an application gets it, and one with another keeps its own.
func TestAzureAppOfAConnection(t *testing.T) {
	t.Parallel()
	eachAzureApp(t, func(t *testing.T, s configCaller, h *hosttest.Azure, e *entra) {
		h.AcceptBearer(entraToken)
		config, _ := s.create(t, "SCM_TYPE_AZURE_DEVOPS", h.URL, "acme/Tools", h.Token, "")
		id, certificate := s.azureApp(t, h.URL, "")
		e.upload(t, certificate)
		s.install(t, id, http.StatusOK)
		if row := s.row(t, config); row.ScmAppID == nil || len(row.AccessToken) == 0 || s.Store.Reader.ScmConfig.Query().CountX(s.System(t)) != 1 {
			t.Errorf("%+v", row)
		}
		other, certificate := s.azureApp(t, h.URL, "")
		e.upload(t, certificate)
		if body := s.install(t, other, http.StatusConflict); !strings.Contains(body, "is connected with SCM app "+id) {
			t.Error(body)
		}
		row := s.Store.Reader.ScmApp.GetX(s.System(t), *s.row(t, config).ScmAppID)
		if len(row.PrivateKey) == 0 || bytes.Contains(row.PrivateKey, []byte("PRIVATE KEY")) {
			t.Error("the private key is not sealed")
		}
	})
}

// TestAzureAppWalls: over both wires, with the rights that are needed, and not of others.
func TestAzureAppWalls(t *testing.T) {
	t.Parallel()
	eachAzureApp(t, func(t *testing.T, s configCaller, h *hosttest.Azure, e *entra) {
		client := scmv1.NewScmAppsServiceClient(s.Conn)
		made, err := client.CreateAdoScmApp(s.Context(t, s.Token), &scmv1.CreateAdoScmAppRequest{
			DeploymentId: s.DeploymentID, BaseUrl: h.URL, TenantId: entraTenant, ClientId: entraClient, OrganizationName: "acme", ProjectName: "tools",
		})
		if err != nil {
			t.Fatal(err)
		}
		e.upload(t, made.GetPublicCertificatePem())
		h.AcceptBearer(entraToken)
		globex := s.AddTenant(t, "globex")
		for name, call := range map[string]func(token string, deployment int64) error{
			"complete": func(token string, deployment int64) error {
				_, err := client.CompleteAdoScmAppInstall(s.Context(t, token), &scmv1.CompleteAdoScmAppInstallRequest{DeploymentId: deployment, ScmAppId: made.GetScmAppId()})
				return err
			},
			"add": func(token string, deployment int64) error {
				_, err := client.AddAdoScmProject(s.Context(t, token), &scmv1.AddAdoScmProjectRequest{
					DeploymentId: deployment, ScmAppId: made.GetScmAppId(), OrganizationName: "acme", ProjectName: "tools"})
				return err
			},
		} {
			if err := call(globex.Token, globex.DeploymentID); status.Code(err) != codes.NotFound {
				t.Errorf("%s of another deployment: %v", name, err)
			}
			if err := call(globex.Token, s.DeploymentID); status.Code(err) != codes.NotFound && status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s in another deployment: %v", name, err)
			}
			member := s.AddUser(t, s.Tenant, name+"@acme.test", access.RoleMember)
			if err := call(member, s.DeploymentID); status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s by a member: %v", name, err)
			}
			if err := call("", s.DeploymentID); status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s by nobody: %v", name, err)
			}
		}
		done, err := client.CompleteAdoScmAppInstall(s.Context(t, s.Token), &scmv1.CompleteAdoScmAppInstallRequest{DeploymentId: s.DeploymentID, ScmAppId: made.GetScmAppId()})
		if err != nil || done.GetApp().GetTenantId() != entraTenant || done.GetApp().GetAppId() != entraClient || done.GetApp().GetScmType() != scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS {
			t.Errorf("%v %v", done, err)
		}
		if n := s.Store.Reader.ScmConfig.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d connections", n)
		}
		base := fmt.Sprintf(`{"deploymentId":%d,"tenantId":%q,"clientId":%q,"organizationName":"acme","projectName":"tools"}`, s.DeploymentID, entraTenant, entraClient)
		for field, body := range map[string]string{
			"tenantId": strings.Replace(base, entraTenant, "common", 1), "clientId": strings.Replace(base, entraClient, "", 1),
			"organizationName": strings.Replace(base, `"acme"`, `"a/b"`, 1), "projectName": strings.Replace(base, `"tools"`, `""`, 1),
			"baseUrl": strings.Replace(base, `{`, `{"baseUrl":"ftp://x",`, 1),
		} {
			if got := s.do(t, http.MethodPost, "/api/scm/ado_app", body, http.StatusBadRequest); !strings.Contains(got, field) {
				t.Errorf("%s: %s", field, got)
			}
		}
		s.install(t, "999999", http.StatusNotFound)
		s.do(t, http.MethodPut, "/api/scm/ado_app_install", `{"scmAppId":"1"}`, http.StatusBadRequest)
	})
}

// TestCodeOfAzureDevOps: the address that Git clones, and the credential of a token or an application. Only the project
// of the connection is covered, however its address is written.
func TestCodeOfAzureDevOps(t *testing.T) {
	t.Parallel()
	eachAzureApp(t, func(t *testing.T, s configCaller, h *hosttest.Azure, e *entra) {
		h.AcceptBearer(entraToken)
		id, certificate := s.azureApp(t, h.URL, "")
		e.upload(t, certificate)
		s.install(t, id, http.StatusOK)
		s.create(t, "SCM_TYPE_AZURE_DEVOPS", h.URL, "acme/My Apps", "pat-of-my-apps", "")
		s.create(t, "SCM_TYPE_AZURE_DEVOPS", h.URL+"/tfs", "Main/tools", "pat-of-a-server", "")
		for name, c := range map[string]struct{ path, password string }{
			"by application": {"/acme/tools/_git/web", entraToken}, "of the project's name": {"/acme/_git/tools", entraToken}, "letter case": {"/Acme/TOOLS/_git/web", entraToken},
			"spaces": {"/acme/My%20Apps/_git/My%20App", "pat-of-my-apps"}, "server": {"/tfs/Main/tools/_git/web", "pat-of-a-server"},
		} {
			got, err := s.repository(t, name, h.URL+c.path)
			if err != nil || got.URL != h.URL+c.path || got.Password != c.password || !got.MultiACK {
				t.Errorf("%s: %+v %v", name, got, err)
			}
		}
		for _, path := range []string{"/acme/secret/_git/web", "/acme/_git/web", "/acme/toolsish/_git/web", "/tools/_git/web", "/Main/tools/_git/web", "/acme/tools/../secret/_git/web"} {
			if got, err := s.repository(t, "not covered "+path, h.URL+path); err == nil || got.Password != "" {
				t.Errorf("%s: %+v %v", path, got, err)
			}
		}
	})
}
