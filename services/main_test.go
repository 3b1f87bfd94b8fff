package services_test

import (
	"testing"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestMain registers all domains: these tests use the whole server.
func TestMain(m *testing.M) { apitest.Main(m, services.Domains...) }
