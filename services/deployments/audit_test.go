package deployments_test

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/services/internal/access"
)

// TestAuditTrail: changes of a deployment are in its own trail, also if the request names no deployment or the caller
// joins one.
func TestAuditTrail(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		_, chief := s.person(t, "chief@acme.test", access.RoleAdmin)
		dana := s.AddUser(t, s.Tenant, "dana@acme.test", "")
		s.admin(t, http.MethodPatch, s.of(""), `{"displayName":"Acme Group"}`)
		s.admin(t, http.MethodPut, s.of("/tags/pci"), `{}`)
		s.want(t, http.StatusOK, chief, http.MethodPost, fmt.Sprintf("/api/onboarding/deployments/%d/invite_members", s.DeploymentID), `{"emails":["dana@acme.test"]}`)
		s.want(t, http.StatusOK, dana, http.MethodPost, s.of("/users"), `{}`)
		s.want(t, http.StatusOK, chief, http.MethodDelete, s.of(fmt.Sprintf("/users/%d", s.userID(t, "dana@acme.test"))), "")
		s.want(t, http.StatusCreated, chief, http.MethodPost, "/api/agent/deployments", `{"deploymentName":"Acme Labs"}`)

		trail := func(deploymentID int64) (lines []string) {
			rows := s.Store.Reader.AuditEntry.Query().Where(auditentry.DeploymentID(deploymentID)).Order(auditentry.ByID()).AllX(s.System(t))
			for _, row := range rows {
				lines = append(lines, line(row))
			}
			return lines
		}
		want := []string{
			"UpdateDeployment deployment", "UpdateDeploymentTag deployment_tag", "InviteMembers invitation",
			"AddDeploymentUser deployment_user", "RemoveDeploymentUser deployment_user",
		}
		if got := trail(s.DeploymentID); !slices.Equal(got, want) {
			t.Errorf("the trail is %q, want %q", got, want)
		}
		if got := trail(s.DeploymentID + 1); !slices.Equal(got, []string{"CreateDeployment deployment"}) {
			t.Errorf("the trail of the new deployment is %q", got)
		}
	})
}

func line(row *ent.AuditEntry) string {
	text := path.Base(row.Method)
	for _, change := range row.Changes {
		text += " " + change.Kind
	}
	return text
}
