package rules_test

import (
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/rules"
)

// TestMain registers the domains that these tests call.
func TestMain(m *testing.M) {
	apitest.Main(m, rules.Register)
}
