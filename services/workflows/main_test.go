package workflows_test

import (
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/notifications"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/scm"
	"github.com/palisade/palisade/services/workflows"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, platform.Register, projects.Register, scans.Register, notifications.Register, scm.Register, workflows.Register)
}
