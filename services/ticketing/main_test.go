package ticketing_test

import (
	"testing"

	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/identity"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/notifications"
	"github.com/palisade/palisade/services/policies"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/ticketing"
	"github.com/palisade/palisade/services/workflows"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, projects.Register, scans.Register, findings.Register, identity.Register, notifications.Register, policies.Register, workflows.Register, ticketing.Register)
}
