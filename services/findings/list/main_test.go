package list

import (
	"flag"
	"os"
	"testing"
)

// TestMain lowers rapid's default of 100 examples: each example sends hundreds of statements to PostgreSQL.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "12"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(m.Run())
}
