package supplychain_test

import (
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/supplychain"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, platform.Register, projects.Register, scans.Register, supplychain.Register)
}
