package ai_test

import (
	"testing"

	"github.com/palisade/palisade/services/ai"
	"github.com/palisade/palisade/services/deployments"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/scm"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, ai.Register, deployments.Register, findings.Register, platform.Register, projects.Register, scm.Register)
}
