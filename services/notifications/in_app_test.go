package notifications_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

func seedNotifications(t *testing.T, s caller) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for i := range 5 {
			err := tx.Notification.Create().SetDeploymentID(s.DeploymentID).SetDedupKey(fmt.Sprint(i)).SetTitle(fmt.Sprintf("Title %d", i+1)).
				SetDescription("What happened.").SetSeverity("SEVERITY_INFO").SetAdminOnly(i%2 == 1).SetLink("/settings").SetIsExternalLink(false).
				SetLinkText("Settings").SetCreatedAt(store.Now()).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestInApp(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		seedNotifications(t, s)
		client := notificationsv1.NewNotificationsServiceClient(s.Conn)
		member := s.AddUser(t, s.Tenant, "member@acme.test", access.RoleMember)

		all := s.Body(t, s.jwt, http.MethodGet, s.inApp(""), "", 200)
		apitest.Golden(t, "in_app_list", all)
		response, err := client.GetNotifications(s.Context(t, s.jwt), &notificationsv1.GetNotificationsRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, all)
		if got := s.Body(t, member, http.MethodGet, s.inApp(""), "", 200); strings.Contains(got, `"adminOnly":true`) || strings.Count(got, `"id"`) != 3 {
			t.Errorf("a member sees %s", got)
		}
		var page struct {
			Notifications []struct{ ID string }
			Cursor        string
		}
		seen := ""
		for more := true; more; more = page.Cursor != "" {
			decode(t, s.Body(t, s.jwt, http.MethodGet, s.inApp("?limit=2&cursor="+page.Cursor), "", 200), &page)
			for _, n := range page.Notifications {
				seen += n.ID
			}
		}
		if seen != "54321" {
			t.Errorf("pages %s", seen)
		}

		apitest.Golden(t, "in_app_mark", s.Body(t, s.jwt, http.MethodPut, s.inApp("/mark_as_seen"), `{"deploymentId":"1","notificationIds":["5",2,"5"]}`, 200))
		s.Body(t, s.jwt, http.MethodPut, s.inApp("/mark_as_seen"), `{"notificationIds":["5"]}`, 200) // again
		if got := s.Body(t, s.jwt, http.MethodGet, s.inApp(""), "", 200); strings.Count(got, `"id"`) != 3 {
			t.Errorf("unseen: %s", got)
		}
		if got := s.Body(t, member, http.MethodGet, s.inApp(""), "", 200); strings.Count(got, `"id"`) != 3 {
			t.Errorf("somebody else's: %s", got)
		}

		apitest.Golden(t, "in_app_unknown", s.Body(t, s.jwt, http.MethodPut, s.inApp("/mark_as_seen"), `{"notificationIds":["1","77","78"]}`, 404))
		if got := s.Body(t, member, http.MethodPut, s.inApp("/mark_as_seen"), `{"notificationIds":["1","2"]}`, 404); !strings.Contains(got, "notification 2 not found") {
			t.Errorf("for administrators only: %s", got)
		}
		if got := s.Body(t, s.jwt, http.MethodGet, s.inApp(""), "", 200); strings.Count(got, `"id"`) != 3 {
			t.Errorf("some were marked: %s", got)
		}
		for _, body := range []string{`{}`, `{"notificationIds":["x"]}`, `{"notificationIds":[` + strings.Repeat("1,", 500) + `1]}`} {
			s.Body(t, s.jwt, http.MethodPut, s.inApp("/mark_as_seen"), body, 400)
		}
		s.Body(t, s.jwt, http.MethodGet, s.inApp("?limit=501"), "", 400)
		s.Body(t, s.jwt, http.MethodGet, s.inApp("?cursor=AAAA"), "", 400)

		other := s.AddTenant(t, "globex")
		theirs := fmt.Sprintf("/api/notifications/in-app/deployments/%d", other.DeploymentID)
		s.Body(t, other.Token, http.MethodPut, theirs+"/mark_as_seen", fmt.Sprintf(`{"deploymentId":"%d","notificationIds":["1"]}`, s.DeploymentID), 404)
		if got := s.Body(t, other.Token, http.MethodGet, theirs, "", 200); got != `{"notifications":[],"cursor":""}` {
			t.Errorf("they see %s", got)
		}
	})
}
