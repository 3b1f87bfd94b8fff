package export_test

import (
	"flag"
	"testing"

	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/scans"
)

// TestMain registers the domains that these tests call. It lowers rapid's default of 100 examples: each one is two
// tenants, two exports and an import.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "8"); err != nil {
		panic(err)
	}
	flag.Parse()
	apitest.Main(m, scans.Register, findings.Register, platform.Register, projects.Register)
}
