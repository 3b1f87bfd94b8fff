package ignores_test

import (
	"flag"
	"testing"

	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/identity"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/policies"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/scans"
)

// TestMain registers the domains that these tests call. Each example of rapid waits for jobs on two databases.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "6"); err != nil {
		panic(err)
	}
	flag.Parse()
	apitest.Main(m, policies.Register, scans.Register, findings.Register, projects.Register, identity.Register)
}
