package policies_test

import (
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/policies"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, policies.Register)
}
