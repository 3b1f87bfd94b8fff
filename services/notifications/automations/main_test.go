package automations_test

import (
	"flag"
	"testing"

	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/identity"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/notifications"
	"github.com/palisade/palisade/services/policies"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/rules"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/workflows"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "6"); err != nil { // each check stores several scans and waits for jobs
		panic(err)
	}
	flag.Parse()
	apitest.Main(m, notifications.Register, scans.Register, findings.Register, projects.Register, policies.Register, rules.Register, identity.Register, workflows.Register)
}
