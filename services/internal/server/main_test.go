package server_test

import (
	"testing"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestMain: these tests are about the whole server.
func TestMain(m *testing.M) { apitest.Main(m, services.Domains...) }
