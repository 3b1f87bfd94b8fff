package sarif_test

import (
	"os"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/sarif"
)

// The documentation names every property that is understood.
func TestPropertiesAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/scanners.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sarif.PropertyNames() {
		if !strings.Contains(string(raw), "`"+name+"`") {
			t.Errorf("docs/scanners.md does not name the property %s", name)
		}
	}
}
