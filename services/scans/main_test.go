package scans_test

import (
	"testing"

	"github.com/palisade/palisade/services/deployments"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/notifications"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/policies"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/rules"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/scm"
	"github.com/palisade/palisade/services/supplychain"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, deployments.Register, scans.Register, rules.Register, findings.Register, policies.Register, notifications.Register,
		platform.Register, projects.Register, scm.Register, supplychain.Register)
}
