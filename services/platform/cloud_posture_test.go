package platform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/cloudposturecredential"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

const postureSecret = "posture-secret-2f7b19c4d0"

// postureTool is a tool with a token endpoint, which also accepts a client secret in the body, and a GraphQL API.
type postureTool struct {
	*httptest.Server
	calls atomic.Int64
	// token and api answer instead, if they are set.
	token, api http.HandlerFunc
}

func newPostureTool(t *testing.T) *postureTool {
	p := &postureTool{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) {
		p.calls.Add(1)
		if p.token != nil {
			p.token(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("grant_type") != "client_credentials" || r.FormValue("audience") != "posture-api" || r.FormValue("client_id") != "client-1" || r.FormValue("client_secret") != postureSecret {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"internal detail of the tool"}`)
			return
		}
		fmt.Fprint(w, `{"access_token":"token-1","token_type":"Bearer","expires_in":3600}`)
	})
	mux.HandleFunc("POST /graphql", func(w http.ResponseWriter, r *http.Request) {
		p.calls.Add(1)
		var asked struct{ Query string }
		if p.api != nil {
			p.api(w, r)
		} else if r.Header.Get("Authorization") != "Bearer token-1" {
			w.WriteHeader(http.StatusUnauthorized)
		} else if json.NewDecoder(r.Body).Decode(&asked) != nil || !strings.Contains(asked.Query, "__typename") {
			w.WriteHeader(http.StatusBadRequest)
		} else {
			fmt.Fprint(w, `{"data":{"__typename":"Query"}}`)
		}
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// postures calls the API as an administrator of the deployment.
type postures struct {
	*apitest.Server
	chief string
}

func eachPostures(t *testing.T, test func(t *testing.T, s *postures)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
		test(t, &postures{s, s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin)})
	})
}

func (s *postures) call(t *testing.T, method, more, body string, want int) string {
	t.Helper()
	return s.Body(t, s.chief, method, fmt.Sprintf("/api/notifications/deployments/%d/cloud-posture%s", s.DeploymentID, more), body, want)
}

func (s *postures) create(t *testing.T, tool *postureTool, secret string) string {
	t.Helper()
	answer := s.call(t, http.MethodPost, "", fmt.Sprintf(`{"clientId":"client-1","clientSecret":%q,"apiUrl":"%s/graphql","tokenUrl":"%s/oauth/token","audience":"posture-api"}`,
		secret, tool.URL, tool.URL), http.StatusOK)
	var out struct {
		CloudPostureCredential struct{ ID string }
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil || strings.Contains(answer, secret) {
		t.Fatal(err, answer)
	}
	return out.CloudPostureCredential.ID
}

func (s *postures) validate(t *testing.T, body string) string {
	t.Helper()
	return s.call(t, http.MethodPost, "/validate", body, http.StatusOK)
}

const valid = `{"valid":true,"error":""}`

// TestCloudPosture: a credential is stored, shown without its secret, tried, changed and deleted.
func TestCloudPosture(t *testing.T) {
	t.Parallel()
	eachPostures(t, func(t *testing.T, s *postures) {
		tool := newPostureTool(t)
		id := s.create(t, tool, postureSecret)
		shown := fmt.Sprintf(`{"id":%q,"deploymentId":%d,"clientId":"client-1","apiUrl":"%s/graphql","tokenUrl":"%s/oauth/token","audience":"posture-api"}`,
			id, s.DeploymentID, tool.URL, tool.URL)
		if got := s.call(t, http.MethodGet, "", "", http.StatusOK); got != `{"cloudPostureCredentials":[`+shown+`]}` {
			t.Errorf("listed %s", got)
		}
		got := s.call(t, http.MethodGet, "/"+id, "", http.StatusOK)
		if got != `{"cloudPostureCredential":`+shown+`}` {
			t.Errorf("got %s", got)
		}
		client := platformv1.NewCloudPostureCredentialsServiceClient(s.Conn)
		list, err := client.ListCloudPostureCredentials(s.Context(t, s.chief), &platformv1.ListCloudPostureCredentialsRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, list, `{"cloudPostureCredentials":[`+shown+`]}`)
		if got := s.validate(t, `{"id":`+id+`}`); got != valid {
			t.Errorf("validation of the stored one: %s", got)
		}
		s.call(t, http.MethodPut, "/"+id, `{"clientSecret":"another-secret"}`, http.StatusOK)
		if got := s.validate(t, `{"id":`+id+`}`); got != `{"valid":false,"error":"tokenUrl refused the credential: invalid_client (HTTP 401)"}` {
			t.Errorf("validation of a wrong secret: %s", got)
		}
		if got := s.validate(t, `{"id":`+id+`,"clientSecret":"`+postureSecret+`"}`); got != valid {
			t.Errorf("validation of a new secret: %s", got)
		}
		s.call(t, http.MethodPut, "/"+id, `{"clientId":"client-2","audience":"other"}`, http.StatusOK)
		if got := s.call(t, http.MethodGet, "/"+id, "", http.StatusOK); !strings.Contains(got, `"clientId":"client-2"`) || !strings.Contains(got, `"audience":"other"`) || !strings.Contains(got, tool.URL) {
			t.Errorf("changed to %s", got)
		}
		if got := s.call(t, http.MethodDelete, "/"+id, "", http.StatusOK); got != `{"success":true}` {
			t.Errorf("deleted: %s", got)
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
			s.call(t, method, "/"+id, "{}", http.StatusNotFound)
		}
		s.call(t, http.MethodPost, "/validate", `{"id":`+id+`}`, http.StatusNotFound)
		trail := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?objectKind=cloud_posture_credential", s.DeploymentID))
		if strings.Count(trail, `"kind":"cloud_posture_credential"`) != 4 || strings.Contains(trail, postureSecret) || strings.Contains(trail, "another-secret") {
			t.Errorf("audit trail %s", trail)
		}
	})
}

// TestPostureSecretStaysWithItsURLs: the stored secret is sent to the stored URLs only, and sealed for its row.
func TestPostureSecretStaysWithItsURLs(t *testing.T) {
	t.Parallel()
	eachPostures(t, func(t *testing.T, s *postures) {
		tool, thief := newPostureTool(t), newPostureTool(t)
		id := s.create(t, tool, postureSecret)
		for _, field := range []string{fmt.Sprintf(`"tokenUrl":"%s/oauth/token"`, thief.URL), fmt.Sprintf(`"apiUrl":"%s/graphql"`, thief.URL)} {
			for _, answer := range []string{
				s.call(t, http.MethodPut, "/"+id, `{`+field+`}`, http.StatusBadRequest),
				s.call(t, http.MethodPost, "/validate", `{"id":`+id+`,`+field+`}`, http.StatusBadRequest),
			} {
				if !strings.Contains(answer, "clientSecret is required with another") {
					t.Errorf("%s: %s", field, answer)
				}
			}
		}
		if n := thief.calls.Load(); n != 0 {
			t.Errorf("%d calls of another host", n)
		}
		row, err := s.Store.Reader.CloudPostureCredential.Query().Where(cloudposturecredential.ClientID("client-1")).Only(s.System(t))
		if err != nil || len(row.ClientSecret) == 0 || strings.Contains(string(row.ClientSecret), postureSecret) {
			t.Fatalf("stored %q, %v", row.ClientSecret, err)
		}
		other := s.create(t, tool, "second-secret")
		err = s.Store.Write(s.System(t), copySecret(row))
		if err != nil {
			t.Fatal(err)
		}
		_, err = platformv1.NewCloudPostureCredentialsServiceClient(s.Conn).ValidateCloudPostureCredential(s.Context(t, s.chief),
			&platformv1.ValidateCloudPostureCredentialRequest{DeploymentId: s.DeploymentID, Id: row.ID + 1})
		if status.Code(err) != codes.Internal {
			t.Errorf("the secret of another row opened for %s: %v", other, err)
		}
		s.call(t, http.MethodPut, "/"+id, fmt.Sprintf(`{"tokenUrl":"%s/oauth/token","apiUrl":"%s/graphql","clientSecret":"%s"}`, thief.URL, thief.URL, postureSecret), http.StatusOK)
		if got := s.validate(t, `{"id":`+id+`}`); got != valid {
			t.Errorf("validation after the move: %s", got)
		}
	})
}

// TestPostureProblems: what is wrong is said in words of this server.
func TestPostureProblems(t *testing.T) {
	t.Parallel()
	eachPostures(t, func(t *testing.T, s *postures) {
		tool := newPostureTool(t)
		id := s.create(t, tool, postureSecret)
		answer := func(code int, body string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				fmt.Fprint(w, body)
			}
		}
		redirect := func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}
		for _, c := range []struct {
			token, api http.HandlerFunc
			want       string
		}{
			{answer(403, `<b>host db-7.internal</b>`), nil, "tokenUrl answered HTTP 403 Forbidden"},
			{answer(400, `{"error":"host db-7.internal"}`), nil, "tokenUrl answered HTTP 400 Bad Request"},
			{answer(200, `{"token":1}`), nil, "tokenUrl answered without a token that can be read"},
			{answer(200, strings.Repeat("x", 100_000)), nil, "tokenUrl answered without a token that can be read"},
			{redirect, nil, "tokenUrl answered HTTP 302 Found"},
			{nil, answer(403, "host db-7.internal"), "apiUrl refused the token of tokenUrl: it answered HTTP 403 Forbidden"},
			{nil, answer(404, ""), "apiUrl answered HTTP 404 Not Found, not as a GraphQL API does"},
			{nil, redirect, "apiUrl answered HTTP 302 Found, not as a GraphQL API does"},
		} {
			tool.token, tool.api = c.token, c.api
			if got, want := s.validate(t, `{"id":`+id+`}`), fmt.Sprintf(`{"valid":false,"error":%q}`, c.want); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		closed := httptest.NewServer(http.NotFoundHandler())
		closed.Close()
		body := fmt.Sprintf(`{"clientId":"c","clientSecret":"s","apiUrl":"%s/graphql","tokenUrl":"%s/token"}`, closed.URL, closed.URL)
		if got := s.validate(t, body); got != `{"valid":false,"error":"tokenUrl: the host could not be reached"}` {
			t.Errorf("a closed port: %s", got)
		}
		for body, field := range map[string]string{
			`{}`: "clientId is required",
			`{"clientId":"c","apiUrl":"https://a.test","tokenUrl":"https://a.test"}`:                             "clientSecret is required",
			`{"clientId":"c","clientSecret":"s","tokenUrl":"https://a.test"}`:                                    "apiUrl is required",
			`{"clientId":"c","clientSecret":"s","apiUrl":"https://a.test"}`:                                      "tokenUrl is required",
			`{"clientId":"c","clientSecret":"s","apiUrl":"http://a.test","tokenUrl":"https://a.test"}`:           "apiUrl must be an https:// URL",
			`{"clientId":"c","clientSecret":"s","apiUrl":"https://a.test","tokenUrl":"https://u:p@a.test"}`:      "tokenUrl must be an https:// URL",
			`{"clientId":"c","clientSecret":"s","apiUrl":"https://a.test","tokenUrl":"https://169.254.169.254"}`: "tokenUrl",
		} {
			if got := s.call(t, http.MethodPost, "/validate", body, http.StatusBadRequest); !strings.Contains(got, field) {
				t.Errorf("%s: %s, want %s", body, got, field)
			}
			if got := s.call(t, http.MethodPost, "", body, http.StatusBadRequest); strings.Contains(got, `:p@`) {
				t.Errorf("%s: %s", body, got)
			}
		}
	})
}

// TestPostureLimits: a deployment has at most 20 credentials, and sees none of another.
func TestPostureLimits(t *testing.T) {
	t.Parallel()
	eachPostures(t, func(t *testing.T, s *postures) {
		tool := newPostureTool(t)
		id := s.create(t, tool, postureSecret)
		for range 19 {
			s.create(t, tool, postureSecret)
		}
		body := `{"clientId":"c","clientSecret":"s","apiUrl":"https://a.test/","tokenUrl":"https://a.test/"}`
		if got := s.call(t, http.MethodPost, "", body, http.StatusBadRequest); !strings.Contains(got, "at most 20 cloud-posture credentials") {
			t.Errorf("one more: %s", got)
		}
		umbrella := s.AddTenant(t, "umbrella")
		foreign := s.AddUser(t, umbrella, "chief@umbrella.test", access.RoleAdmin)
		path := fmt.Sprintf("/api/notifications/deployments/%d/cloud-posture", umbrella.DeploymentID)
		if got := s.Body(t, foreign, http.MethodGet, path, "", http.StatusOK); got != `{"cloudPostureCredentials":[]}` {
			t.Errorf("another deployment sees %s", got)
		}
		s.Body(t, foreign, http.MethodGet, path+"/"+id, "", http.StatusNotFound)
		s.Body(t, foreign, http.MethodPost, path+"/validate", `{"id":`+id+`}`, http.StatusNotFound)
	})
}

// copySecret puts the secret of a row into the next one.
func copySecret(row *ent.CloudPostureCredential) func(context.Context, *ent.Tx) error {
	return func(ctx context.Context, tx *ent.Tx) error {
		return tx.CloudPostureCredential.UpdateOneID(row.ID + 1).SetClientSecret(row.ClientSecret).Exec(ctx)
	}
}
