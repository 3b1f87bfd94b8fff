package services_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// What the issuer says about a person follows its newer verified tokens, and an address passes to another subject only
// when its former owner is gone.
func TestSignInFollowsAddressAndName(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		issuer, idToken := idProvider(t)
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.OIDCIssuer, c.OIDCAudience, c.OIDCMembership, c.OIDCDomains = issuer, "palisade", "domain", "acme.test"
		})
		begin := time.Now().Add(-time.Hour).Truncate(time.Second)
		send := func(subject, email, name string, minute, want int, more ...any) string {
			t.Helper()
			at := begin.Add(time.Duration(minute) * time.Minute)
			claims := map[string]any{"sub": subject, "email": email, "name": name, "iat": at.Unix()}
			for i := 0; i+1 < len(more); i += 2 {
				claims[more[i].(string)] = more[i+1]
			}
			return s.Body(t, idToken(claims), http.MethodGet, "/api/v1/deployments", "", want)
		}
		shown := func(want string) {
			t.Helper()
			users, err := services.ListUsers(t.Context(), s.Config, s.Slug)
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, u := range users {
				if u.Subject != "" {
					email, _, _ := strings.Cut(u.Email, "@acme.test")
					if _, domain, _ := strings.Cut(u.Email, "@"); domain == "unverified.invalid" {
						email = "?"
					}
					list = append(list, fmt.Sprintf("%s %s (%s)", u.Subject, email, u.Name))
				}
			}
			if got := strings.Join(list, ", "); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		send("1", "ada@acme.test", "Ada", 10, 200)
		send("1", "Ada.King@acme.test", "Ada King", 20, 200)
		shown("1 ada.king (Ada King)")
		send("1", "ada@acme.test", "Ada", 10, 200)
		send("1", "late@acme.test", "Late", 15, 200)
		send("1", "other@acme.test", "Other", 25, 200, "email_verified", false)
		send("1", "ada.king@acme.test", "", 26, 200)
		shown("1 ada.king (Ada King)")
		entries := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?method=sign-in", s.DeploymentID))
		for _, want := range []string{"ada@acme.test", "ada.king@acme.test", "Ada King"} {
			if !strings.Contains(entries, want) {
				t.Errorf("the audit trail does not have %s: %s", want, entries)
			}
		}

		send("2", "ada@acme.test", "Bob", 30, 200) // nobody has the address any more
		send("2", "ada.king@acme.test", "Bob", 31, 200)
		if body := send("3", "ada.king@acme.test", "Cora", 32, 403); !strings.Contains(body, "removes that member first") || strings.Contains(body, "link") {
			t.Errorf("a new person with the address of a member reads %s", body)
		}
		shown("1 ada.king (Ada King), 2 ada (Bob)")
		ada := s.Store.Reader.User.Query().AllX(s.System(t))
		err := s.Store.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
			for _, u := range ada {
				if u.Subject != nil && *u.Subject == "1" {
					_, err := tx.Membership.Delete().Where(membership.UserID(u.ID)).Exec(ctx)
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		send("3", "ada.king@acme.test", "Cora", 32, 200)
		shown("1 ? (Ada King), 2 ada (Bob), 3 ada.king (Cora)")
		send("1", "ada.king@acme.test", "Ada King", 20, 200) // an older token gives nothing back
		shown("1 ? (Ada King), 2 ada (Bob), 3 ada.king (Cora)")
	})
}
