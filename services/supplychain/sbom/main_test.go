package sbom_test

import (
	"testing"

	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/supplychain"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, scans.Register, findings.Register, platform.Register, supplychain.Register)
}
