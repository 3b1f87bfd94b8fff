package steps_test

import (
	"testing"

	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm"
	"github.com/palisade/palisade/services/workflows"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, findings.Register, scm.Register, workflows.Register)
}
