package notifications_test

import (
	"testing"

	"github.com/palisade/palisade/services/deployments"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/identity"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/notifications"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/policies"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/reporting"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/workflows"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, platform.Register, scans.Register, findings.Register, identity.Register, notifications.Register, reporting.Register, workflows.Register, policies.Register,
		projects.Register, deployments.Register)
}
