package notifications_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/notifications"
)

// Administrators are told two weeks and a day before an API token expires, once each. Tokens with a shorter life, other
// deployments and members are not bothered.
func TestExpiringTokens(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		now, member := time.Now(), s.AddUser(t, s.Tenant, "member@acme.test", access.RoleMember)
		const day = 24 * time.Hour
		s.AddToken(t, s.Tenant, access.TokenSpec{Name: "long", ExpiresAt: now.Add(40 * day)})
		s.AddToken(t, s.Tenant, access.TokenSpec{Name: "week", ExpiresAt: now.Add(7 * day)})
		s.AddToken(t, s.Tenant, access.TokenSpec{Name: "hour", ExpiresAt: now.Add(time.Hour)})
		rival := s.AddTenant(t, "rival")
		s.AddToken(t, rival, access.TokenSpec{Name: "theirs", ExpiresAt: now.Add(20 * day)})
		told := func(after time.Duration) (titles string) {
			t.Helper()
			for range 2 {
				if err := notifications.TellExpiring(t.Context(), s.Store, now.Add(after)); err != nil {
					t.Fatal(err)
				}
			}
			var list struct {
				Notifications []struct {
					Title, Description, Severity string
					AdminOnly                    bool
				}
			}
			decode(t, s.Body(t, s.jwt, http.MethodGet, s.inApp(""), "", 200), &list)
			for _, n := range list.Notifications {
				titles = strings.Fields(n.Title)[3] + titles
				if !n.AdminOnly || n.Severity != "SEVERITY_WARNING" || !strings.Contains(n.Description, "created it") {
					t.Errorf("got %+v", n)
				}
			}
			return titles
		}
		for _, c := range []struct {
			after time.Duration
			want  string
		}{
			{0, ""},
			{6*day + time.Hour, `"week"`},
			{25 * day, `"week"`},
			{26*day + time.Hour, `"week""long"`},
			{38 * day, `"week""long"`},
			{39*day + time.Hour, `"week""long""long"`},
			{41 * day, `"week""long""long"`},
		} {
			if got := told(c.after); got != c.want {
				t.Errorf("after %s: %s, want %s", c.after, got, c.want)
			}
		}
		if got := s.Body(t, member, http.MethodGet, s.inApp(""), "", 200); strings.Contains(got, "API token") {
			t.Errorf("a member sees %s", got)
		}
		theirs := s.Body(t, rival.Token, http.MethodGet, fmt.Sprintf("/api/notifications/in-app/deployments/%d", rival.DeploymentID), "", 200)
		if strings.Count(theirs, `API token \"theirs\"`) != 1 || strings.Contains(theirs, "long") {
			t.Errorf("they see %s", theirs)
		}
	})
}
