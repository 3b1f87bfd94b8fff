package issue_test

import (
	"testing"

	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, findings.Register)
}
