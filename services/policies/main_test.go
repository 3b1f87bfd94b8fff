package policies_test

import (
	"testing"

	"github.com/palisade/palisade/services/deployments"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/policies"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/rules"
	"github.com/palisade/palisade/services/scans"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, findings.Register, policies.Register, rules.Register, scans.Register, projects.Register, deployments.Register)
}
