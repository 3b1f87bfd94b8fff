package list

import (
	"flag"
	"os"
	"testing"
)

// TestMain asks for fewer examples than rapid's hundred: each is hundreds of statements on PostgreSQL.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "12"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}
