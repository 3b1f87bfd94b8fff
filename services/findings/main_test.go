package findings_test

import (
	"flag"
	"testing"

	"github.com/palisade/palisade/services/deployments"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/identity"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/notifications"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/policies"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/scans"
)

// TestMain registers the domains that these tests call. It lowers rapid's default of 100 examples: each example is a
// tenant with hundreds of findings on two databases.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "12"); err != nil {
		panic(err)
	}
	flag.Parse()
	apitest.Main(m, policies.Register, projects.Register, scans.Register, findings.Register, notifications.Register, platform.Register, identity.Register, deployments.Register)
}
