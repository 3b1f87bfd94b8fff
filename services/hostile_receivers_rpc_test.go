package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/egress/egresstest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// outboundRPC is an RPC that calls a host of the tenant's choice.
type outboundRPC struct {
	// prepare stores the URL to call, and returns method, path and body of the call.
	prepare func(t *testing.T, s *apitest.Server, chief, url string) (method, path, body string)
	// statuses are the HTTP statuses of a response about a failing host.
	statuses []int
}

var outboundRPCs = map[string]outboundRPC{
	"webhook rule": {testRule("CHANNEL_WEBHOOK", `"url":%q`), []int{200}},
	"slack rule":   {testRule("CHANNEL_SLACK_WEBHOOK", `"url":%q`), []int{200}},
	"s3 rule": {testRule("CHANNEL_S3", `"endpoint":%q,"bucket":"acme-findings","region":"eu-central-1","access_key_id":"PALISADETESTKEY","secret_access_key":"not-a-real-key"`),
		[]int{200}},
	"GitHub":           {testHost("SCM_TYPE_GITHUB_ENTERPRISE"), []int{200}},
	"GitLab":           {testHost("SCM_TYPE_GITLAB_SELFMANAGED"), []int{200}},
	"app registration": {registration, []int{400, 503}},
	"cloud posture":    {validatePosture, []int{200}},
}

func testRule(channel, config string) func(*testing.T, *apitest.Server, string, string) (string, string, string) {
	return func(t *testing.T, s *apitest.Server, _, url string) (method, path, body string) {
		t.Helper()
		rules := fmt.Sprintf("/api/agent/deployments/%d/actions", s.DeploymentID)
		rule := fmt.Sprintf(`{"notificationRule":{"name":"r","channel":%q,"config":{%s}}}`, channel, fmt.Sprintf(config, url))
		var made struct {
			Rule struct{ ID int64 } `json:"notification_rule"`
		}
		read(t, s.Body(t, s.Token, http.MethodPost, rules, rule, http.StatusOK), &made)
		return http.MethodPost, fmt.Sprintf("%s/%d/test", rules, made.Rule.ID), "{}"
	}
}

func connect(t *testing.T, s *apitest.Server, kind, url, token string) (id string) {
	t.Helper()
	configs := fmt.Sprintf("/api/scm/deployments/%d/configs", s.DeploymentID)
	config := fmt.Sprintf(`{"type":%q,"namespace":"acme","baseUrl":%q,"accessToken":%q}`, kind, url, token)
	var made struct{ Config struct{ ID string } }
	read(t, s.Body(t, s.Token, http.MethodPost, configs, config, http.StatusCreated), &made)
	return made.Config.ID
}

func testHost(kind string) func(*testing.T, *apitest.Server, string, string) (string, string, string) {
	return func(t *testing.T, s *apitest.Server, _, url string) (method, path, body string) {
		t.Helper()
		return http.MethodGet, fmt.Sprintf("/api/scm/deployments/%d/configs/%s/check", s.DeploymentID, connect(t, s, kind, url, "token")), ""
	}
}

func registration(t *testing.T, s *apitest.Server, chief, url string) (method, path, body string) {
	t.Helper()
	asked := fmt.Sprintf(`{"deploymentId":"%d","deploymentScmConfigId":%q}`, s.DeploymentID, connect(t, s, "SCM_TYPE_GITHUB_ENTERPRISE", url, ""))
	var request struct{ RequestID string }
	read(t, s.Body(t, chief, http.MethodPost, "/api/scm/app_request", asked, http.StatusOK), &request)
	return http.MethodPut, "/api/scm/app_request_complete", fmt.Sprintf(`{"requestId":%q,"code":"c0de"}`, request.RequestID)
}

func validatePosture(_ *testing.T, s *apitest.Server, _, url string) (method, path, body string) {
	return http.MethodPost, fmt.Sprintf("/api/notifications/deployments/%d/cloud-posture/validate", s.DeploymentID),
		fmt.Sprintf(`{"clientId":"c","clientSecret":"s","tokenUrl":%q,"apiUrl":%q}`, url, url)
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// hanging are the modes that would keep a request longest. TestEveryCallerAgainstHostileReceivers tries all modes.
var hanging = []egresstest.Mode{egresstest.Upgrade, egresstest.SlowHeader, egresstest.SlowBody, egresstest.EndlessBody, egresstest.Silent, egresstest.Slow1xx}

// Requests that call a host end in time with a response, even if the host is hostile.
func TestRPCsAgainstHostileReceivers(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	egresstest.Shorten(t, outboundBudget)
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
		chief := s.AddUser(t, s.Tenant, "chief@acme.test", access.RoleAdmin)
		for name, rpc := range outboundRPCs {
			for _, mode := range hanging {
				t.Run(name+"/"+string(mode), func(t *testing.T) {
					r := egresstest.Start(t, mode, egresstest.Options{})
					method, path, body := rpc.prepare(t, s, chief, r.URL)
					t.Parallel()
					var got apitest.Answer
					_ = egresstest.Within(t, 3*outboundBudget, func() error { got = s.Do(t, chief, method, path, body); return nil })
					good := false
					for _, status := range rpc.statuses {
						good = good || got.Status == status
					}
					if !good || mode == egresstest.Upgrade && !strings.Contains(got.Body, "101") {
						t.Errorf("%d %s", got.Status, got.Body)
					}
					r.RequireClosed(t)
				})
			}
		}
	})
}

// Sign-in fails in time with an error while the issuer hangs.
func TestSignInAtAHostileIssuer(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	egresstest.Shorten(t, outboundBudget)
	for _, mode := range hanging {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := egresstest.Start(t, mode, egresstest.Options{})
			_, idToken := idProvider(t)
			s := apitest.Start(t, func(c *config.Config) { c.OIDCIssuer, c.OIDCAudience = r.URL, "palisade" })
			token := idToken(map[string]any{"iss": r.URL, "sub": "alice-1"})
			var got apitest.Answer
			_ = egresstest.Within(t, outboundBudget, func() error { got = s.Do(t, token, http.MethodGet, "/api/v1/deployments", ""); return nil })
			if got.Status != http.StatusServiceUnavailable {
				t.Errorf("%d %s", got.Status, got.Body)
			}
			r.RequireClosed(t)
		})
	}
}

// A server with notifications to hostile receivers stops in time.
func TestStopBesideHostileReceivers(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	for _, mode := range []egresstest.Mode{egresstest.Upgrade, egresstest.Silent, egresstest.Unread, egresstest.SlowBody} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
				r := egresstest.Start(t, mode, egresstest.Options{})
				var asked time.Time
				t.Run("server", func(t *testing.T) { // it stops at the end
					s := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow, c.ShutdownGrace = "127.0.0.1", 2*time.Second })
					rule := fmt.Sprintf(`{"notificationRule":{"name":"r","channel":"CHANNEL_WEBHOOK","is_enabled":true,"config":{"url":%q}}}`, r.URL)
					s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", s.DeploymentID), rule, http.StatusOK)
					s.Upload(t, "acme/web", "main", []byte(oneResult))
					apitest.Eventually(t, "the receiver is called", func() bool { return r.Calls() > 0 })
					asked = time.Now()
				})
				if took := time.Since(asked); took > 20*time.Second { // the grace period, the time for cut-off requests, and a busy machine
					t.Errorf("the server ended after %s", took)
				}
				r.RequireClosed(t)
			})
		})
	}
}
