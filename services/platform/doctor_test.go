package platform_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Administrators see what is well and what is not, and neither paths nor addresses of the installation.
func TestDoctor(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		var cfg config.Config
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.SMTP, c.SMTPFrom = "smtp://mia:hunter22@mail.internal.test", "palisade@acme.test"
			cfg = *c
		})
		path := fmt.Sprintf("/api/platform/v1/deployments/%d/doctor", s.DeploymentID)
		body := s.Get(t, path)
		for _, want := range []string{`"name":"clock","ok":true`, `"name":"e-mail","ok":true,"detail":"sent as palisade@acme.test"`, `"name":"rules","ok":true`, `"name":"scans","ok":true`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s is missing: %s", want, body)
			}
		}
		for _, secret := range []string{cfg.Data, "hunter22", "mail.internal.test", "postgres://", ".db", "rival"} {
			if secret != "" && strings.Contains(body, secret) {
				t.Errorf("%q is shown: %s", secret, body)
			}
		}
		answer, err := platformv1.NewDoctorServiceClient(s.Conn).RunDoctor(s.Context(t, s.Token), &platformv1.RunDoctorRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		free := regexp.MustCompile(`[0-9.]+ [KMGT]iB`) // changes from call to call
		for _, c := range answer.GetChecks() {
			if want := free.ReplaceAllString(c.GetDetail(), ""); !strings.Contains(free.ReplaceAllString(body, ""), want) {
				t.Errorf("over gRPC: %s, over HTTP %s", c, body)
			}
		}
		rival := s.AddTenant(t, "rival")
		for who, c := range map[string]struct {
			token string
			want  int
		}{
			"a member":           {s.AddUser(t, s.Tenant, "mia@acme.test", access.RoleMember), http.StatusForbidden},
			"another deployment": {rival.Token, http.StatusNotFound},
			"nobody":             {"", http.StatusUnauthorized},
		} {
			if answer := s.Do(t, c.token, http.MethodGet, path, ""); answer.Status != c.want {
				t.Errorf("%s: %d %s, want %d", who, answer.Status, answer.Body, c.want)
			}
		}
		_, err = platformv1.NewDoctorServiceClient(s.Conn).RunDoctor(s.Context(t, rival.Token), &platformv1.RunDoctorRequest{DeploymentId: s.DeploymentID})
		if status.Code(err) != codes.NotFound {
			t.Errorf("another deployment over gRPC: %v", err)
		}
	})
}

// An issuer that is down and a role that makes everybody an administrator are problems.
func TestDoctorFindsProblems(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, func(c *config.Config) { c.OIDCIssuer, c.OIDCAudience = "http://127.0.0.1:1/issuer", "palisade" })
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Deployment.UpdateOneID(s.DeploymentID).SetDefaultRole(string(access.RoleAdmin)).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	body := s.Get(t, fmt.Sprintf("/api/platform/v1/deployments/%d/doctor", s.DeploymentID))
	for _, want := range []string{`"name":"OIDC issuer","ok":false`, `"name":"role of new members","ok":false`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing: %s", want, body)
		}
	}
}
